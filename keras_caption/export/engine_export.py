"""Exports of models to OpenVINO, ONNX and LiteRT, which run without TensorFlow."""

import base64
import dataclasses
import functools
import json
import os
import pathlib
import tempfile
from collections.abc import Callable
from typing import Any, Literal

import tensorflow as tf

from keras_caption.apps.objects import ObjectDetector, PhotoClassifier, SecondOpinion
from keras_caption.apps.objects.lite_detector import write_description
from keras_caption.base.arguments import Precision, check
from keras_caption.base.atomic import naming_tensorflows, replacing
from keras_caption.base.compilation import constant_shapes
from keras_caption.base.errors import InputError, missing_extras
from keras_caption.base.progress import silent
from keras_caption.decoding import Decoding
from keras_caption.decoding.rules import DEFAULTS
from keras_caption.export.answers import BEST
from keras_caption.export.endpoint import Endpoint
from keras_caption.export.signatures import endpoints_of
from keras_caption.formats.engine_files import (
    CLASSIFIER,
    DESCRIPTION,
    DETECTOR,
    DETECTOR_FILES,
    NAMES,
)
from keras_caption.formats.preset_files import CARD
from keras_caption.models import Ensemble, Seq2Seq
from keras_caption.models.answering import Answering
from keras_caption.models.engine_model import description_of
from keras_caption.text import (
    EOS,
    PAD,
    CharacterTokenizer,
    SubwordTokenizer,
    Vocabulary,
    WordTokenizer,
)
from keras_caption.text.words import CONTINUED

Engine = Literal["openvino", "onnx", "litert"]
OPSET = 18
NOT_HELD = ("temperature", "prefix", "forbidden", "required")  # options of decoding
TEXTS = ("vocabulary", "source", "question", "answers")
EXPORTED = (
    *(CARD, "model.*", *(f"{name}.*" for name in TEXTS)),
    *(f"{DETECTOR}/{name}" for name in DETECTOR_FILES),
    *(f"{CLASSIFIER}/{name}" for name in DETECTOR_FILES),
)
README = """\
# {name}

A model of class `{kind}` for {engine}, in {precision}. `keras_caption.models.load` and
the commands of keras_caption take this folder as a model. Without keras_caption, in it:

```python
{code}
```

| input | shape | type |
|---|---|---|
{inputs}

Sizes that are `None` are free. What is padding, and which examples have no answer, is
said of the signature `tokens` in the documentation of `keras_caption.serving.export`.
{notes}"""
# How a model is loaded, and run with INPUTS to IDS, its output OUTPUT.
IMPORTS = {
    "openvino": "import openvino",
    "onnx": "import onnxruntime",
    "litert": "from ai_edge_litert.interpreter import Interpreter",
}
RUNNING = {
    "openvino": """\
precision = {"INFERENCE_PRECISION_HINT": "f32"}  # CPUs may take less, for other results
model = openvino.compile_model("model.xml", "CPU", precision)
IDS = model(INPUTS)["OUTPUT"]""",
    "onnx": """\
session = onnxruntime.InferenceSession("model.onnx")
[IDS] = session.run(["OUTPUT"], INPUTS)""",
    "litert": """\
run = Interpreter("model.tflite").get_signature_runner()
IDS = run(**INPUTS)["OUTPUT"]""",
}


def export_engine(
    model: Seq2Seq | Answering | Ensemble,
    path: str | os.PathLike,
    engine: Engine,
    precision: Precision = "float32",
) -> None:
    """Writes a model as a folder for OpenVINO, ONNX Runtime or LiteRT.

    Its file `model.xml`, `model.onnx` or `model.tflite` holds the signature `tokens` of
    `keras_caption.serving.export`: all of beam search, with the model's own options, in
    float32 to the same tokens. Batch size, numbers of regions and lengths of sentences
    are free. These formats have no strings: no photos, no options of a request, and
    texts are tokens, which `vocabulary.json` (of subwords, `vocabulary.spm`) has in
    words; `README.md` shows how the model is loaded and run, and
    `keras_caption.models.load` reads the folder as a model. With a detector as its
    `extractor`, a captioner of LiteRT has it in a folder `detector`, see
    `export_detector`, by which `keras-caption caption` reads photos, and the classifier
    of a `keras_caption.objects.SecondOpinion` in a folder `classifier`. The folder
    appears whole or not at all.

    Args:
        model: Of `keras_caption.serving.export`.
        path: Path of the folder.
        engine: `"openvino"`; `"onnx"`; or `"litert"`, formerly TensorFlow Lite.
        precision: `"float32"`; or, of LiteRT, `"int8"`: large matrices are kept in 8
            bits, and multiplied by activations that are rounded to 8 bits as they come.
            The file has less than a third of the size, and some texts differ.

    Raises:
        InputError: If the model has no vocabulary, its `decoding` has texts or a
            temperature, the engine lacks an operation of it, as LiteRT does of LSTMs of
            encoders, or a package is missing, or the engine has no such precision.
    """
    check(Engine, engine=engine)
    check(Precision, precision=precision)
    check_decoding(model, engine)
    convert = CONVERTERS[engine]
    if precision != "float32":
        if engine != "litert":
            raise InputError(f"A file for {NAMES[engine]} is in float32.")
        convert = functools.partial(to_litert, precision=precision)
    endpoint = endpoints_of(model)["tokens"]
    with constant_shapes():
        write = convert(endpoint.traced(), model)
    with replacing(path, EXPORTED) as partial:
        partial.mkdir()
        write(partial)
        for name in TEXTS:
            if texts := getattr(model, name, None):
                write_texts(texts, partial / name)
        description = json.dumps(description_of(model, BEST), ensure_ascii=False)
        (partial / DESCRIPTION).write_text(description, encoding="utf-8")
        extractor = getattr(model, "extractor", None)
        if engine == "litert" and isinstance(extractor, SecondOpinion):
            classify = extractor.classify
            assert isinstance(classify, PhotoClassifier)  # of a model in Keras
            export_classifier(classify, partial / CLASSIFIER)
            extractor = extractor.detector
        if engine == "litert" and isinstance(extractor, ObjectDetector):
            export_detector(extractor, partial / DETECTOR)
        card = card_of(model, endpoint, engine, precision)
        (partial / CARD).write_text(card, encoding="utf-8")


def check_decoding(model: Any, engine: Engine) -> None:
    """Raises `InputError` if a file cannot hold the model's options of decoding."""
    own = getattr(model, "decoding", Decoding())  # models of answers have none
    names = [name for name in NOT_HELD if getattr(own, name) != DEFAULTS[name]]
    if names:
        listed = ", ".join(f"`{name}`" for name in names)
        raise InputError(
            f"A file for {NAMES[engine]} holds a search without texts and samples, and "
            f"the decoding of '{model.name}' has {listed}: set another "
            "`model.decoding` and save the model."
        )


def export_detector(detector: ObjectDetector, path: str | os.PathLike) -> None:
    """Writes a detector of objects as a folder for LiteRT.

    `keras_caption.objects.LiteDetector` reads it. The file has all boxes of the
    network; those that overlap are suppressed by NumPy, which LiteRT cannot.

    Args:
        detector: `keras_caption.objects.ObjectDetector`.
        path: Path of the folder.

    Raises:
        InputError: If LiteRT lacks an operation of it, or it suppresses no boxes.
    """
    if detector.suppression is None:
        raise lacking("LiteRT", detector)
    size = detector.image_size
    images = tf.TensorSpec((1, size, size, 3), tf.float32, "images")

    def find(images):
        boxes, scores, categories = detector.candidates(images)
        return {"boxes": boxes, "scores": scores, "categories": categories}

    write = to_litert(tf.function(find, [images], autograph=False), detector)
    with replacing(path, DETECTOR_FILES) as partial:
        partial.mkdir()
        write(partial)
        write_description(
            partial,
            detector.name,
            size,
            detector.keeps_proportions,
            detector.max_objects,
            detector.suppression,
        )


def export_classifier(classifier: PhotoClassifier, path: str | os.PathLike) -> None:
    """Writes the classifier of a second opinion as a folder for LiteRT.

    `keras_caption.objects.LiteClassifier` reads it.

    Args:
        classifier: `keras_caption.objects.PhotoClassifier`.
        path: Path of the folder.
    """
    size = classifier.image_size
    images = tf.TensorSpec((1, size, size, 3), tf.float32, "images")

    def classify(images):
        return {"probabilities": classifier.network(images)}

    function = tf.function(classify, [images], autograph=False)
    write = to_litert(function, classifier.network)
    with replacing(path, DETECTOR_FILES) as partial:
        partial.mkdir()
        write(partial)
        described = json.dumps({"name": classifier.network.name, "image_size": size})
        (partial / DESCRIPTION).write_text(described, encoding="utf-8")


# === Converters: from a traced signature to a function that writes it to a folder ===


def to_openvino(function: Any, model: Any) -> Callable[[pathlib.Path], None]:
    with missing_extras():
        import openvino
    converted = openvino.convert_model(function.get_concrete_function())
    return lambda folder: openvino.save_model(
        converted, folder / "model.xml", compress_to_fp16=False
    )


def to_onnx(function: Any, model: Any) -> Callable[[pathlib.Path], None]:
    with missing_extras():
        import onnx
        import tf2onnx
    converted, _ = tf2onnx.convert.from_function(
        function, function.input_signature, opset=OPSET
    )
    try:  # what has no conversion is only logged
        onnx.checker.check_model(converted)
    except onnx.checker.ValidationError as error:
        raise lacking("ONNX", model) from error
    return lambda folder: onnx.save(converted, folder / "model.onnx")


def to_litert(
    function: Any, model: Any, precision: Precision = "float32"
) -> Callable[[pathlib.Path], None]:
    from tensorflow.lite.python.convert import ConverterError

    module = tf.Module()
    module.model_variables = [variable.value for variable in model.variables]
    with tempfile.TemporaryDirectory() as folder:
        with naming_tensorflows(folder):
            tf.saved_model.save(module, folder, signatures={"tokens": function})
        converter = tf.lite.TFLiteConverter.from_saved_model(
            folder, signature_keys=["tokens"]
        )
        if precision == "int8":  # of the weights; the calibration of more needs data
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        try:
            with silent():  # pages about each missing operation
                converted = converter.convert()
        except ConverterError:  # whose text is these pages again
            raise lacking("LiteRT", model) from None

    def write(folder: pathlib.Path) -> None:
        (folder / "model.tflite").write_bytes(converted)

    return write


CONVERTERS = {"openvino": to_openvino, "onnx": to_onnx, "litert": to_litert}


def lacking(engine: str, model: Any) -> InputError:
    return InputError(
        f"{engine} lacks an operation of '{model.name}', a {type(model).__name__}: "
        "export it in another format."
    )


# === Texts of ids, and how all is used ===


def write_texts(
    texts: SubwordTokenizer | Vocabulary | CharacterTokenizer | list[str],
    path: pathlib.Path,
) -> None:
    """Writes the texts of all ids to `path` with the suffix of their format."""
    if isinstance(texts, SubwordTokenizer):
        path.with_suffix(".spm").write_bytes(base64.b64decode(texts.model))
    else:
        words = texts if isinstance(texts, list) else texts.words
        content = json.dumps(words, ensure_ascii=False, indent=0)
        path.with_suffix(".json").write_text(content, encoding="utf-8")


def card_of(
    model: Any, endpoint: Endpoint, engine: Engine, precision: Precision
) -> str:
    """Describes the folder, with code that loads and runs the model, in Markdown."""
    output = "best_ids" if isinstance(model, Answering) else "tokens"
    feed = ", ".join(f'"{name}": {name}' for name in endpoint.inputs)
    running = RUNNING[engine].replace("INPUTS", f"{{{feed}}}")
    running = running.replace("OUTPUT", output).replace("IDS", output)
    library, reading = reading_of(model)
    code = [*sorted([library, IMPORTS[engine]]), "", running, reading]
    return README.format(
        name=model.name,
        kind=type(model).__name__,
        engine=NAMES[engine],
        precision=precision,
        code="\n".join(code),
        inputs="\n".join(
            f"| `{name}` | {x.shape} | {x.dtype.name} |"
            for name, x in endpoint.inputs.items()
        ),
        notes="".join(f"\n{note}\n" for note in notes_of(model)),
    )


def reading_of(model: Any) -> tuple[str, str]:
    """The import and the code that print the texts of a model's outputs."""
    if isinstance(model, Answering):
        return "import json", (
            'answers = json.load(open("answers.json", encoding="utf-8"))\n'
            "for best in best_ids:\n    print(answers[best[0]])"
        )
    if isinstance(model.vocabulary, SubwordTokenizer):
        return "from sentencepiece import SentencePieceProcessor", (
            'words = SentencePieceProcessor(model_file="vocabulary.spm")\n'
            "for row in tokens:\n"
            f"    print(words.decode(row[row > {EOS}].tolist()))"
        )
    joined = f'" ".join(words[i] for i in row if i > {EOS})'
    if isinstance(model.vocabulary, CharacterTokenizer):
        joined = joined.replace('" "', '""', 1)
    elif isinstance(model.vocabulary, WordTokenizer):
        joined = f'({joined} + " ").replace("{CONTINUED} ", "").rstrip()'
    return "import json", (
        'words = json.load(open("vocabulary.json", encoding="utf-8"))\n'
        f"for row in tokens:\n    print({joined})"
    )


def notes_of(model: Any) -> list[str]:
    """Differences of the file from the model, a list of sentences."""
    if isinstance(model, Answering):
        notes = [
            "`best_ids` are those of five answers, the most probable first. Where "
            "there is none, `best_scores` are -inf."
        ]
    else:
        options = {
            x.name: getattr(model.decoding, x.name)
            for x in dataclasses.fields(model.decoding)
            if x.name in ("beam_size", "max_length")
            or getattr(model.decoding, x.name) != x.default
        }
        fixed = ", ".join(f"`{name}` {value}" for name, value in options.items())
        notes = [f"The file holds the whole search, with fixed options: {fixed}."]
    for name, code in (
        ("source", f"`model.source.encode(text)[1:]`, up to EOS ({EOS})"),
        ("question", "`model.question.to_ids(text)`"),
    ):
        if getattr(model, name, None):
            notes.append(
                f"`{name}` holds token ids; `{name}.*` has their words. In "
                f"keras_caption, {code} makes the ids of a text; PAD ({PAD}) follows."
            )
    return notes
