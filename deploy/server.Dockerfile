# `keras-caption serve`, from the repository's root:
#   docker build -f deploy/server.Dockerfile -t REGISTRY/keras-caption-server .
#   docker run -p 8501:8501 -v "$PWD/models:/models:ro" REGISTRY/keras-caption-server \
#       ngsan_coco --detector /models/yolox_nano.keras
# For a GPU, which `docker run --gpus all` gives a container:
#   docker build -f deploy/server.Dockerfile --build-arg TENSORFLOW=and-cuda ...
FROM python:3.11-slim

ARG TENSORFLOW=
COPY . /src
RUN pip install --no-cache-dir -c /src/requirements.txt '/src[photos,server]' \
    ${TENSORFLOW:+"tensorflow[${TENSORFLOW}]"} && rm -r /src \
    && useradd --create-home --uid 1000 server

USER 1000
# Functions that XLA compiled, which may be a volume.
ENV KERAS_CAPTION_CACHE=/home/server/compiled
EXPOSE 8501
ENTRYPOINT ["keras-caption", "serve", "--host=0.0.0.0"]
