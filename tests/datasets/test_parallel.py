import gzip

import pytest
import tensorflow_datasets as tfds

import keras_caption as kc
from keras_caption.datasets import load_parallel

TEXT = {
    "train": [
        ("A dog.", "Ein Hund."),
        ("", "Nichts."),
        ("A\u2028cat. ", "Eine Katze."),
    ],
    "val": [("Two dogs.", "Zwei Hunde.")],
    "test": [("A big cat.", "Eine große Katze."), ("A dog.", "Ein Hund.")],
}


def write(folder, text=TEXT, opener=open, suffix=""):
    for split, pairs in text.items():
        for side, language in enumerate(("en", "de")):
            path = folder / f"{split}.{language}{suffix}"
            with opener(path, "wt", encoding="utf-8", newline="\n") as file:
                file.writelines(f"{pair[side]}\n" for pair in pairs)
    return folder


def sentences(text, split):
    pairs = text.read(split).as_numpy_iterator()
    return [(p["source"].decode(), p["target"].decode()) for p in pairs]


@pytest.mark.parametrize(("opener", "suffix"), [(open, ""), (gzip.open, ".gz")])
def test_a_folder_of_two_languages_is_read(tmp_path, opener, suffix):
    text = load_parallel("parallel", write(tmp_path, opener=opener, suffix=suffix))
    assert sentences(text, "train") == [
        TEXT["train"][0],
        ("A\u2028cat.", "Eine Katze."),
    ]
    back = load_parallel("parallel", tmp_path, "de", "en")
    assert sentences(back, "test") == [(g, e) for e, g in TEXT["test"]]


def test_training_reads_what_the_check_does(tmp_path):
    write(tmp_path)
    saved = b"\xef\xbb\xbfa dog\r\na\rdog\r\n\xc2\xa0\r\n\xe3\x80\x80\r\na\0dog\0\r\n"
    (tmp_path / "train.en").write_bytes(saved)
    (tmp_path / "train.de").write_bytes(b"1\r2\r3\r4\r\xe3\x80\x805\xc2\xa0\r")
    text = load_parallel("parallel", tmp_path)
    assert sentences(text, "train") == [
        ("a dog", "1"),
        ("a dog", "2"),
        ("a\0dog\0", "5"),
    ]


def test_wmt14_is_read(tmp_path):
    with tfds.testing.mock_data(num_examples=3):
        text = load_parallel("wmt14_translate", data_dir=tmp_path)
        pairs = {split: sentences(text, split) for split in ("train", "val", "test")}
    assert all(len(of_split) == 3 for of_split in pairs.values())


def test_the_built_in_text_is_read_in_both_directions(tmp_path):
    text = load_parallel("scene_sentences", None, "de", "en", data_dir=tmp_path)
    pairs = sentences(text, "test")
    assert len(pairs) == 500
    back = load_parallel("scene_sentences", data_dir=tmp_path)
    assert sentences(back, "test") == [(english, german) for german, english in pairs]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "val.de").write_text("a\nb\n"), "val.en ends after 1 lines"),
        (lambda f: (f / "val.de").write_bytes(b"a\xff\n"), "val.de, line 1, is not"),
        (lambda f: (f / "val.de").unlink(), "has no val.de"),
        (lambda f: (f / "val.de").write_text("\n"), "have no sentences"),
        (lambda f: (f / "valid.de").write_text("a\n"), "several files of val in de"),
        (lambda f: (f / "test.de").rename(f / "test.de.gz"), "test.de.gz cannot be"),
        (lambda f: (f / "val.de").write_text("a" * 2**21), "line 1, is longer"),
    ],
)
def test_damaged_folders_are_refused(tmp_path, damage, message):
    damage(write(tmp_path))
    with pytest.raises(kc.InputError, match=message) as caught:
        load_parallel("parallel", tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_one_of_several_test_sets_is_chosen(tmp_path):
    """As of Multi30k, and of WMT, whose names begin with newstest."""
    write(tmp_path)
    for language in "en", "de":
        (tmp_path / f"test.{language}").rename(
            tmp_path / f"test_2016_flickr.{language}"
        )
        for name in "test_2017_flickr", "newstest2014":
            (tmp_path / f"{name}.{language}").write_text(f"{name} {language}\n")
    message = r"several files of test in en: .*=test_2016_flickr\.$"
    with pytest.raises(kc.InputError, match=message):
        load_parallel("parallel", tmp_path)
    for name in "test_2017_flickr", "newstest2014":
        text = load_parallel("parallel", tmp_path, test_set=name)
        assert sentences(text, "test") == [(f"{name} en", f"{name} de")]
    with pytest.raises(kc.InputError, match=r"has no test_2018\.en, plain"):
        load_parallel("parallel", tmp_path, test_set="test_2018")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("paralel", None), "Did you mean parallel"),
        (("parallel", None), "A folder of files"),
        (("parallel", "nowhere"), "no folder nowhere"),
        (("scene_sentences", None, "en", "fr"), "languages"),
        (
            ("wmt14_translate", None, "en", "xx"),
            "en and one of cs, de, fr, hi, ru, not",
        ),
        (("wmt14_translate", None, "de", "fr"), "not de and fr"),
        (("wmt14_translate", None, "en", "en"), "not en and en"),
    ],
)
def test_unknown_text_is_refused(arguments, message):
    with pytest.raises(kc.InputError, match=message):
        load_parallel(*arguments)
