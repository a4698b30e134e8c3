"""Writes a request for each signature of an export, for REST and gRPC.

    python deploy/requests.py exports/ngsan_coco/1 requests photo.jpg another.jpg
    curl -d @requests/photos.json localhost:8501/v1/models/ngsan_coco:predict

SIGNATURE.json is the body of a REST request, and SIGNATURE.pb a serialized
tensorflow.serving.PredictRequest. They are the requests by which the server warms up,
see `keras_caption.serving.export`, with the photos in place of its grey one.
"""

import argparse
import base64
import json
import pathlib

import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2

WARMUP = "assets.extra/tf_serving_warmup_requests"
FILES = "image_bytes"


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("export", type=pathlib.Path, help="folder of one version")
    parser.add_argument("output", type=pathlib.Path, help="new folder")
    parser.add_argument(
        "photos", type=pathlib.Path, nargs="*", help="JPEG or PNG files"
    )
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True)
    for record in tf.data.TFRecordDataset(str(options.export / WARMUP)):
        log = prediction_log_pb2.PredictionLog.FromString(record.numpy())
        request = log.predict_log.request
        if FILES in request.inputs and options.photos:
            fill(request, [path.read_bytes() for path in options.photos])
        path = options.output / request.model_spec.signature_name
        path.with_suffix(".json").write_text(json.dumps(rest_body(request)))
        path.with_suffix(".pb").write_bytes(request.SerializeToString())


def fill(request, photos):
    """Puts photos into a request, and repeats its other inputs for each."""
    for name, tensor in request.inputs.items():
        values = np.repeat(tf.make_ndarray(tensor), len(photos), axis=0)
        if name == FILES:
            values = np.array(photos, object)
        tensor.CopyFrom(tf.make_tensor_proto(values))


def rest_body(request):
    """The JSON of a request: a list of instances, each a dict of inputs."""
    columns = {name: tf.make_ndarray(x) for name, x in request.inputs.items()}
    rows = zip(*columns.values(), strict=True)
    return {
        "signature_name": request.model_spec.signature_name,
        "instances": [
            {name: as_json(name, x) for name, x in zip(columns, row, strict=True)}
            for row in rows
        ],
    }


def as_json(name, value):
    if isinstance(value, bytes):
        if name.endswith("_bytes"):
            return {"b64": base64.b64encode(value).decode()}
        return value.decode()
    return value.tolist()


if __name__ == "__main__":
    main()
