"""Exports for OpenVINO, ONNX Runtime and LiteRT, run as their README.md says."""

import re
import subprocess
import sys

import numpy as np
import pytest
from conftest import random_boxes, random_images, tiny
from few_sentences import FEW, SENTENCES, captioner_of_few, images_of, ranked
from PIL import Image
from yolox_file import photo, white_yolox

import keras_caption as kc
from keras_caption.apps.serve.server import load_predictor
from keras_caption.commands import main
from keras_caption.export.engine_cache import engine_of
from keras_caption.formats.engine_files import openvino_core

PACKAGES = {
    "openvino": ["openvino"],
    "onnx": ["tf2onnx", "onnxruntime"],
    "litert": ["ai_edge_litert"],
}
WITHOUT_KERAS = """
import sys
sys.modules["keras"] = sys.modules["tensorflow"] = None
import keras_caption_cli
keras_caption_cli.main(sys.argv[1:])
"""
RULES = {"no_repeat_ngram": 2, "repetition_penalty": 1.5}
SHORT = {
    "num_layers": 1,
    "decoding": kc.decoding.Decoding(beam_size=2, max_length=5, **RULES),
}


def run(folder, inputs, monkeypatch, capsys):
    """The names that the README's code makes of inputs, and the lines it prints."""
    if "import openvino" in (folder / "README.md").read_text():
        # A core of its own would end before others do, see `openvino_core`.
        monkeypatch.setattr("openvino.compile_model", openvino_core().compile_model)
    [code] = re.findall("```python\n(.*?)```", (folder / "README.md").read_text(), re.S)
    monkeypatch.chdir(folder)
    names = dict(inputs)
    capsys.readouterr()
    exec(code, names)
    return names, capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("engine", PACKAGES)
def test_engines_generate_the_same_tokens(engine, tmp_path, rng, monkeypatch, capsys):
    for package in PACKAGES[engine]:
        pytest.importorskip(package)
    model = captioner_of_few(
        beam_size=6, no_repeat_ngram=2, repetition_penalty=1.001, signed_geometry=True
    )
    model.save(tmp_path / "model.keras")
    file = engine_of(tmp_path / "model.keras", engine)
    assert engine_of(tmp_path / "model.keras", engine) == engine_of(file, engine)
    folder = file.parent
    images = images_of(*SENTENCES, [("cat", (0, 0, 1, 1))], [("cat", (0, 0, 1, 1))])
    del images["region_mask"]
    # An image in which no object is detected, of which anything may be said.
    images["regions"][-2] = -rng.random((2, 80))
    images["boxes"][-2] = random_boxes(rng, 2)
    known = {name: x[:-1] for name, x in images.items()}
    tokens, scores = model.generate_tokens(known)
    images["regions"][-1, 0] = np.nan  # a fault, which harms no other
    names, lines = run(folder, images, monkeypatch, capsys)
    np.testing.assert_array_equal(names["tokens"], [*tokens, [0] * 8])
    assert lines == [*map(FEW.decode, tokens), ""]
    assert len(lines[-2].split()) > 5
    for i, sentences in enumerate(SENTENCES.values()):
        image = {name: x[i : i + 1] for name, x in known.items()}
        [best, *_] = ranked(model, image, sentences)
        assert lines[i] == best[0]
    loaded = kc.models.load(folder)  # without its program
    found, found_scores = loaded.generate_tokens(known)
    np.testing.assert_array_equal(found, tokens)
    np.testing.assert_allclose(found_scores, scores, atol=1e-4)
    alone = {name: x[:1, :1] for name, x in images.items()}  # the other is padding
    names, _ = run(folder, alone, monkeypatch, capsys)
    np.testing.assert_array_equal(names["tokens"], tokens[:1])


FREED = """
import signal, sys
from keras_caption.formats.engine_files import open_openvino
first, second = (open_openvino(sys.argv[1]) for _ in range(2))
del first
del second
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
signal.raise_signal(signal.SIGTERM)
"""


def test_a_signal_comes_after_models_of_openvino_are_freed(tmp_path):
    openvino = pytest.importorskip("openvino")
    x = openvino.opset13.parameter([2], np.float32)
    model = openvino.Model([openvino.opset13.relu(x)], [x])
    openvino.save_model(model, tmp_path / "model.xml")
    command = [sys.executable, "-c", FREED, tmp_path / "model.xml"]
    done = subprocess.run(command, check=False)
    assert done.returncode == 7


def test_a_translator_reads_and_writes_tokens(tmp_path, monkeypatch, capsys):
    pytest.importorskip("ai_edge_litert")
    words = kc.text.WordTokenizer([f"w{i}@@" if i % 2 else f"w{i}" for i in range(12)])
    model = kc.models.TransformerTranslator(
        words, words, model_dim=32, num_heads=2, feedforward_dim=128, **SHORT
    )
    model.save(tmp_path / "model.keras")
    file = engine_of(tmp_path / "model.keras", "litert")
    sentences = ["w1 w2 w3 w4", "w5"]
    source = {"source": model.to_batch(sentences)["source"]}
    _, lines = run(file.parent, source, monkeypatch, capsys)
    assert lines == model.generate(sentences)
    loaded = kc.models.load(file)
    sentences += ["", "w3 w9"]
    assert loaded.translate(sentences) == model.translate(sentences)
    options = {"n": 2}, {"max_length": 4}, {"attention": True}, {"stream": True}
    for option in options:
        with pytest.raises(
            kc.InputError, match=r"holds the whole search: .*(fixed|grow)"
        ):
            list(loaded.generate(sentences[:2], **option))
    with pytest.raises(kc.InputError, match="runs on another engine: it cannot"):
        kc.models.Ensemble([loaded, loaded])
    (tmp_path / "sentences").write_text("\n".join(sentences))
    written = []
    for engine in "keras", "litert":
        output = tmp_path / f"{engine}.txt"
        command = ["translate", str(tmp_path / "model.keras"), f"--engine={engine}"]
        command += [f"--input={tmp_path / 'sentences'}", f"--output={output}"]
        with pytest.raises(SystemExit):
            main(command)
        written.append(output.read_text())
    assert written[0] == written[1]
    program = [sys.executable, "-c", WITHOUT_KERAS, "translate", str(file), *sentences]
    done = subprocess.run(program, check=True, capture_output=True, text=True)
    assert done.stdout == written[0]
    export = ["export", str(tmp_path / "model.keras"), "--format=litert"]
    export += ["--precision=int8", f"--output={tmp_path / 'small'}"]
    capsys.readouterr()
    with pytest.raises(SystemExit) as end:
        main([*export, f"--compare={tmp_path / 'sentences'}"])
    assert not end.value.code
    small = tmp_path / "small" / "model.tflite"
    assert small.stat().st_size < 0.8 * file.stat().st_size
    assert "in int8." in (tmp_path / "small" / "README.md").read_text()
    texts = kc.models.load(small).translate(sentences), model.translate(sentences)
    same = sum(a == b for a, b in zip(*texts, strict=True) if b)
    share = f"{same} of 3 texts are the same in int8 ({same / 3:.1%})"
    assert share in capsys.readouterr().out
    served = load_predictor(str(tmp_path / "model.keras"), engine="litert")
    found = served([{"source": sentences[0]}, {"source": ""}])
    assert [x.text for x in found] == [*model.generate(sentences[:1]), ""]
    search = "LiteRT runs a file that holds the whole search: --beam_size is fixed"
    for arguments, message in (
        ([file, "--engine=litert", "--beam_size=2"], search),
        ([file, "--n_best=2"], "LiteRT gives one text: leave out --n_best"),
        ([file, "--engine=onnx"], "is a file of LiteRT: it takes no --engine onnx"),
        ([file, "--engine=keras"], "is a file of LiteRT: it takes no --engine keras"),
        ([f"{file},{file}"], "LiteRT runs one model, no ensemble of 2"),
    ):
        with pytest.raises(SystemExit, match=message):
            main(["translate", *map(str, arguments), "a"])
    (tmp_path / "model.tflite").write_bytes(file.read_bytes())
    (tmp_path / "model.json").write_text('{"name": "x"}')
    with pytest.raises(kc.InputError, match="is damaged: KeyError"):
        kc.models.load(tmp_path)
    assert any("@@" in word for word in words.words)


@pytest.mark.parametrize("engine", ["onnx", "litert"])
def test_photos_and_questions_are_answered_by_engines(engine, tmp_path, capsys, rng):
    for package in PACKAGES[engine]:
        pytest.importorskip(package)
    categories = list(kc.objects.CATEGORIES)
    objects = {"categories": categories, "region_dim": 80}
    words = kc.text.Vocabulary(["dog", "a", "two"])
    model = kc.models.create(
        "ngsan", vocabulary=words, **tiny("ngsan") | objects | SHORT
    )
    model.threshold = 0.25
    white_yolox(image_size=None).save(tmp_path / "yolox.keras")
    model.save(tmp_path / "model.keras")
    command = ["export", str(tmp_path / "model.keras"), f"--format={engine}"]
    detector = [f"--detector={tmp_path / 'yolox.keras'}"]
    within = detector if engine == "litert" else []
    with pytest.raises(SystemExit) as end:
        main([*command, *within, f"--output={tmp_path / 'engine'}"])
    assert not end.value.code
    capsys.readouterr()
    photos = [photo(104, 52, cells) for cells in ([(1, 2)], [], [(3, 2), (0, 1)])]
    for i, pixels in enumerate(photos):
        Image.fromarray(pixels).save(tmp_path / f"{i}.png")
    written = []
    for name in "engine", "model.keras":
        command = ["caption", *(str(tmp_path / f"{i}.png") for i in range(3))]
        command.append(f"--model={tmp_path / name}")
        if name != "engine" or not within:
            command += detector
        with pytest.raises(SystemExit) as end:
            main(command)
        assert not end.value.code
        written.append(capsys.readouterr().out)
    assert written[0] == written[1]
    assert "1.png: nothing detected" in written[0]

    images = random_images(rng, 3, 4)
    sizes = {"num_layers": 1, "model_dim": 8, "num_heads": 1, "feedforward_dim": 8}
    if engine == "litert":  # which has no LSTM of encoders
        return
    asked = kc.text.QuestionTokenizer(["what", "is"])
    answers = [f"a{i}" for i in range(9)]
    judged = {"threshold": {"other": 0.4}, "recall": {"dog": 0.5}}
    answerer = kc.models.create(
        "mcan", question=asked, answers=answers, **objects, **sizes, **judged
    )
    answerer.save(tmp_path / "answers.keras")
    loaded = kc.models.load(engine_of(tmp_path / "answers.keras", engine))
    assert {name: getattr(loaded, name) for name in judged} == judged
    given = {"regions": np.tile(images["regions"], 20)[..., :80]}
    given["region_mask"] = images["region_mask"]
    questions = ["what is", "", "is it"]
    expected = answerer.answer_n_best(given, questions, 5)
    for ours, theirs in zip(
        loaded.answer_n_best(given, questions, 5), expected, strict=True
    ):
        assert [text for text, _ in ours] == [text for text, _ in theirs]
        np.testing.assert_allclose(
            [p for _, p in ours], [p for _, p in theirs], atol=1e-5
        )
    with pytest.raises(kc.InputError, match="has 5 answers"):
        loaded.answer_n_best(given, questions, 6)
    answerer.extractor = kc.objects.load_detector(str(tmp_path / "yolox.keras"))
    [expected] = answerer.answer([photos[0]], ["what is"])
    command = ["answer", str(tmp_path / "0.png"), "what is", f"--engine={engine}"]
    with pytest.raises(SystemExit):
        main([*command, f"--model={tmp_path / 'answers.keras'}", *detector])
    assert capsys.readouterr().out.startswith(f"{expected} (")


def test_what_cannot_be_exported_is_refused(tmp_path, captioner, monkeypatch, capfd):
    answerer = kc.models.create(
        "mcan",
        question=kc.text.QuestionTokenizer(["what"]),
        answers=["yes", "no"],
        region_dim=6,
        **{"num_layers": 1, "model_dim": 8, "num_heads": 1, "feedforward_dim": 8},
    )
    answerer.save(tmp_path / "model.keras")
    folder = tmp_path / "engine"
    command = ["export", str(tmp_path / "model.keras"), f"--output={folder}"]
    areas = kc.models.create(
        "area_2x2",
        vocabulary=captioner.vocabulary,
        **{"grid_height": 2, "grid_width": 2, "grid_dim": 6},
        **{"num_layers": 1, "model_dim": 8, "num_heads": 1, "feedforward_dim": 8},
    )
    for model, page in (answerer, "TensorList"), (areas, "tf.Roll"):
        lacks = f"LiteRT lacks an operation of '{model.name}', a {type(model).__name__}"
        with pytest.raises(kc.InputError, match=lacks) as raised:
            kc.serving.export_engine(model, folder, "litert")
        assert page not in capfd.readouterr().err  # pages of the converter
        assert raised.value.__cause__ is None
    own = kc.decoding.Decoding(required=["w1"], forbidden=["w2"])
    monkeypatch.setattr(captioner, "decoding", own)
    fixed = "for LiteRT holds a search without texts.* has `forbidden`, `required`:"
    with pytest.raises(kc.InputError, match=fixed):
        kc.serving.export_engine(captioner, folder, "litert")
    monkeypatch.undo()
    for engine in ("openvino", "onnx"):
        monkeypatch.setitem(sys.modules, engine, None)
        with pytest.raises(kc.InputError, match=rf"keras-caption\[{engine}\]"):
            kc.serving.export_engine(captioner, folder, engine)
    for arguments, message in (
        (["onnx", "--detector=yolox.keras"], "onnx reads no photos"),
        (["onnx", "--precision=int8"], "onnx has no --precision"),
        (["litert", "--precision=int8"], "int8 needs --compare"),
        (["litert", f"--compare={tmp_path}"], "int8 needs --compare, no other"),
        (
            ["litert", "--precision=int8", f"--compare={tmp_path}"],
            "compare is for translators and captioners of photos",
        ),
    ):
        with pytest.raises(SystemExit, match=message):
            main([*command, f"--format={arguments[0]}", *arguments[1:]])
    with pytest.raises(kc.InputError, match="A file for OpenVINO is in float32"):
        kc.serving.export_engine(captioner, folder, "openvino", "int8")
    assert not folder.exists()
