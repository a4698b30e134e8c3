"""Records of lists and archives as others write, cut and forge them."""

import collections
import gzip
import io
import json
import os
import tarfile
import time
import unicodedata

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf

import keras_caption as kc
from keras_caption.apps.bulk.files import read_file
from keras_caption.apps.bulk.shards import plan
from keras_caption.formats import record_files
from keras_caption.formats.record_files import parts_of_file, read_part

PHOTO, TEXT, BOTH = ("photo",), ("text",), ("photo", "text")


def open_any(path):
    return gzip.open(path) if path.endswith(".gz") else open(path, "rb")


def records_of(path, fields=TEXT, size=1000, passed_over=None):
    """All records of a file, planned in parts."""
    with open_any(str(path)) as file:
        parts = parts_of_file(file, str(path), size)
    return [
        record
        for part in parts
        for record in read_part(part, open_any, fields, passed_over)
    ]


def texts_of(path, **options):
    return [record.problem or record.text for record in records_of(path, **options)]


UNCLOSED = "The record begins a cell with a quotation mark that is not closed."
LISTS = {
    # An inch, quotes within a text, quotes that are opened or closed once.
    ".tsv": (
        'id\ttext\n1\tA 12" board\n2\tTwo "dogs" run\n3\t"I am here,\n4\tand there."\n'
        '5\t"all in quotes"\n6\t"with ""two"""\n',
        [
            *('A 12" board', 'Two "dogs" run', '"I am here,', 'and there."'),
            *("all in quotes", 'with "two"'),
        ],
    ),
    ".csv": (
        'id,text\n1,A 12" board\n2,"a, b"\n3,"of two\nlines"\n4,"one mark\n'
        '5,"two" marks\n6,"three"" marks\n7,and more\n,\n\n8,"end',
        [
            *('A 12" board', "a, b", "of two lines", UNCLOSED, '"two" marks'),
            *(UNCLOSED, "and more", UNCLOSED),
        ],
    ),
    # Blank rows before the header, and the first line that Excel writes.
    "_blank.csv": ("\n,\nid,text\n1,a\n\n2,b\n", ["a", "b"]),
    "_excel.csv": ("sep=;\nid;text\n1;a, b\n2;b\n", ["a, b", "b"]),
    ".csv.gz": ("id;text\n1;a, b\n", ["a, b"]),
    ".jsonl": ('{"text": "a"}\n\n{"text": "\\"b"}\n', ["a", '"b']),
    ".txt": ('"a\nb"\n', ['"a', 'b"']),
}


@pytest.mark.parametrize("suffix", LISTS)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("size", [1, 3])
def test_no_mark_joins_rows_however_lines_end(suffix, end, size, tmp_path):
    content, expected = LISTS[suffix]
    content = ("\ufeff" + content).replace("\n", end).encode()
    path = tmp_path / f"list{suffix}"
    path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    assert texts_of(path, size=size) == expected


def test_marks_that_are_never_closed_take_time_by_the_length_of_a_list(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,text\n" + 'a","b\n' * 3000)  # each line may be in a cell
    begin = time.process_time()
    assert texts_of(path) == [UNCLOSED] * 3000
    assert time.process_time() - begin < 5


def test_flickr30ks_lists_know_no_quotes(tmp_path):
    rows = 'image_name| comment_number| comment\n1.jpg| 0| "A 12" board\n2.jpg| 0| b"\n'
    (tmp_path / "results.csv").write_text(rows)
    photos = [record.photo for record in records_of(tmp_path / "results.csv", PHOTO)]
    assert photos == [str(tmp_path / "1.jpg"), str(tmp_path / "2.jpg")]


def test_a_line_that_is_too_long_is_one_record(tmp_path, monkeypatch):
    for module in (record_files, kc.formats.text_lines, kc.formats.csv_rows):
        monkeypatch.setattr(module, "LINE_BYTES", 20)
    for end in ("\n", "\r"):
        text = end.join(["a", "b" * 200, "c", "d" * 21, "e", ""])
        (tmp_path / "list.txt").write_bytes(text.encode())
        a, b, c, d, e = texts_of(tmp_path / "list.txt", size=2)
        assert [a, c, e] == ["a", "c", "e"]
        assert "is longer than 20 bytes" in b
        assert "is longer than 20 bytes" in d


def test_ids_are_those_of_the_task_whatever_their_bytes(tmp_path):
    row = {"image_id": 42, "image": "42.jpg", "question": "it?"}
    rows = [{**row, "question_id": 4200 + i} for i in range(2)]
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, rows)))
    ids = {
        fields: [record.id for record in records_of(tmp_path / "q.jsonl", fields)]
        for fields in (PHOTO, BOTH)
    }
    assert ids == {PHOTO: ["42", "42"], BOTH: ["4200", "4201"]}
    for row in rows:
        del row["question_id"]
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, rows)))
    named = [record.id for record in records_of(tmp_path / "q.jsonl", BOTH)]
    assert len({*named}) == 2  # of an image alone, they could not be told apart
    # A record that cannot be read has its own id too, and a blank line is none.
    (tmp_path / "q.jsonl").write_text('{"id": 9, "question": 7, "image": "9.jpg"}\n\n')
    [faulty] = records_of(tmp_path / "q.jsonl", BOTH)
    assert (faulty.id, faulty.problem) == ("9", "The record's text is no text.")
    (tmp_path / "photos.txt").write_text("a.jpg\n\nb.jpg\n\n")
    photos = [record.photo for record in records_of(tmp_path / "photos.txt", PHOTO)]
    assert photos == [str(tmp_path / name) for name in ("a.jpg", "b.jpg")]
    path = tmp_path / "rows.parquet"
    given = [{"id": b"caf\xe9", "text": "a"}, {"id": b"7", "text": "b"}]
    pq.write_table(pa.Table.from_pylist(given), path)
    assert [(r.id, r.text) for r in records_of(path)] == [
        ("caf\udce9", "a"),
        ("7", "b"),
    ]
    numbers = [{"id": 7.0, "text": "a"}, {"id": float("nan"), "text": "b"}]
    pq.write_table(pa.Table.from_pylist(numbers), path)
    assert [record.id for record in records_of(path)] == ["7", f"{path}#2"]


def write_tar(path, members):
    with tarfile.open(path, "w") as tar:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


def test_archives_hold_what_is_visible_and_name_no_files(tmp_path):
    path, passed_over = tmp_path / "a.tar", collections.Counter()
    secret = tmp_path / "secret.jpg"
    secret.write_bytes(b"of this machine")
    names = {"image": str(secret), "path": "../secret.jpg", "__KEY__": "x", "id": 3}
    names[" Photo "] = str(secret)
    members = [("./._.", b"x"), ("./.DS_Store", b"x")]
    for key in ("1", "2"):
        for suffix in ("jfif", "txt"):
            members += [(f"./._{key}.{suffix}", b"x"), (f"./{key}.{suffix}", b"photo")]
    members += [(".Trashes/4.jpg", b"x"), ("3.json", json.dumps(names).encode())]
    members += [("5.jpg", b"photo"), ("5.json", json.dumps(names).encode())]
    write_tar(path, members)
    one, two, three, five = records_of(path, PHOTO, passed_over=passed_over)
    assert (one.id, one.photo) == (f"{path}/./1", b"photo")
    assert (two.id, two.photo) == (f"{path}/./2", b"photo")
    assert "The record has no photo" in three.problem
    assert (five.id, five.photo) == ("3", b"photo")
    assert passed_over == {"hidden": 7}


def test_members_of_archives_are_bounded(tmp_path):
    path = tmp_path / "sparse.tar"
    huge = 40 * 10**9
    names = ("1.jpg", "2.txt", "3.json")
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        for name in names:
            member = tarfile.TarInfo(name)
            content = b"1\n0\n4\n".ljust(512, b"\0") + b"abcd"  # 4 bytes, then a hole
            member.pax_headers = {
                **{"GNU.sparse.major": "1", "GNU.sparse.minor": "0"},
                **{"GNU.sparse.name": name, "GNU.sparse.realsize": str(huge)},
            }
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        last = tarfile.TarInfo("4.jpg")
        last.size = 1
        tar.addfile(last, io.BytesIO(b"x"))
    *found, last = records_of(path, PHOTO)
    assert last.photo == b"x"
    for record in found:
        assert "has 40,000,000,000 bytes; at most" in record.problem
    header = tarfile.TarInfo("name")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, huge
    path.write_bytes(header.tobuf(tarfile.GNU_FORMAT) + b"a" * 4096)
    [record] = records_of(path, PHOTO)
    assert "it has a header of 40,000,000,000 bytes" in record.problem


def write_tfrecords(path, count):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for i in range(count):
            writer.write(example_of(b"%d" % i))


def example_of(text):
    value = tf.train.Feature(bytes_list=tf.train.BytesList(value=[text]))
    features = tf.train.Features(feature={"text": value})
    return tf.train.Example(features=features).SerializeToString()


def test_archives_that_are_cut_anywhere_say_so(tmp_path):
    whole, path = tmp_path / "whole", tmp_path / "cut.tfrecord"
    write_tfrecords(whole, 3)
    content = whole.read_bytes()
    for left in range(0, len(content), 3):
        path.write_bytes(content[:left])
        found, size = records_of(path), len(content) // 3
        texts = [record.text for record in found if not record.problem]
        assert texts == [str(i) for i in range(left // size)]
        assert len(found) == len(texts) + bool(left % size)
    path.write_bytes(content + (2**40).to_bytes(8, "little") + bytes(4))
    assert len(records_of(path)) == 4
    write_tar(tmp_path / "whole.tar", [(f"{i}.jpg", b"x" * 600) for i in range(3)])
    content = (tmp_path / "whole.tar").read_bytes()
    for left in range(1, 3 * (512 + 1024), 128):  # before the mark of the end
        (tmp_path / "cut.tar").write_bytes(content[:left])
        *found, last = records_of(tmp_path / "cut.tar", PHOTO)
        whole = (left + 1536 - 512 - 600) // 1536
        assert [record.photo for record in found] == [b"x" * 600] * whole
        assert "cannot be read" in last.problem


@pytest.mark.parametrize(
    "name",
    [
        *("a.TFREC", "a.record", "a.record-00000-of-00002", "record-00001-of-00002"),
        *("a-tfrecord-0-of-2.tfrecords", "train.tfrec-0-of-1", "tfrecord-1-of-2"),
    ],
)
def test_shards_have_many_names_and_may_be_compressed(name, tmp_path):
    folder = tmp_path / "shards"
    folder.mkdir()
    options = {"GZIP": tf.io.TFRecordOptions("GZIP"), "": None}
    for compression, kind in options.items():
        with tf.io.TFRecordWriter(str(folder / name), kind) as writer:
            writer.write(
                example_of(b"x" * 559_903)
            )  # a length that begins as gzip does
        [shard] = plan([str(folder)], TEXT).shards
        [record] = shard.read(TEXT, collections.Counter())
        assert record.text == "x" * 559_903, compression
    (folder / name).write_bytes((folder / name).read_bytes()[:-1])
    [record] = records_of(folder / name)
    assert record.problem.endswith("cannot be read: it ends within the next one.")


def test_tables_of_others_are_refused_in_a_sentence(tmp_path):
    path = tmp_path / "00000.parquet"
    rows = [{"url": "https://example.com/1.jpg", "caption": "a"}] * 3
    pq.write_table(pa.Table.from_pylist(rows), path)
    [record] = records_of(path, PHOTO)
    assert "00000.parquet has no column of photos: none of file_name" in record.problem
    write_tar(tmp_path / "00000.tar", [("1.jpg", b"x")])
    (tmp_path / "00000_stats.json").write_text("{}")
    planned = plan([str(tmp_path)], PHOTO, 10)
    assert [shard.part.path for shard in planned.shards] == [
        str(tmp_path / "00000.tar")
    ]
    assert planned.passed_over == {".json": 1, ".parquet": 1}


def test_what_a_list_names_is_a_file_of_this_machine(tmp_path):
    for name, problem in (
        ("/dev/zero", "is a pipe or a device"),
        ("https://example.com/1.jpg", "is an address: nothing is downloaded"),
        (str(tmp_path), "cannot be read: Is a directory"),
        (str(tmp_path / "gone.jpg"), "there is no such file"),
    ):
        with pytest.raises(kc.InputError, match=problem):
            read_file(name, 100)
    with open(tmp_path / "sparse.jpg", "wb") as file:
        os.truncate(file.fileno(), 4 * 10**9)
    with pytest.raises(kc.InputError, match="has more than 100 bytes"):
        read_file(str(tmp_path / "sparse.jpg"), 100)
    name = "café niño.jpg"
    folder = tmp_path / unicodedata.normalize("NFD", "Ångström")
    folder.mkdir()
    (folder / unicodedata.normalize("NFD", name)).write_bytes(b"x")
    assert read_file(f"{tmp_path}/Ångström/{name}") == b"x"


def test_plans_tell_changed_inputs_from_others(tmp_path):
    for name in ("a.txt", "b.tfrecord"):
        (tmp_path / name).write_text("one\ntwo\n")
    first = plan([str(tmp_path)], TEXT, 10)
    os.utime(tmp_path / "a.txt", (1, 1))  # a list that is written again
    assert plan([str(tmp_path)], TEXT, 10) == first
    (tmp_path / "a.txt").write_text("one\ntwo!"[:8])
    changed = plan([str(tmp_path)], TEXT, 10)
    assert changed.shards == first.shards
    assert changed.stamps != first.stamps
    os.utime(tmp_path / "b.tfrecord", (1, 1))
    assert plan([str(tmp_path)], TEXT, 10).stamps != changed.stamps
