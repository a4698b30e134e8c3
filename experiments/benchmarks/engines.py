r"""A captioner in other engines: its captions, and how fast they are.

    python experiments/benchmarks/engines.py saved_models/ngsan_coco.keras \
        coco_objects coco_val2017

captions the test split of a dataset by beam search with what `keras-caption export`
writes for OpenVINO, also in its own precision, for ONNX Runtime and for LiteRT, also in
int8. Times are of the CPU, all threads together, for an image in batches of 50 and for
one alone. Without arguments, it is `saved_models/ngsan_scenes.keras` and `scenes`.
"""

import pathlib
import sys
import tempfile

import numpy as np
import onnxruntime
import openvino
from ai_edge_litert.interpreter import Interpreter

import keras_caption as kc
from experiments.benchmarks.quantization import BATCH, times_of
from keras_caption.export.signatures import signatures_of


def openvino_runner(folder, **properties):
    model = openvino.compile_model(folder / "openvino" / "model.xml", "CPU", properties)
    return lambda feed: model(feed)["tokens"]


def onnx_runner(folder):
    session = onnxruntime.InferenceSession(folder / "onnx" / "model.onnx")
    return lambda feed: session.run(["tokens"], feed)[0]


def litert_runner(folder):
    path = str(folder / "model.tflite")
    run = Interpreter(path, num_threads=2).get_signature_runner()
    return lambda feed: run(**feed)["tokens"]


class Engine:
    """An exported model: from batches to captions."""

    def __init__(self, model, run):
        self.vocabulary = model.vocabulary
        self.names = list(signatures_of(model)["tokens"].inputs)
        self.run = run

    def generate(self, inputs):
        tokens = self.run({name: np.asarray(inputs[name]) for name in self.names})
        return [self.vocabulary.decode(row) for row in tokens]

    def caption(self, batches):
        captions = {}
        for batch in batches:
            ids = np.asarray(batch["image_id"]).tolist()
            captions.update(zip(ids, self.generate(batch), strict=True))
        return captions


def main(path="saved_models/ngsan_scenes.keras", dataset="scenes", data_dir=None):
    examples = kc.datasets.read(kc.datasets.load(dataset, data_dir), "test")
    model = kc.models.load(path)
    batches = list(kc.batches.image_batches(examples, BATCH, model.input_specs))
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for engine in ("openvino", "onnx", "litert"):
            kc.serving.export_engine(model, folder / engine, engine)
        kc.serving.export_engine(model, folder / "int8", "litert", "int8")
        runners = {
            "OpenVINO": openvino_runner(folder, INFERENCE_PRECISION_HINT="f32"),
            "OpenVINO, its precision": openvino_runner(folder),
            "ONNX Runtime": onnx_runner(folder),
            "LiteRT": litert_runner(folder / "litert"),
            "LiteRT, int8": litert_runner(folder / "int8"),
        }
        engines = {name: Engine(model, run) for name, run in runners.items()}
        models = {"keras_caption": model, **engines}
        captions = {name: x.caption(batches) for name, x in models.items()}
        times = times_of(models, batches[0])
    for name, engine_captions in captions.items():
        equal = sum(
            captions["keras_caption"][i] == x for i, x in engine_captions.items()
        )
        in_batches, alone = times[name]
        print(
            f"{name:24} {equal} of {len(engine_captions)} captions equal   "
            f"{in_batches:5.1f} ms an image in batches, {alone:5.1f} alone"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
