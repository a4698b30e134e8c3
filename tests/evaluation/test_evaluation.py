import json
import subprocess

import numpy as np
import pycocoevalcap.eval
import pytest
from conftest import SHARED, run_script
from pycocotools.coco import COCO

import keras_caption as kc
from keras_caption.evaluation import coco_results, metrics

CAPTIONS = {
    "images": [{"id": i, "width": 10, "height": 10} for i in (3, 1, 2, 4)],
    "annotations": [
        {"id": 0, "image_id": 1, "caption": "A man's dog, on a T-shirt."},
        {"id": 1, "image_id": 1, "caption": "A dog on a shirt"},
        {"id": 2, "image_id": 2, "caption": "Two cats (black) sleep."},
        {"id": 3, "image_id": 2, "caption": "two cats are sleeping"},
        {"id": 4, "image_id": 3, "caption": "a red bus drives down the street"},
        {"id": 5, "image_id": 4, "caption": "nobody captions this one"},
    ],
}
RESULTS = [
    {"image_id": 1, "caption": "a dog on a shirt"},
    {"image_id": 2, "caption": "two cats that sleep"},
    {"image_id": 3, "caption": "a bus on the street"},
]


@pytest.fixture
def files(tmp_path):
    (tmp_path / "captions.json").write_text(json.dumps(CAPTIONS))
    (tmp_path / "results.json").write_text(json.dumps(RESULTS))
    return tmp_path / "captions.json", tmp_path / "results.json"


class NoSpice:
    """SPICE where its models can't be had."""

    def __init__(self):
        raise OSError("no network")


class ZeroSpice:
    def compute_score(self, gts, res):
        return 0.0, [0.0] * len(gts)

    def method(self):
        return "SPICE"


def test_figures_are_pycocoevalcaps_own_with_java_out_of_a_wheel(files, monkeypatch):
    monkeypatch.setenv("PATH", "")  # no java there
    monkeypatch.setattr(metrics, "Spice", NoSpice)
    started = []

    class Recorded(subprocess.Popen):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Recorded)
    scores, missing = kc.evaluation.score_files(*files)
    assert len(started) == 3  # the tokenizer twice, and METEOR
    assert all(process.poll() is not None for process in started)
    assert missing == {"SPICE": "n/a: OSError: no network"}

    monkeypatch.setattr(pycocoevalcap.eval, "Spice", ZeroSpice)
    truth = COCO(str(files[0]))
    theirs = pycocoevalcap.eval.COCOEvalCap(truth, truth.loadRes(str(files[1])))
    theirs.params["image_id"] = theirs.cocoRes.getImgIds()
    with kc.evaluation.java.java_on_path():
        theirs.evaluate()
    names = {"CIDEr-D": "CIDEr", "ROUGE-L": "ROUGE_L"}
    assert scores == {
        name: theirs.eval[names.get(name, name.replace("BLEU-", "Bleu_"))]
        for name in kc.evaluation.METRICS[:-1]
    }


def test_cider_is_the_oracles():
    path = SHARED / "oracles" / "ciderd.npz"
    if not path.exists():
        pytest.skip("the oracles are not beside the project")
    with np.load(path, allow_pickle=False) as oracle:
        captions = dict(enumerate(map(str, oracle["hyps"])))
        references = {i: list(map(str, row)) for i, row in enumerate(oracle["refs"])}
        expected = float(oracle["score"])
    assert abs(kc.evaluation.cider(captions, references) - expected) < 1e-9


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ([{"image_id": 9, "caption": "x"}], "none of its images has captions in"),
        (RESULTS + RESULTS[:1], r"\[3\]\.image_id is 1, as in \[0\]"),
        ([{"image_id": 1}], r"results\.json: \[0\]\.caption: Field required"),
        (None, "not valid JSON"),
    ],
)
def test_wrong_results_are_named(files, results, message):
    text = "[{" if results is None else json.dumps(results)
    files[1].write_text(text)
    with pytest.raises(kc.InputError, match=message):
        kc.evaluation.score_files(*files)


def test_the_command_says_what_is_wrong_in_one_line(files):
    files[1].write_text("[{")
    done = run_script("-m", "keras_caption.evaluation", *files)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"error: {files[1]}: not valid JSON")
    assert "Traceback" not in done.stderr


def test_captions_of_some_images_only(files, monkeypatch, capsys):
    """As the server's c40, beside its c5."""

    def count(captions, references):
        assert captions.keys() <= references.keys()
        return {"CIDEr-D": len(captions)}, {"SPICE": "n/a"}

    monkeypatch.setattr(coco_results, "score", count)
    few = files[0].with_name("c40.json")
    image = {"id": 2, "width": 10, "height": 10}
    annotations = [a for a in CAPTIONS["annotations"] if a["image_id"] == 2]
    few.write_text(json.dumps({"images": [image], "annotations": annotations}))
    text = kc.evaluation.score_table([files[0], few], files[1])
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("3 images are scored; 1 in")
    assert first.endswith("have no result, 0 results no captions there")
    assert second.startswith("1 images are scored; 0 in")
    assert second.endswith("have no result, 2 results no captions there")
    assert [row.split("|")[1].strip() for row in text.splitlines()[2:4]] == [
        "captions",
        "c40",
    ]
    assert "| 300.0 |" in text
    assert text.endswith("SPICE: n/a")
