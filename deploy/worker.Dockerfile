# Workers of `keras-caption bulk` for Dataflow, Flink and Spark, from the repository's root:
#   docker build -f deploy/worker.Dockerfile -t REGISTRY/keras-caption-worker .
# and then --environment_type=DOCKER --environment_config=REGISTRY/keras-caption-worker,
# or --sdk_container_image=REGISTRY/keras-caption-worker on Dataflow.
FROM apache/beam_python3.11_sdk:2.77.0

COPY . /src
RUN pip install --no-cache-dir -c /src/requirements.txt '/src[bulk]' && rm -r /src \
    && useradd --create-home --uid 1000 worker

USER 1000
# Beam's entry point makes an environment of its own otherwise, in a folder of root's.
ENV RUN_PYTHON_SDK_IN_DEFAULT_ENVIRONMENT=1

# Models that jobs name by these paths; on Beam's file systems they need no copy here.
# COPY saved_models /models

# The entry point is that of the base image, /opt/apache/beam/boot.
