"""The rules of the published vocabularies of COCO, on synthetic text."""

import coco_files
import pytest

import keras_caption as kc

# Number of captions of each split with a word; all have "a".
COUNTS = {
    "train": {"dog": 4, "fox": 6, "cat": 3},
    "val": {"dog": 1},
    "test": {"dog": 1, "cat": 2},
}


@pytest.fixture(scope="module")
def builder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vocabulary")
    captions, instances, split = coco_files.contents(images=8)
    names = {image["cocoid"]: image["split"] for image in split["images"]}
    waiting = {
        part: [f"A {word}." for word, n in words.items() for _ in range(n)]
        for part, words in COUNTS.items()
    }
    for annotation in captions["annotations"]:
        texts = waiting[names[annotation["image_id"]].replace("restval", "train")]
        annotation["caption"] = texts.pop() if texts else "A."
    assert not any(waiting.values())
    coco_files.write(folder / "coco", captions, instances, split)
    return kc.datasets.load("coco_objects", folder / "coco", data_dir=folder / "tfds")


@pytest.mark.parametrize(
    ("min_count", "split", "words"),
    [
        (5, "train", ["a", "fox"]),
        (5, "all", ["a", "dog", "fox", "cat"]),  # AoANet's: at least five times
        (6, "all", ["a", "dog", "fox"]),  # NG-SAN's: more than five times
    ],
)
def test_words_are_counted_in_training_or_in_all_captions(
    builder, min_count, split, words
):
    vocabulary = kc.datasets.build_vocabulary(builder, min_count, split)
    assert vocabulary.words[4:] == words


def test_characters_may_be_tokens(builder, tmp_path):
    tokenizer = kc.datasets.build_vocabulary(builder, 1, "all", "characters")
    assert isinstance(tokenizer, kc.text.CharacterTokenizer)
    assert {*"dogfx"} <= {*tokenizer.characters}
    assert tokenizer.words[260:] == tokenizer.characters
    tokens = kc.batches.reference_tokens(
        kc.datasets.read(builder, "train"), tokenizer, 4
    )
    captions = kc.datasets.references(kc.datasets.read(builder, "train"))
    found = [[tokenizer.decode(row) for row in rows] for rows in tokens]
    cut = [[text[:4] for text in texts] for texts in captions.values()]
    assert [rows[: len(x)] for rows, x in zip(found, cut, strict=True)] == cut
    frequencies = kc.rewards.DocumentFrequencies.count(tokens[:, :, 1:])
    frequencies.save(tmp_path / "frequencies.npz", tokenizer)
    kc.rewards.DocumentFrequencies.load(tmp_path / "frequencies.npz", tokenizer)
    with pytest.raises(kc.InputError, match="must be words or characters, not 'x'"):
        kc.datasets.build_vocabulary(builder, tokenizer="x")


def test_other_splits_are_refused(builder):
    with pytest.raises(kc.InputError, match="must be train or all, not 'test'"):
        kc.datasets.build_vocabulary(builder, 5, "test")
