from keras_caption.apps.scenes.scene_sentences import (
    SceneSentences,
    SceneSentencesConfig,
    sample_pair,
)
from keras_caption.apps.scenes.scene_sentences.german import (
    noun_phrase,
    prepositional_phrase,
)


def test_every_sentence_has_one_translation(rng):
    pairs = {sample_pair(rng) for _ in range(5000)}
    english, german = zip(*pairs, strict=True)
    assert len(set(english)) == len(set(german)) == len(pairs)


def test_a_translation_agrees_in_gender_and_case(rng):
    pairs = dict(sample_pair(rng) for _ in range(5000))
    # The same English words are translated differently, by gender and case.
    assert noun_phrase("a", ["red"], "star", "nominative") == "ein roter Stern"
    assert noun_phrase("a", ["red"], "star", "accusative") == "einen roten Stern"
    assert noun_phrase("a", ["red"], "diamond", "dative") == "einer roten Raute"
    assert noun_phrase("the", ["orange"], "heart", "dative") == "dem orange Herzen"
    assert prepositional_phrase("left of", "dem Kreis") == "links vom Kreis"
    reasons = [g for e, g in pairs.items() if "cannot be seen" in e]
    assert all(g.endswith(" verdeckt.") for g in reasons)
    assert {g.split()[-2] for g in reasons} == {"ihn", "sie", "es"}


def test_splits_are_disjoint_and_repeat(tmp_path):
    def load(train):
        config = SceneSentencesConfig(name=f"of_{train}", train=train, val=30, test=30)
        builder = SceneSentences(data_dir=tmp_path, config=config)
        builder.download_and_prepare()
        return {
            split: [
                (pair["en"].decode(), pair["de"].decode())
                for pair in builder.as_dataset(split).as_numpy_iterator()
            ]
            for split in ("train", "val", "test")
        }

    small, large = load(50), load(200)
    assert small["test"] == large["test"]
    assert set(small["train"]) <= set(large["train"])
    sentences = [english for pairs in large.values() for english, _ in pairs]
    assert len(set(sentences)) == 260
