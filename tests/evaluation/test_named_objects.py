import pytest

from keras_caption.evaluation import named_objects, object_agreement


@pytest.mark.parametrize(
    ("caption", "named"),
    [
        ("Two hot dogs, and a dog on benches", {"hot dog", "dog", "bench"}),
        ("a man  riding a wave on his surfboard", {"person", "surfboard"}),
        (
            "knives and wine glasses near teddy bears",
            {"knife", "wine glass", "teddy bear"},
        ),
        ("a catalog of a glass boathouse", set()),
    ],
)
def test_captions_name_categories(caption, named):
    assert named_objects(caption) == named


def test_agreement_is_over_all_images():
    captions = {1: "a dog and a cat", 2: "a man", 3: "a red wall"}
    people = {1: ["a dog", "a puppy on a couch"], 2: ["a bus"], 3: ["a zebra"]}
    assert object_agreement(captions, people) == (1 / 3, 1 / 4)
