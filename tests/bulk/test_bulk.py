"""The command `bulk` on Beam's local runner, as a person runs it."""

import errno
import gzip
import importlib.util
import io
import json
import os
import signal
import subprocess
import sys
import tarfile

import keras
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf
from conftest import tiny
from few_sentences import captioner_of_few
from keras_caption.bulk import Job
from PIL import Image
from yolox_file import photo, white_yolox

import keras_caption as kc
from keras_caption.apps.bulk.answers import Answers
from keras_caption.apps.bulk.files import HashedFile
from keras_caption.apps.bulk.shards import size_of_shards
from keras_caption.commands import main
from keras_caption.datasets import registry

WORDS = kc.text.Vocabulary(["dog", "a", "two"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Models, and photos in files of every kind, of which a few are broken."""
    folder = tmp_path_factory.mktemp("bulk")
    keras.utils.set_random_seed(0)
    sizes = {"num_layers": 1, "model_dim": 8, "num_heads": 2, "feedforward_dim": 8}
    categories = list(kc.objects.CATEGORIES)
    sizes |= {"region_dim": 80, "categories": categories}
    captioner = kc.models.create("ngsan", vocabulary=WORDS, **sizes)
    captioner.decoding = captioner.decoding.override(max_length=4, beam_size=2)
    captioner.save(folder / "captioner.keras")
    white_yolox(image_size=None).save(folder / "yolox.keras")
    contents = []
    (folder / "photos" / "more").mkdir(parents=True)
    for i in range(14):
        file = io.BytesIO()
        Image.fromarray(photo(104, 52, [(i % 6, i % 5), (3, 2)][: i % 3])).save(
            file, "png"
        )
        contents.append(file.getvalue())
        name = "more/[x] n.png" if i == 13 else f"{i}.png"
        (folder / "photos" / name).write_bytes(contents[-1])
    (folder / "photos" / "broken.jpg").write_bytes(b"no photo")
    (folder / "photos" / "0.txt").write_text("A text beside a photo.\n")
    (folder / "photos" / ".hidden.png").write_bytes(b"no photo")
    records = folder / "records"
    records.mkdir()
    with tarfile.open(records / "web.tar", "w") as tar:
        for i, content in enumerate(contents):
            for suffix, data in (("json", b'{"id": %d}' % i), ("png", content)):
                member = tarfile.TarInfo(f"at/{i:03}.{suffix}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    rows = [{"image": {"bytes": x, "path": None}} for x in contents]
    pq.write_table(pa.Table.from_pylist(rows), records / "rows.parquet")
    with tf.io.TFRecordWriter(str(records / "of.tfrecord-00000-of-00001")) as writer:
        for content in contents:
            value = tf.train.Feature(bytes_list=tf.train.BytesList(value=[content]))
            features = tf.train.Features(feature={"image/encoded": value})
            writer.write(tf.train.Example(features=features).SerializeToString())
    lines = [f'{i},"photos/{i}.png"' for i in range(13)]
    lines += ['13,"photos/more/[x] n.png"', "14,gone.png", "15", "\xff"]
    content = "id,File_Name\n" + "\n".join(lines)
    (folder / "list.csv").write_bytes(content.encode("latin-1"))
    return folder


def call(capsys, task, *arguments):
    with pytest.raises(SystemExit) as end:
        main(["bulk", task, *map(str, arguments)])
    return end.value.code, *capsys.readouterr()


def rows_of(folder, pattern="*-of-*.jsonl"):
    paths = sorted(folder.glob(pattern))
    return [json.loads(line) for path in paths for line in path.open()]


def rows_of_folder(folder):
    """The rows of a folder of Parquet files, for readers of every kind."""
    rows = pq.read_table(folder).to_pylist()  # passes over `_all`, as pandas and Spark
    # Polars reads all files below a folder, which are to have one suffix and schema.
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    assert {path.suffix for path in files} == {".parquet"}
    tables = [pq.read_table(path) for path in files]
    assert len({str(table.schema.remove_metadata()) for table in tables}) == 1
    assert sum(map(len, tables)) == len(rows)
    for name in ("pandas", "polars"):
        if importlib.util.find_spec(name):
            read = importlib.import_module(name).read_parquet
            assert [*read(folder)["id"]] == [row["id"] for row in rows]
    return rows


# Captions records, and is killed within its fourth shard.
KILLED = """
import os, signal, sys
from keras_caption.apps.bulk.answers import Answers
from keras_caption.apps.bulk.shards import size_of_shards
from keras_caption.commands import main
answer, begun = Answers.__call__, []

def killed(answers, *shard):
    begun.append(0)
    for i, row in enumerate(answer(answers, *shard)):
        if len(begun) == 4 and i == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        yield row

Answers.__call__ = killed
main(sys.argv[1:])
"""


def test_mixed_inputs_are_captioned_killed_and_resumed(
    folder, tmp_path, capsys, caplog, monkeypatch
):
    model = f"--model={folder / 'captioner.keras'}"
    model = [model, f"--detector={folder / 'yolox.keras'}"]
    inputs = [folder / "photos", folder / "records", folder / "list.csv"]
    inputs += [folder / "photos" / "*.jpg"]  # a file that is named twice
    output = tmp_path / "out"
    options = [*inputs, *model, "--shard_size=8", "--n_best=2", "--format=parquet"]
    options.append(f"--output={output / 'c'}")
    command = [sys.executable, "-c", KILLED, "bulk", "caption", *map(str, options)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert "WARNING:root:Resource module" not in done.stderr

    # A killed job leaves whole shards, and one that is no shard yet.
    assert len([*output.rglob("*.partial")]) == 1
    finished = sorted(output.glob("*-of-*.parquet"))
    assert len(finished) == 3
    assert len(pq.read_table(output)) == sum(len(pq.read_table(x)) for x in finished)
    lost, *kept = finished  # as if killed before its description was written
    (output / "_c" / f"{lost.name}.parquet").unlink()
    contents = {path: path.read_bytes() for path in finished}
    times = {path: path.stat().st_mtime_ns for path in kept}
    answer, begun = Answers.__call__, []

    def counted(answers, *shard):
        begun.append(0)
        return answer(answers, *shard)

    monkeypatch.setattr(Answers, "__call__", counted)
    code, printed, errors = call(capsys, "caption", *options)
    assert code == 1, printed + errors
    assert "passed over: .txt: 1, hidden: 1" in errors
    shards = [*output.glob("*-of-*.parquet")]
    assert len(begun) == len(shards) - len(kept)
    assert {path: path.read_bytes() for path in finished} == contents
    assert {path: path.stat().st_mtime_ns for path in kept} == times
    begun.clear()
    with monkeypatch.context() as patch:
        patch.setattr(Job, "load", None)  # nothing to do needs no model
        code, again, _ = call(capsys, "caption", *options)
    assert (again, begun) == (printed, [])

    # A full disk ends the job in one sentence, which names the file.
    def write(file, content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    kept[0].rename(output / "aside")
    with monkeypatch.context() as patch:
        patch.setattr(HashedFile, "write", write)
        code, _, _ = call(capsys, "caption", *options)
    (output / "aside").rename(kept[0])
    assert code == (
        "error: The pipeline failed: OSError: [Errno 28] No space left on device: "
        f"'{kept[0]}'; rerun the same command to resume."
    )
    assert "Traceback" not in caplog.text
    assert not [*output.rglob("*.partial")]
    begun.clear()

    # A shard that a full disk has cut is written again, and one with another byte.
    cut, other = kept
    cut.write_bytes(contents[cut][:500])
    changed = bytearray(contents[other])
    changed[50] ^= 1
    other.write_bytes(changed)
    code, again, _ = call(capsys, "caption", *options)
    assert (again, len(begun)) == (printed, 2)
    assert {path: path.read_bytes() for path in finished} == contents

    # An input that has changed, of the same size, is another one.
    listed = folder / "list.csv"
    before = listed.read_bytes()
    listed.write_bytes(before.replace(b"12.png", b"11.png"))
    code, _, _ = call(capsys, "caption", *options)
    assert "was begun with other inputs" in code
    listed.write_bytes(before)

    # No record is lost, and each fault is a row, for readers of the whole folder too.
    rows = rows_of_folder(output)
    nothing = "Nothing is detected that the model knows."
    empty = [row for row in rows if row["error"] == nothing]
    assert f"Captioned 45 of {len(rows)} records; 4 have an error, in 25" in printed
    assert (len(rows), len(empty)) == (74, 25)
    for row in empty:
        assert (row["text"], row["objects"]) == ("", [])
        row["error"] = None
    faults = {row["id"]: row["error"] for row in rows if row["error"]}
    listed = str(folder / "list.csv")
    assert "is not an image" in faults.pop(str(folder / "photos" / "broken.jpg"))
    assert "there is no such file" in faults.pop("14")
    assert "has 1 columns; the header has 2" in faults.pop(f"{listed}#17")
    assert "is not UTF-8" in faults.pop(f"{listed}#18")
    assert not faults
    assert "         1 as: 14: " in errors

    # As `keras-caption caption` captions the same photos, whatever they come in.
    alone = tmp_path / "caption.jsonl"
    photos = str(folder / "photos")
    with pytest.raises(SystemExit):
        main(["caption", photos, *model, "--no-second_opinion", f"--output={alone}"])
    capsys.readouterr()
    captions = {row["photo"]: row for row in map(json.loads, alone.open())}
    names = [f"{i}.png" for i in range(13)] + ["more/[x] n.png"]
    expected = [captions.pop(str(folder / "photos" / name)) for name in names]
    assert not captions
    of_photo = {row["id"]: row for row in rows if not row["error"]}
    packed = folder / "records"
    for i, (name, row) in enumerate(zip(names, expected, strict=True)):
        for key in (
            str(folder / "photos" / name),
            f"{packed / 'rows.parquet'}#{i + 1}",
            f"{packed / 'of.tfrecord-00000-of-00001'}#{i + 1}",
        ):
            found = of_photo.pop(key)
            assert found["text"] == row["caption"]
            for item, known in zip(found["objects"], row["objects"], strict=True):
                assert item | known == item  # else null, such as a colour
            assert found["score"] == pytest.approx(row["score"], abs=2e-4)
            assert len(found["n_best"]) == (2 if row["objects"] else 0)
    by_id = [row for row in rows if row["id"].isdigit() and not row["error"]]
    assert len(of_photo) == 14
    assert len(by_id) == 28  # of the tar and of the list
    assert all(row["text"] == expected[int(row["id"])]["caption"] for row in by_id)

    other = tmp_path / "other"
    other.mkdir()
    (other / "c-1-of-1").touch()
    for wrong, message in (
        ([*options, "--beam_size=3"], "was begun with other inputs, another model"),
        ([*options, "--n_best=0"], "--n_best"),
        ([*options, f"--output={output}/"], f"{output}/ is a folder: name the begin"),
        ([folder / "gone", *model], "No file is called"),
        ([*options, "--direct_workers=2"], "no option --direct_workers"),
        ([*options, "--direct_num_workers=x"], "options are --name=value"),
        ([*options, "--runner=none.Runner"], "none.Runner cannot be used: No module"),
        ([*options, f"--output={other / 'c'}"], "c-1-of-1 exists, and was not"),
    ):
        code, _, errors = call(capsys, "caption", f"--output={output / 'c'}", *wrong)
        assert message in str(code) + errors


def test_captions_have_evidence_whatever_the_options(folder, tmp_path, capsys):
    words = kc.text.Vocabulary(["a", "and", "cat", "dog", "dogs", "on", "two"])
    captioner_of_few(words).save(tmp_path / "model.keras")
    files = [tmp_path / f"{i}.png" for i in range(2)]
    for file, cells in zip(files, [[(1, 2)], [(1, 2), (4, 5)]], strict=True):
        Image.fromarray(photo(416, 416, cells)).save(file)
    command = [*files, f"--detector={folder / 'yolox.keras'}"]
    # Details would make "a dog" of two into "dogs".
    command += [f"--model={tmp_path / 'model.keras'}", "--format=jsonl", "--no-details"]
    search = ["--n_best=9", "--beam_size=9"]
    of_two = {"a dog", "dogs", "two dogs"}
    for i, (options, expected) in enumerate(
        (
            (search, [{"a dog"}, of_two]),
            ([*search, "--forbidden=two", "--min_length=2"], [{"a dog"}, {"a dog"}]),
            ([*search, "--required=two"], [set(), {"two dogs"}]),
            (["--n_best=30", "--temperature=1000", "--seed=3"], [{"a dog"}, of_two]),
        )
    ):
        output = tmp_path / str(i)
        call(capsys, "caption", *command, *options, f"--output={output / 'c'}")
        for row, texts in zip(rows_of(output), expected, strict=True):
            assert {x["text"] for x in row["n_best"]} == texts
            assert bool(texts) != ("leave none" in (row["error"] or ""))


def test_sentences_are_translated_as_by_the_command(tmp_path, capsys):
    keras.utils.set_random_seed(1)
    tokenizer = kc.text.CharacterTokenizer("abc")
    model = kc.models.LSTMTranslator(tokenizer, tokenizer, num_layers=1, model_dim=8)
    model.save(tmp_path / "model.keras")
    sentences = ["ab", "", "c", "a" * 2000, "cab"]
    (tmp_path / "news.en").write_text("\n".join(sentences) + "\n")
    rows = [{"id": f"n{i}", "text": x} for i, x in enumerate(sentences)]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    with gzip.open(tmp_path / "news.jsonl.gz", "wt") as file:
        file.write(lines + "{no JSON\n\n[]\n")
    inputs = [tmp_path / "news.en", tmp_path / "news.jsonl.gz"]
    options = ["--format=parquet", "--shard_size=3", "--max_length=6", "--n_best=2"]
    code, printed, _ = call(
        *(capsys, "translate", tmp_path / "model.keras", *inputs, *options),
        f"--output={tmp_path / 'out' / 'news'}",
    )
    assert code == 1
    assert "Translated 8 of 12 records; 4 have an error" in printed
    assert len([*(tmp_path / "out").glob("news-*.parquet")]) == 5
    rows = rows_of_folder(tmp_path / "out")
    expected = model.translate(sentences, report=lambda *_: None, n=2, max_length=6)
    named = {row["id"]: row for row in rows}
    for i, (sentence, best) in enumerate(zip(sentences, expected, strict=True)):
        for name in (f"{tmp_path / 'news.en'}#{i + 1}", f"n{i}"):
            row = named.pop(name)
            if len(sentence) > 1000:
                assert "The sentence has more than 1,024 tokens" in row["error"]
                continue
            assert row["error"] is None
            expected_texts = [kc.text.one_line(x) for x, _ in best]
            assert [x["text"] for x in row["n_best"]] == expected_texts
            scores = [x["score"] for x in row["n_best"]]
            assert scores == pytest.approx([score for _, score in best], abs=2e-4)
    assert "is not JSON" in named.pop(f"{tmp_path / 'news.jsonl.gz'}#6")["error"]
    assert "no JSON object" in named.pop(f"{tmp_path / 'news.jsonl.gz'}#8")["error"]
    assert not named


def test_questions_about_photos_are_answered(folder, tmp_path, capsys, monkeypatch):
    questions = kc.text.QuestionTokenizer(["is", "it", "red"])
    sizes = tiny("mcan", num_layers=1, pooling_dim=8, fusion_dim=12, region_dim=80)
    model = kc.models.create(
        "mcan",
        answers=["yes", "no", "two"],
        question=questions,
        categories=list(kc.objects.CATEGORIES),
        **sizes,
    )
    model.save(tmp_path / "model.keras")
    photos = [str(folder / "photos" / f"{i}.png") for i in (1, 2, 1)]
    asked = ["is it red?", "", "it?"]
    lines = [f'{x},"{q}"' for x, q in zip(photos, asked, strict=True)]
    content = "\n".join(["image,question", *lines, "gone.png,is it?"])
    (tmp_path / "questions.csv").write_text(content)
    options = ["--n_best=2", f"--model={tmp_path / 'model.keras'}"]
    registers = 'import keras_caption as kc\nkc.datasets.register("of_bulk", print)\n'
    (tmp_path / "mine.py").write_text(registers)  # which fails if it is run twice
    monkeypatch.setattr(registry, "DATASETS", {**registry.DATASETS})
    options.append(f"--import={tmp_path / 'mine.py'}")
    options += [f"--detector={folder / 'yolox.keras'}", f"--output={tmp_path / 'a'}"]
    code, printed, _ = call(capsys, "answer", tmp_path / "questions.csv", *options)
    assert code == 1
    assert "Answered 3 of 4 records; 1 have an error" in printed
    *answered, gone = rows_of(tmp_path)
    assert "gone.png cannot be read: there is no such file" in gone["error"]
    model.extractor = kc.objects.load_detector(str(folder / "yolox.keras"))
    best = model.answer_n_best(photos, asked, 2)
    for row, answers in zip(answered, best, strict=True):
        assert [x["text"] for x in row["n_best"]] == [text for text, _ in answers]
        assert row["confidence"] == pytest.approx(answers[0][1], abs=1e-4)
    assert "of_bulk" in registry.DATASETS
    code, _, _ = call(capsys, "caption", *options[1:], folder / "photos")
    assert "model.keras is for bulk answer, not for caption." in code


def test_features_are_those_of_prepare(folder, tmp_path, capsys):
    rows = [f"{i}.png,A dog.,{s}" for i, s in enumerate(("train", "val", "test") * 2)]
    content = "\n".join(["image,caption,split", *rows, "gone.png,A dog.,train"])
    (tmp_path / "captions.csv").write_text(content)
    options = ["--photos", folder / "photos", "--captions", tmp_path / "captions.csv"]
    options += ["--backbone=objects", f"--detector={folder / 'yolox.keras'}"]
    options += ["--shard_size=2"]
    with pytest.raises(SystemExit):
        main(["prepare", *map(str, options), f"--output_dir={tmp_path / 'alone'}"])
    alone = capsys.readouterr().out
    _, printed, errors = call(
        capsys, "features", *options, f"--output_dir={tmp_path / 'bulk'}"
    )
    assert "train        2 of 12 images" in printed, printed + errors
    assert printed.splitlines()[:-1] == alone.splitlines()[:-1]
    files = {path.name for path in (tmp_path / "alone").iterdir()}
    assert {path.name for path in (tmp_path / "bulk").iterdir()} == files
    for path in (tmp_path / "alone").glob("*.tfrecord-*"):
        assert path.read_bytes() == (tmp_path / "bulk" / path.name).read_bytes()
    begun = kc.datasets.load("prepared", tmp_path / "bulk")
    assert begun.info.splits["test"].num_examples == 2
    # Without a photo to train on, a dataset is of no use: that is a failure.
    gone = content.replace("0.png", "gone0.png").replace("3.png", "gone3.png")
    (tmp_path / "captions.csv").write_text(gone)
    code, printed, _ = call(
        capsys, "features", *options, f"--output_dir={tmp_path / 'none'}"
    )
    assert "train        0 of 14 images" in printed
    assert "None of the 14 images for training could be prepared" in code


def test_few_photos_are_shared_by_workers_and_many_fill_shards():
    sizes = {count: size_of_shards(count) for count in (1, 32, 100, 500, 8000, 10**6)}
    assert sizes == {1: 32, 32: 32, 100: 32, 500: 63, 8000: 1000, 10**6: 1000}
