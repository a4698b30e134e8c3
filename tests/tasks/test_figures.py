"""Figures of the papers: what they draw is what runs recorded and models compute."""

import functools
import json

import numpy as np
import photo_runs
import pytest
from conftest import tiny
from keras_caption.results import Example, Line
from matplotlib.colors import to_hex
from photo_runs import finished

import keras_caption as kc
from keras_caption.apps.report.figures import (
    attention_figure,
    captions_figure,
    curves_figure,
)
from keras_caption.apps.report.run_report import RunRecord
from keras_caption.apps.report.visualization import attention
from keras_caption.commands import figure


def record(folder, scores, model="san", seed=0, objective="cross-entropy"):
    """The record of a run whose epochs have such scores."""
    folder.mkdir(parents=True)
    epochs = [
        {"epoch": i, "iterations": i, "scale": 100, "val_cider": float(score)}
        for i, score in enumerate(scores, start=1)
    ]
    (folder / "history.json").write_text(json.dumps(epochs))
    config = {"seed": seed, "data": {"dataset": "scenes"}, "model": {"name": model}}
    return RunRecord(folder, {"model": model, "objective": objective, "config": config})


def test_curves_are_means_over_seeds(tmp_path):
    runs = [
        record(tmp_path / "a", [50, 60, 70]),
        record(tmp_path / "b", [52, 64], seed=1),
        record(tmp_path / "c", [1, 2], "nsan"),
        record(tmp_path / "c" / "scst", [3, 4], "nsan", 0, "self-critical"),
    ]
    [panel] = curves_figure(runs).axes
    mean, whole, switch = panel.lines
    assert mean.get_label() == "san"
    np.testing.assert_allclose(mean.get_ydata(), [51, 62])
    assert whole.get_label() == "nsan + SCST"
    np.testing.assert_allclose(whole.get_ydata(), [1, 2, 3, 4])
    assert set(switch.get_xdata()) == {2.5}
    assert panel.get_ylabel() == "validation CIDEr-D"
    assert mean.get_linestyle() != whole.get_linestyle()


@pytest.fixture(scope="module")
def geometric(vocabulary):
    sizes = tiny("gsan", geometry="content_independent", num_layers=1)
    return kc.models.create("gsan", vocabulary=vocabulary, **sizes)


@pytest.mark.parametrize("over", ["position", "size"])
def test_geometric_weights_are_those_of_the_layer(geometric, over):
    drawn = kc.visualization.geometric_weight_figure(geometric, over)
    panel = drawn.axes[1]  # the other two are 1
    values = panel.collections[0].get_array().reshape(60, 60)
    x, y = 0.525, 2.025
    row, column = 40, 10  # of their cell
    dx, dy, dw, dh = (x, y, 1, 1) if over == "position" else (1, 1, x, y)
    w, h = 0.1, 0.08
    centres = np.array([[0.3, 0.3], [0.3 + dx * w, 0.3 + dy * h]])
    sides = np.array([[w, h], [w / dw, h / dh]])
    boxes = np.concatenate([centres - sides / 2, centres + sides / 2], axis=1)
    bias = geometric.encoder.get_layer("encoder_0").attention.bias
    pairs = bias(None, None, boxes[None].astype("float32"))
    expected = np.array(pairs)[0, :, 0, 1].mean()
    assert values[row, column] == pytest.approx(expected, rel=1e-4)
    assert values.std() > 0


def test_a_model_without_geometric_weights_is_refused(captioner):
    with pytest.raises(kc.InputError, match='geometry="content_independent"'):
        kc.visualization.geometric_weight_figure(captioner, "size")


def test_captions_of_two_runs_stand_beside_a_persons(tmp_path, monkeypatch):
    runs = [finished(tmp_path / "a", 9), finished(tmp_path / "b", 9, 1, 0.2)]
    drawn = captions_figure(runs)
    texts = [text.get_text() for panel in drawn.axes for text in panel.texts]
    assert len(texts) == 8
    said = "san + SCST, seed={}: a </script> ball".format
    expected = [said(0), said(1), "GT: A red ball."]
    assert all(text.split("\n") == expected for text in texts)
    [_] = captions_figure(runs, ["3"]).axes[0].images
    with pytest.raises(kc.InputError, match="no test image '77'"):
        captions_figure(runs, ["77"])
    monkeypatch.setattr(photo_runs, "Line", functools.partial(Line, answer="red"))
    with pytest.raises(kc.InputError, match=r"shows captions, but .* answers"):
        captions_figure(runs)
    example = functools.partial(Example, source="ein Ball")
    monkeypatch.setattr(photo_runs, "Example", example)
    with pytest.raises(kc.InputError, match=r"shows captions, but .* translates"):
        captions_figure(runs)


def test_attended_areas_are_framed_for_words_that_differ(tmp_path, monkeypatch):
    monkeypatch.setattr(attention, "OWN", 0.35)  # "a" has a third of its own
    runs = [finished(tmp_path / "a", 4), finished(tmp_path / "b", 4, 1, 0.2)]
    drawn = attention_figure(runs)
    rows = [panel.get_title("left").split("\n") for panel in drawn.axes]
    words = [row[0] for row in rows]
    assert words[:4] == ["all words", "</script>", "ball", ""]
    assert words[5] == "all words"  # of the other run
    assert rows[0][1:] == ["\u2501 <b> 42%", "\u2505 ball 40%"]
    assert not any(panel.texts for panel in drawn.axes)  # none on the frames
    [frame] = drawn.axes[1].patches  # of 97 %; the next has less than a tenth
    x, y, width, height = frame.get_bbox().bounds
    assert (x, y) == (79.5, -0.5)  # the right half of 160 x 120, its upper half
    assert (width, height) == (80, 60)
    assert to_hex(frame.get_edgecolor()) == "#000000"


def test_the_command_writes_a_new_file(tmp_path, geometric, capsys, monkeypatch):
    monkeypatch.setattr(kc.models, "load", lambda _: geometric)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.keras").touch()
    figure.main(["size", "model.keras", "--output=size.svg"])
    assert (tmp_path / "size.svg").read_text().startswith("<?xml")
    monkeypatch.setattr(figure, "DPI", 50)
    figure.main(["position", "model.keras"])
    assert (tmp_path / "position.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(kc.InputError, match="exists already"):
        figure.main(["position", "model.keras"])
    with pytest.raises(kc.InputError, match="--images is for captions and attention"):
        figure.main(["position", "model.keras", "--images=3"])
