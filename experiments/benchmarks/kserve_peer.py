"""KServe's server of the models of serving.py; run in its environment.

python kserve_peer.py PORT DETECTOR NAME=MODEL [NAME=MODEL]
"""

import base64
import sys

import kserve
from kserve.errors import InvalidInput

from keras_caption import InputError
from keras_caption.apps.serve.server import load_predictor


class Answers(kserve.Model):
    """A model that answers records, of which photos are `{"b64": ...}`."""

    def __init__(self, name, path, detector):
        super().__init__(name)
        self.predictor = load_predictor(path, detector)
        self.ready = True

    def predict(self, payload, headers=None, response_headers=None):
        records = [
            {
                name: base64.b64decode(x["b64"]) if isinstance(x, dict) else x
                for name, x in record.items()
            }
            for record in payload["instances"]
        ]
        try:
            return {"predictions": [answer.text for answer in self.predictor(records)]}
        except InputError as error:
            raise InvalidInput(str(error)) from error


def main(port, detector, *models):
    pairs = [model.split("=", 1) for model in models]
    served = [Answers(name, path, detector) for name, path in pairs]
    kserve.ModelServer(http_port=int(port), enable_grpc=False, workers=1).start(served)


if __name__ == "__main__":
    main(*sys.argv[1:])
