# `keras-caption caption` with the light install, on LiteRT; from the repository's root:
#   docker build -f deploy/caption.Dockerfile -t REGISTRY/keras-caption .
#   docker run --rm -v "$PWD/photos:/photos" -v captions:/home/captioner/.cache \
#       REGISTRY/keras-caption /photos --sidecar
# The volume keeps the detector, which the first run downloads. To write beside photos
# of another user than number 1000: docker run --user "$(id -u)" -e HOME=/tmp ...
# The packages take 270 MB; the base image comes on top.
FROM python:3.11-slim

# The sources are only mounted: no layer of the image holds them.
RUN --mount=type=bind,target=/src,rw \
    pip install --no-cache-dir -c /src/requirements.txt '/src[lite]' \
    && useradd --create-home --uid 1000 captioner \
    && install -d -o captioner /home/captioner/.cache

USER 1000
ENTRYPOINT ["keras-caption", "caption"]
