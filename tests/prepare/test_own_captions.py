"""Captions of a user's own, as CSV or text files, and the splits of their photos."""

import collections
import json
import unicodedata

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import keras_caption as kc
from keras_caption.apps.prepare.own_captions import split_by_hash
from keras_caption.formats import img2dataset
from keras_caption.formats.coco import read_domains


@pytest.fixture
def folder(tmp_path):
    """Photos in a folder `photos`, beside which captions are written."""
    for name in ("dog.jpg", "cat.png", "trip/sea.jpg", "trip/dog.jpg"):
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 4)).save(path)
    return tmp_path


def outcomes(folder, *captions):
    """By split, the captions of each photo, or why it is skipped."""
    photos = folder / "photos"
    captions = [name if "=" in name else folder / name for name in captions]
    records = kc.prepare.records_of_photos(photos, captions)
    found, ids = collections.defaultdict(dict), set()
    for split, of_split in records.items():
        for record in of_split:
            ids.add(record.image_id)
            try:
                record.read()
                outcome = record.captions
            except kc.InputError as error:
                outcome = str(error).replace(f"{folder}/", "")
            found[split][record.name.removeprefix(f"{photos}/")] = outcome
    assert len(ids) == sum(map(len, records.values()))
    return dict(found)


def test_rows_of_csv_are_grouped_by_photo_and_split(folder):
    (folder / "own.csv").write_text(
        "\ufeffPhoto,text,split,rating\n"
        'dog.jpg,"A dog, asleep.",train,5\n'
        "./trip/sea.jpg,The sea.,Validation,4\n\n"
        'dog.jpg,"A ""good"" dog.",train,3\n'
        "away.jpg,Nobody.,test,1\n",
        encoding="utf-8",
    )
    assert outcomes(folder, "own.csv") == {
        "train": {
            "dog.jpg": ["A dog, asleep.", 'A "good" dog.'],
            "cat.png": "photos/cat.png has no captions.",
            "trip/dog.jpg": "photos/trip/dog.jpg has no captions.",
        },
        "val": {"trip/sea.jpg": ["The sea."]},
        "test": {"away.jpg": "There is no file photos/away.jpg."},
    }


def test_files_and_folders_are_named_after_splits(folder):
    (folder / "train.txt").write_text("image,caption\ndog.jpg,A dog.\n")
    (folder / "my_val").mkdir()
    (folder / "my_val" / "sea.txt").write_text("The sea.\n\nThe beach.")
    found = outcomes(folder, "train.txt", "my_val")
    assert found["train"]["dog.jpg"] == ["A dog."]
    assert found["val"] == {"trip/sea.jpg": ["The sea.", "The beach."]}
    (folder / "val.csv").write_text("image,caption\ndog.jpg,A dog.\n")
    with pytest.raises(kc.InputError, match=r"val\.csv: photo dog\.jpg is listed in"):
        outcomes(folder, "train.txt", "val.csv")


FLICKR = {  # as their authors, and spreadsheets, write them
    "Flickr8k.token.txt": (
        'dog.jpg#0\tA dog , asleep .\ndog.jpg#1\t" Good " dog .\ncut\n'
        "sea.jpg#0\tSea .\n"
    ),
    "results.csv": (
        "image_name| comment_number| comment\n"
        'dog.jpg| 0| A dog , asleep .\ndog.jpg| 1| " Good " dog .\n'
        "dog.jpg| 2   Cut .\nsea.jpg| 0| Sea .\n"
    ),
    "tabs.tsv": (
        'image\tcaption\ndog.jpg\tA dog , asleep .\ndog.jpg\t""" Good "" dog ."\n'
        "trip/sea.jpg\tSea .\ndog.jpg\t...\n"
    ),
    "semicolons.csv": (
        "\ufefffile_name;rating;text\r\ndog.jpg;5;A dog , asleep .\r\n"
        'dog.jpg;5;""" Good "" dog ."\r\n'
        '"C:\\My photos\\trip\\sea.jpg";;Sea .\r\ncut\r\n'
    ),
    "Windows.csv": (
        'image,caption\ndog.jpg,"A dog , asleep ."\n.\\dog.jpg,""" Good "" dog ."\n'
        "trip\\sea.jpg,Sea .\ntrip\\sea.jpg,\n"
    ),
}


@pytest.mark.parametrize("name", FLICKR)
def test_captions_are_read_as_people_have_them(folder, capsys, name):
    (folder / name).write_text(FLICKR[name], encoding="utf-8", newline="")
    found = outcomes(folder, f"train={folder / name}")["train"]
    assert found.pop("dog.jpg") == ["A dog , asleep .", '" Good " dog .']
    assert found.pop("trip/sea.jpg") == ["Sea ."]
    assert all("has no captions" in problem for problem in found.values())
    printed = capsys.readouterr().out
    assert f"{folder / name}: photos: 2 for train\n" in printed
    assert printed.count("skipped: ") == 1
    with pytest.raises(kc.InputError, match=r"is cut: it|has no words"):
        kc.prepare.records_of_photos(folder / "photos", [folder / name], strict=True)


def test_what_a_file_is_for_is_said_and_printed(folder, capsys):
    for name in ("a", "b", "test_and_val", "dev"):
        photo = {"a": "dog.jpg", "b": "cat.png", "dev": "sea.jpg"}.get(name, "x.jpg")
        (folder / f"{name}.csv").write_text(f"image,caption\n{photo},Text.\n")
    found = outcomes(folder, f"test={folder / 'a.csv'}", "dev.csv")
    assert found["test"] == {"dog.jpg": ["Text."]}
    assert found["val"] == {"trip/sea.jpg": ["Text."]}
    printed = capsys.readouterr().out
    assert f"{folder / 'a.csv'}: photos: 1 for test\n" in printed
    assert f"{folder / 'dev.csv'}: photos: 1 for val\n" in printed
    (folder / "c.csv").write_text("image,caption,split\nsea.jpg,Text.,val\n")
    for captions, message in {
        ("dev.csv", "b.csv"): r"b\.csv has no split, unlike .*dev\.csv: say what it is "
        r"for, as in --captions train=\S*b\.csv \(or val=, test=\)\.",
        ("c.csv", "b.csv"): r"b\.csv has no split, unlike .*c\.csv: say",
        ("test_and_val.csv",): r"has test and val in its name: say",
        (f"val={folder / 'c.csv'}",): "cannot be for val only: it has a column split",
        ("valid=a.csv",): "valid=a.csv: a split is train, val or test",
    }.items():
        with pytest.raises(kc.InputError, match=message):
            outcomes(folder, *captions)


def test_text_files_beside_photos(folder):
    texts = {"dog": "A dog.\n", "trip/dog": "Another dog.", "cat": " \n", "no": "No."}
    texts["trip/sea.jpg"] = "The sea."  # beside photos of the same name
    for name, text in texts.items():
        (folder / "photos" / f"{name}.txt").write_text(text)
    found = {k: v for of in outcomes(folder, "photos").values() for k, v in of.items()}
    assert found == {
        "dog.jpg": ["A dog."],
        "trip/dog.jpg": ["Another dog."],
        "cat.png": "photos/cat.txt has no captions.",
        "no": "photos/no.txt has 0 photos.",
        "trip/sea.jpg": ["The sea."],
    }


def test_missing_photos_take_no_place_in_a_split(folder):
    rows = [f"{name},Text." for name in ("dog.jpg", "cat.png", "trip/sea.jpg")]
    rows += [f"{i}.jpg,Text." for i in range(40)]
    (folder / "own.csv").write_text("\n".join(["file_name,text", *rows]))
    found = outcomes(folder, "own.csv")
    assert list(found["val"].values()) == list(found["test"].values()) == [["Text."]]
    assert len(found["train"]) == 42


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_names_are_the_same_however_accents_are_written(tmp_path, form):
    """Files from a Mac are called in NFD, lists of them in NFC, or the other way."""
    other = {"NFC": "NFD", "NFD": "NFC"}[form]
    names = ["café.png", "trip/niño.png", "dog.png"]
    for name in names:
        path = tmp_path / "photos" / unicodedata.normalize(form, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 4)).save(path)
    typed = [unicodedata.normalize(other, name) for name in names]
    rows = [f"{name},A dog.,train" for name in (typed[0], typed[1][5:], typed[2])]
    (tmp_path / "own.csv").write_text("\n".join(["image,caption,split", *rows]))
    for name in typed:
        path = (tmp_path / "train" / name).with_suffix(".txt")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("A dog.")
    expected = {unicodedata.normalize(form, name): ["A dog."] for name in names}
    for captions in ("own.csv", "train"):
        assert outcomes(tmp_path, captions) == {"train": expected}
    assert kc.features.read_photo(tmp_path / "photos" / typed[1]).shape == (4, 4, 3)
    folder = tmp_path / unicodedata.normalize(form, "Ångström")
    (tmp_path / "photos").rename(folder)
    other_form = tmp_path / unicodedata.normalize(other, "Ångström")
    records = kc.prepare.records_of_photos(other_form, [tmp_path / "own.csv"])
    assert [record.read().shape for record in records["train"]] == [(4, 4, 3)] * 3


def test_splits_by_hash_are_tenths_and_never_empty():
    names = [f"{i}.jpg" for i in range(40)]
    splits = split_by_hash(names)
    assert splits == split_by_hash(reversed(names))
    counts = collections.Counter(splits.values())
    assert counts == {"train": 32, "val": 4, "test": 4}
    assert sorted(split_by_hash(names[:3]).values()) == ["test", "train", "val"]
    assert len(split_by_hash([*names, "Mu\udcf1oz.jpg"])) == len(names) + 1
    # Known values: a split must not change with the version.
    test = [name for name in names if splits[name] == "test"]
    assert test == ["26.jpg", "34.jpg", "36.jpg", "38.jpg"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"one column file_name or .*, and has ''"),
        (b"image,title\n", "one column caption or text"),
        (b"image,photo,text\n", "one column file_name or image"),
        (b"image,text\n", "has no rows of captions"),
        (b"image,text\na.jpg,\n", r"line 2 has no words: ''"),
        (b"image;text\na.jpg\n", "line 2 is cut: it has 1 cells, and the header 2"),
        (b"a.jpg#0\tA dog\n../a.jpg#1\tA dog\n", "line 2: file_name: .* stay within"),
        (b"image,text\na.jpg,A dog, asleep.\n", "line 2 has 3 cells, and the header 2"),
        (b"image,text\na.jpg,caf\xe9\n", "line 2, is not UTF-8 at byte 10"),
        (
            b"PK\x03\x04\x14",
            r"own\.csv is a ZIP archive, such as a workbook of Excel; ",
        ),
        (b"\x1f\x8b\x08\x08", r"own\.csv is compressed by gzip without the suffix"),
        ("image,text\n".encode("utf-16"), r"own\.csv is UTF-16; text in UTF-8 is exp"),
        (b"i\0m\0a\0", r"own\.csv is binary; text in UTF-8 is expected"),
        (
            b'image,text\na.jpg,"A dog\n',
            "line 2, begins a cell with a quotation mark that is not closed",
        ),
        (b"image,text\n../a.jpg,A dog\n", "line 2: file_name: .* stay within"),
        (b"image,text,split\na.jpg,A dog,rest\n", "line 2: split: .* 'val' or 'test'"),
        (
            b"image,text,split\na.jpg,A,train\na.jpg,B,val\n",
            r"line 3: a\.jpg is for val, and for train above",
        ),
        (b"image,text\naway.jpg,A dog\n", r"No photo has captions: there is no file"),
    ],
)
def test_faults_of_csv_are_named(folder, content, message):
    (folder / "own.csv").write_bytes(content)
    with pytest.raises(kc.InputError, match=message):
        outcomes(folder, "own.csv")


def test_faults_of_text_files_are_named(folder):
    with pytest.raises(kc.InputError, match=r"no text file in .*photos \(\.txt\)"):
        outcomes(folder, "photos")
    (folder / "photos" / "dog.txt").write_bytes(b"A dog.\ncaf\xe9\n")
    with pytest.raises(kc.InputError, match=r"dog\.txt, line 2, is not UTF-8"):
        outcomes(folder, "photos")
    (folder / "photos" / "dog.txt").write_text("")
    with pytest.raises(kc.InputError, match=r"No photo has captions: .*dog\.txt has"):
        outcomes(folder, "photos")
    with pytest.raises(kc.InputError, match=r"There is no file .*away\.csv"):
        outcomes(folder, "away.csv")
    with pytest.raises(kc.InputError, match="cannot be combined with files of rows"):
        outcomes(folder, "photos", "captions.json")
    with pytest.raises(kc.InputError, match=r"by ids, which .*photos does not have"):
        kc.prepare.records_of_photos(
            folder / "photos", [folder / "photos"], ["instances.json"]
        )


ROWS = [
    {"file_name": "sea.jpg", "text": ["The sea.", None, "Waves."]},
    {"file_name": "dog.jpg", "text": ["A dog."], "is_rejected": True},
]


def write_metadata(path):
    if path.suffix == ".csv":
        rows = [
            (r["file_name"], x, "is_rejected" in r) for r in ROWS for x in r["text"]
        ]
        lines = [f"{name},{text},{mark}" for name, text, mark in rows if text]
        path.write_text("\n".join(["file_name,text,is_rejected", *lines]))
    elif path.suffix == ".parquet":
        rows = pa.Table.from_pylist([{"is_rejected": None, **x} for x in ROWS])
        names = rows["file_name"].dictionary_encode()  # a category of pandas
        pq.write_table(rows.drop("file_name").append_column("file_name", names), path)
    else:
        path.write_text("\n".join(json.dumps(row) for row in ROWS) + "\n\n")


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet", ".JSONL"])
def test_metadata_beside_photos_lists_their_captions(folder, capsys, suffix):
    """Names are relative to the file, and its folder says the split."""
    (folder / "photos" / "trip").rename(folder / "photos" / "val")
    path = folder / "photos" / "val" / f"metadata{suffix}"
    write_metadata(path)
    found = outcomes(folder, f"photos/val/metadata{suffix}")
    assert found["val"] == {
        "val/sea.jpg": ["The sea.", "Waves."],
        "val/dog.jpg": f"photos/val/metadata{suffix}: dog.jpg has no captions.",
    }
    assert f"{path}: 2 of 3 captions; 1 rejected\n" in capsys.readouterr().out
    assert {*outcomes(folder)} == {"test"}
    assert f"{path} may hold captions: --captions" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"file_name": "dog.jpg"', r"line 1 is not JSON: "),
        ('[{"file_name": "dog.jpg"}]', r"line 1 is no JSON object, of a photo and its"),
        ('{"image": 7}', r"line 1: file_name: Input should be a valid string"),
        (
            '{"image": "a.jpg", "text": 7}',
            "line 1: caption: .* valid string or .* list",
        ),
        ('{"image": "a.jpg", "text": [7]}', r"line 1: caption\[0\]: .* valid string"),
        ('{"url": "a.jpg"}', "line 1 should have one column file_name or image"),
        ('{"image": "a.jpg", "label": 7}', r"own\.jsonl has no rows of captions"),
    ],
)
def test_faults_of_json_lines_are_named(folder, content, message):
    (folder / "own.jsonl").write_text(content)
    with pytest.raises(kc.InputError, match=message):
        outcomes(folder, "own.jsonl")


def test_photos_of_img2dataset_are_found_by_their_keys(folder, capsys, monkeypatch):
    """Of one shard, whose second photo was not downloaded."""
    photos = folder / "photos"
    (photos / "00000").mkdir()
    for i in 0, 2, 3:
        Image.new("RGB", (4, 4)).save(photos / "00000" / f"00000000{i}.jpg")
    rows = {
        "url": [f"http://example.invalid/{i}.jpg" for i in range(5)],
        "caption": ["A dog.", "A cat.", "...", "The sea.", "No photo."],
        "key": [f"00000000{i}" for i in range(5)],
        "status": ["success", "failed_to_download", *["success"] * 3],
        "error_message": [None, "HTTP Error 404", None, None, None],
    }
    pq.write_table(pa.table(rows), photos / "00000.parquet")
    found = outcomes(folder, f"train={photos / '00000.parquet'}")["train"]
    assert found["00000/000000000.jpg"] == ["A dog."]
    assert found["00000/000000003.jpg"] == ["The sea."]
    assert "key 000000002 has no captions" in found["00000/000000002.jpg"]
    assert "00000/000000004 has 0 photos." in found["00000/000000004"]
    assert "00000/000000001.jpg" not in found
    assert "1 photos were not downloaded" in capsys.readouterr().out
    pq.write_table(pa.table({"text": ["A dog."]}), folder / "other.parquet")
    with pytest.raises(kc.InputError, match=r"it is img2dataset's .* one column"):
        outcomes(folder, "other.parquet")
    shared = {"key": ["000000001"] * 50, "status": ["success"] * 50}
    monkeypatch.setattr(img2dataset, "TEXTS_BYTES", 10**6)
    for caption, problem in (
        (["a" * 100_000, *[""] * 49], "a caption has 100,000 bytes; at most 65,536"),
        (["a" * 60_000] * 50, "its texts take more than 1,000,000 bytes"),
        ([1] * 50, r"other\.parquet: its caption should be texts, not int64"),
    ):
        table = pa.table({**shared, "caption": caption})
        pq.write_table(table, folder / "other.parquet", compression="zstd")
        with pytest.raises(kc.InputError, match=problem):
            outcomes(folder, "other.parquet")


def test_a_dataset_of_hugging_face_on_disk_has_photos_and_captions(rng, tmp_path):
    features = datasets.Features(
        {
            "image": datasets.Image(),
            "captions": datasets.Sequence(datasets.Value("string")),
        }
    )
    pixels = rng.integers(0, 256, (3, 4, 5, 3), "uint8")
    rows = {
        "image": [Image.fromarray(x) for x in pixels],
        "captions": [["A dog.", "One dog."], ["A cat."], ["..."]],
    }
    rows = datasets.Dataset.from_dict(rows, features)
    parts = {"train": rows.select([0, 2]), "validation": rows.select([1])}
    datasets.DatasetDict(parts).save_to_disk(tmp_path / "several")
    records = kc.prepare.records_of_arrow(tmp_path / "several")
    assert {split: len(x) for split, x in records.items()} == {
        "train": 2,
        "val": 1,
        "test": 0,
    }
    first, wordless = records["train"]
    assert first.captions == ["A dog.", "One dog."]
    np.testing.assert_array_equal(first.read(), pixels[0])
    np.testing.assert_array_equal(records["val"][0].read(), pixels[1])
    with pytest.raises(kc.InputError, match="train 1 has no captions"):
        wordless.read()
    rows.save_to_disk(tmp_path / "one")
    records = kc.prepare.records_of_arrow(tmp_path / "one")
    assert [len(x) for x in records.values()] == [1, 1, 1]  # by hash
    rows.remove_columns("captions").save_to_disk(tmp_path / "none")
    with pytest.raises(kc.InputError, match="none has no column of captions, texts"):
        kc.prepare.records_of_arrow(tmp_path / "none")
    datasets.DatasetDict({"part 1": rows}).save_to_disk(tmp_path / "parts")
    with pytest.raises(kc.InputError, match="'part 1' should be called train, valid"):
        kc.prepare.records_of_arrow(tmp_path / "parts")


def test_files_of_nocaps_are_listed(tmp_path):
    """Its images have domains, those of its test server no captions."""
    image = {"id": 1, "width": 9, "height": 9, "open_images_id": "0013ea2087020901"}
    image |= {"domain": "near-domain", "date_captured": "2018-11-06", "license": 0}
    images = [{**image, "id": i, "file_name": f"{i}.jpg"} for i in (1, 2)]
    caption = {"image_id": 1, "id": 0, "caption": "A baby is standing."}
    annotations = [caption, {**caption, "image_id": 2, "id": 1}]
    val, test = tmp_path / "nocaps_val_4500_captions.json", tmp_path / "info.json"
    val.write_text(json.dumps({"images": images, "annotations": annotations}))
    images = [{**x, "id": x["id"] + 9, "file_name": f"t{x['id']}.jpg"} for x in images]
    test.write_text(json.dumps({"images": images, "info": {}, "licenses": []}))
    listed = kc.prepare.list_images([val, test])
    assert [x.captions for x in listed["val"]] == [["A baby is standing."]] * 2
    assert [x.image_id for x in listed["test"]] == [10, 11]
    assert read_domains(val) == {1: "near-domain", 2: "near-domain"}
