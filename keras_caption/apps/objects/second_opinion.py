import dataclasses
import functools
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float32, UInt8

from keras_caption.apps.objects.imagenet_names import CLASSES, imagenet_names, members
from keras_caption.base.errors import InputError, missing_extras
from keras_caption.base.progress import report
from keras_caption.features.photos import check_photos, pixels_of
from keras_caption.formats.coco_categories import CATEGORIES, objects_of

if TYPE_CHECKING:
    from keras_caption.apps.objects.lite_classifier import LiteClassifier
    from keras_caption.apps.objects.photo_classifier import PhotoClassifier

SIDE = 640  # longer side of a photo of which boxes are cut, at most, in pixels
MARGIN = 0.08  # by which boxes are larger, as a share of their sides
MOST = 12  # boxes of a photo that are classified, the best ones
PERSONS = 4  # persons' boxes that are, beside these
WITHIN = 0.6  # share of a box within another one that shows the same object
NONE = -1  # of no name
# Of a photo, beside its objects: what persons and things stand on is mostly there.
LOWER_HALF, LOWER = (0.0, 0.5, 1.0, 1.0), -1
PERSON = CATEGORIES.index("person")

ANIMALS = CATEGORIES[CATEGORIES.index("bird") : CATEGORIES.index("giraffe") + 1]
# Of these, ImageNet has few kinds or none: a horse may have dogs' probabilities.
VAGUE = ("horse", "sheep", "cow", "giraffe")
# Of these it has so many that true ones have a share.
DISTINCT = ("dog", "bear")


@dataclasses.dataclass(frozen=True)
class Rule:
    """When a second opinion changes or names an object.

    The defaults were fitted on photos, see docs/results/photos.md.

    Attributes:
        replaced: float, least probability of another animal that replaces an animal.
        vague: float, the same, where the animal is one of `VAGUE`.
        thing: float, the same, of an animal that replaces what is no animal.
        dropped: float, least probability of animals that COCO lacks, of which an animal
            is dropped.
        own: float, least probability that one of `DISTINCT` is what was detected. With
            less, it is replaced or dropped.
        instead: float, least probability of another animal that replaces it then.
        seen: float, least probability of a thing in the whole photo.
    """

    replaced: float = 0.5
    vague: float = 0.6
    thing: float = 0.6
    dropped: float = 0.7
    own: float = 0.05
    instead: float = 0.35
    seen: float = 0.7


RULE = Rule()


class SecondOpinion:
    """Classifies detected objects a second time, into ImageNet's 1,000 classes.

    Each detected box, cut from the photo and 8 % larger, the whole photo and its lower
    half are classified. ImageNet has 58 of COCO's 80 categories, the animals among them
    but for giraffes. The category of an animal is

    - replaced, if another of COCO's animals has a greater probability, and one that
      suffices. So is what is no animal, unless such an animal was detected within it.
      Its score is then that probability; an object of the new category that has most
      of the box is the same, and remains alone;
    - dropped, if animals that COCO lacks have a probability that suffices, or if it is
      a dog or a bear whose own classes have next to none;
    - and else kept. `Rule` has the probabilities.

    A person stays one. The least of more than 4 persons, and of more than 12 other
    objects, are not classified. The regions of objects follow, so that what reads them
    reads the second opinion. An object has a
    finer name, such as "golden retriever", if the probabilities of its classes suffice,
    and the photo things that COCO lacks, such as a swing.

    It runs outside of graphs: a model is neither saved nor exported with it.

    Args:
        detector: A detector of COCO's objects: `keras_caption.objects.ObjectDetector`
            whose regions are categories alone, or `LiteDetector`.
        classify: Function from uint8 `(batch, size, size, 3)` to float32
            `(batch, 1000)`, with the attribute `image_size`: a
            `keras_caption.objects.PhotoClassifier` or `LiteClassifier`.

    Call arguments:
        inputs: dict, as `to_pixels` returns it.

    Returns:
        dict of `regions`, `boxes` and `scores`, as of the detector; `names`, int32
        `(batch, N)`, places in the table of names, or -1; `name_probabilities`,
        float32 `(batch, N)`; `classes`, float32 `(batch, 1000)`, the probabilities of
        ImageNet's classes in the whole photo or, where greater, in a box that was
        dropped; `lower_classes`, the same in its lower half; and `box_classes`,
        float32 `(batch, N, 1000)`, in the box of each object, 0 if it was not
        classified.
    """

    made = ("regions", "boxes")
    dimensions = CATEGORIES
    in_graphs = False

    def __init__(self, detector: Any, classify: "PhotoClassifier | LiteClassifier"):
        self.detector = detector
        self.classify = classify
        self.confidence = detector.confidence
        self._detect = detector
        if getattr(detector, "in_graphs", False):
            from keras_caption.base.compilation import compile_from_second_call

            self._detect = compile_from_second_call(detector, detector.variables)

    def __call__(self, inputs: dict[str, Any]) -> dict[str, np.ndarray]:
        return judged_objects(*self.observe(inputs))

    def observe(self, inputs: dict[str, Any]) -> tuple[dict[str, np.ndarray], dict]:
        """Detects objects, and classifies their boxes.

        Returns:
            The arguments of `judged_objects`.
        """
        inputs = dict(inputs)
        photos, sizes = (np.asarray(inputs.pop(name)) for name in ("photos", "sizes"))
        detected = {name: np.asarray(x) for name, x in self._detect(inputs).items()}
        images, places = [], []  # of a photo, then of its boxes and its lower half
        for i, (photo, size) in enumerate(zip(photos, sizes, strict=True)):
            photo = photo[: size[0], : size[1]]
            scores, regions = detected["scores"][i], detected["regions"][i]
            is_person = regions[:, PERSON] > 0
            judged = [
                *np.flatnonzero((scores > 0) & ~is_person)[:MOST],
                *np.flatnonzero((scores > 0) & is_person)[:PERSONS],
            ]
            boxes = [(0.0, 0.0, 1.0, 1.0), *detected["boxes"][i][judged], LOWER_HALF]
            images += crops_of(photo, boxes, self.classify.image_size)
            places += [(i, j) for j in (None, *judged, LOWER)]
        found = self.classify(np.stack(images))
        return detected, dict(zip(places, found, strict=True))

    def read(self, path: str | os.PathLike) -> np.ndarray:
        """Reads a file, as the detector does."""
        return self.detector.read(path)

    def to_pixels(
        self, photos: Sequence[str | os.PathLike | np.ndarray]
    ) -> dict[str, Any]:
        """Makes a batch of photos.

        Args:
            photos: List of paths, or of uint8 arrays `(height, width, 3)`.

        Returns:
            dict of what the detector reads; `photos`, uint8 `(batch, 640, 640, 3)`, in
            the upper left corner; and `sizes`, int32 `(batch, 2)`, the height and
            width that each has there.
        """
        pixels = [pixels_of(photo) for photo in check_photos(photos)]
        squares, sizes = zip(*map(within_square, pixels), strict=True)
        return {
            **self.detector.to_pixels(pixels),
            "photos": np.stack(squares),
            "sizes": np.stack(sizes),
        }

    def place(self, pixels: UInt8[np.ndarray, "height width 3"]) -> dict[str, Any]:
        """Places one photo, see `to_pixels`."""
        photo, size = within_square(pixels)
        return {**self.detector.place(pixels), "photos": photo, "sizes": size}

    @staticmethod
    def objects_of(detected: dict[str, Any], i: int) -> list[dict[str, Any]]:
        """Lists the objects of one photo, see `ObjectDetector.objects_of`.

        Returns:
            List of dict of `category`, `score` and `box` and, if a finer name is
            known, of `name`, str, and `name_probability`, float.
        """
        objects = objects_of(detected, i)
        names, probabilities = (
            np.asarray(detected[key][i]) for key in ("names", "name_probabilities")
        )
        for found, name, probability in zip(
            objects, names, probabilities, strict=False
        ):
            if name != NONE:
                found["name"] = imagenet_names()[name].name
                found["name_probability"] = round(float(probability), 4)
        return objects

    @staticmethod
    def things_of(detected: dict[str, Any], i: int) -> list[dict[str, Any]]:
        """Lists things and places of one photo of which COCO has no category.

        Args:
            detected, i: As in `objects_of`.

        Returns:
            List of dict of `name`, str; `kind`, str, see
            `keras_caption.apps.objects.imagenet_names.ImageNetName`; and `probability`,
            float, the most probable first.
        """
        masses = members() @ np.asarray(detected["classes"][i])
        table = imagenet_names()
        seen = [
            row
            for row in range(len(table))
            if not table[row].category and masses[row] >= RULE.seen
        ]
        finest = [
            row
            for row in seen
            if not any(set(table[x].classes) < set(table[row].classes) for x in seen)
        ]
        return [
            {
                "name": table[row].name,
                "kind": table[row].kind,
                "probability": round(float(masses[row]), 4),
            }
            for row in sorted(finest, key=lambda row: -masses[row])
        ]

    def get_config(self) -> dict[str, Any]:
        raise InputError(
            "A second opinion on detected objects is not kept in models: save the "
            "model with its detector alone."
        )


def with_second_opinion(
    detector: Any, load: Callable[[], "PhotoClassifier | LiteClassifier"]
) -> Any:
    """A second opinion on a detector or, without a classifier, the detector alone.

    Args:
        detector: As of `SecondOpinion`.
        load: Function that loads the classifier. If it raises `InputError`, a line on
            standard error says so.
    """
    try:
        return SecondOpinion(detector, load())
    except InputError as error:
        report(f"no second opinion on objects: {error}")
        return detector


# === The rule ===


def opinion_on(
    category: str, probabilities: Float32[np.ndarray, "1000"], rule: Rule = RULE
) -> tuple[str | None, float]:
    """Judges the category of a detected object.

    Args:
        category: str, one of `CATEGORIES`.
        probabilities: float32 `(1000,)`, of ImageNet's classes in the object's box.
        rule: `Rule`.

    Returns:
        The category that replaces it, or the same, or `None` if it is dropped; and the
        probability of it, 1 of the same.
    """
    masses = members() @ probabilities
    animals, others = of_animals()
    is_none = category in DISTINCT and masses[animals[category]] < rule.own
    best = max(animals, key=lambda name: masses[animals[name]])
    if best == category and not is_none:
        return category, 1.0
    least = rule.replaced if category in animals else rule.thing
    if category in VAGUE:
        least = rule.vague
    if is_none:
        least = rule.instead
    if masses[animals[best]] >= least:
        return best, float(masses[animals[best]])
    unknown = float(probabilities[others].sum())
    if is_none or (category in animals and unknown >= rule.dropped):
        return None, unknown
    return category, 1.0


def finer_name(
    category: str, probabilities: Float32[np.ndarray, "1000"]
) -> tuple[int, float]:
    """Finds the finest name of an object whose probability suffices.

    Args:
        category, probabilities: As in `opinion_on`.

    Returns:
        The name's place in `imagenet_names`, or -1; and its probability.
    """
    masses = members() @ probabilities
    rows = [
        (len(row.classes), i)
        for i, row in enumerate(imagenet_names())
        if row.category == category and masses[i] >= row.least
    ]
    if not rows:
        return NONE, 0.0
    _, finest = min(rows)
    return finest, float(masses[finest])


@functools.cache
def of_animals() -> tuple[dict[str, int], np.ndarray]:
    """The place of each of COCO's animals in the table; and all others' classes.

    Returns:
        dict from category to int, and bool `(1000,)`.
    """
    table = imagenet_names()
    animals = [i for i, row in enumerate(table) if row.kind == "animal"]
    places = {table[i].name: i for i in animals if table[i].name == table[i].category}
    others = [i for i in animals if not table[i].category]
    return places, np.any(members()[others], axis=0)


def judged_objects(
    detected: dict[str, np.ndarray],
    probabilities: dict[tuple[int, int | None], Float32[np.ndarray, "1000"]],
) -> dict[str, np.ndarray]:
    """Applies the second opinion to detected objects.

    Args:
        detected: dict of `regions`, `boxes` and `scores`, see `SecondOpinion`.
        probabilities: dict from the places of a photo and of an object in it, `None`
            for the whole photo and `LOWER` for its lower half, to the probabilities of
            ImageNet's classes.

    Returns:
        dict, see `SecondOpinion`.
    """
    batch, most = detected["scores"].shape
    made = {name: np.zeros_like(x) for name, x in detected.items()}
    made["names"] = np.full((batch, most), NONE, "int32")
    made["name_probabilities"] = np.zeros((batch, most), "float32")
    made["classes"] = np.stack([probabilities[i, None] for i in range(batch)])
    made["lower_classes"] = np.stack([probabilities[i, LOWER] for i in range(batch)])
    made["box_classes"] = np.zeros((batch, most, CLASSES), "float32")
    for i in range(batch):
        places = np.flatnonzero(detected["scores"][i] > 0)
        before = [
            Judged(
                CATEGORIES[detected["regions"][i, j].argmax()],
                detected["scores"][i, j],
                detected["boxes"][i, j],
            )
            for j in places
        ]
        objects = []
        for j, found in zip(places, before, strict=True):
            seen = probabilities.get((i, int(j)))
            if seen is not None:
                found = judge(found, seen, before)
                if found.category is None:
                    np.maximum(made["classes"][i], seen, out=made["classes"][i])
                    continue
            objects.append(found)
        kept = [x for x in objects if not any(same(x, other) for other in objects)]
        kept.sort(key=lambda x: -x.score)
        made["boxes"][i, :1] = 0, 0, 1, 1  # where there is no object
        for row, found in enumerate(kept):
            made["regions"][i, row, CATEGORIES.index(found.category)] = 1
            made["boxes"][i, row], made["scores"][i, row] = found.box, found.score
            made["names"][i, row], made["name_probabilities"][i, row] = found.name
            if found.classes is not None:
                made["box_classes"][i, row] = found.classes
    return made


@dataclasses.dataclass
class Judged:
    """An object, after the second opinion.

    Attributes:
        category: str, or `None`.
        score: float.
        box: float32 `(4,)`.
        name: tuple of the place of a finer name, or -1, and its probability.
        changed: bool, whether the category is another than the detector's.
        classes: float32 `(1000,)`, probabilities of ImageNet's classes in the box, or
            `None`.
    """

    category: str | None
    score: float
    box: np.ndarray
    name: tuple[int, float] = (NONE, 0.0)
    changed: bool = False
    classes: np.ndarray | None = None


def judge(
    found: Judged, seen: Float32[np.ndarray, "1000"], detected: Sequence[Judged]
) -> Judged:
    """Judges a detected object.

    Args:
        found: `Judged`, as it was detected.
        seen: float32 `(1000,)`, probabilities of ImageNet's classes in its box.
        detected: Sequence of `Judged`, all objects of the photo, as detected.
    """
    found = dataclasses.replace(found, classes=seen)
    if found.category == CATEGORIES[PERSON]:
        return found
    assert found.category is not None  # of a detected object
    category, probability = opinion_on(found.category, seen)
    # A bench is no dog because a dog sits on it.
    if found.category not in ANIMALS and any(
        x.category == category and share_within(x.box, found.box) > WITHIN
        for x in detected
        if np.prod(x.box[2:] - x.box[:2]) < np.prod(found.box[2:] - found.box[:2])
    ):
        category = found.category
    name = (NONE, 0.0) if category is None else finer_name(category, seen)
    if category == found.category:
        return dataclasses.replace(found, name=name)
    return Judged(category, probability, found.box, name, True, seen)


def same(replaced: Judged, other: Judged) -> bool:
    """Whether an object whose category was replaced is another one once more.

    Of two that were replaced, the one with the lower probability is.
    """
    if not replaced.changed or other is replaced:
        return False
    if replaced.category != other.category:
        return False
    if other.changed and other.score <= replaced.score:
        return False
    return share_within(replaced.box, other.box) > WITHIN


def share_within(box: np.ndarray, other: np.ndarray) -> float:
    """The share of a box that lies within another one."""
    sides = np.minimum(box[2:], other[2:]) - np.maximum(box[:2], other[:2])
    return float(np.prod(np.maximum(sides, 0)) / np.prod(box[2:] - box[:2]))


# === Pixels ===


def within_square(
    pixels: UInt8[np.ndarray, "height width 3"],
) -> tuple[UInt8[np.ndarray, "side side 3"], np.ndarray]:
    """Places a photo in the upper left corner of a square of 640 pixels.

    Larger ones are reduced; proportions are kept.

    Returns:
        uint8 `(640, 640, 3)`, and int32 `(2,)`, height and width of the photo in it.
    """
    with missing_extras():
        from PIL import Image

    height, width = pixels.shape[:2]
    scale = min(1, SIDE / max(height, width))
    height, width = (max(1, round(scale * x)) for x in (height, width))
    if scale < 1:
        image = Image.fromarray(np.asarray(pixels))
        pixels = np.asarray(image.resize((width, height), Image.Resampling.BICUBIC))
    square = np.zeros((SIDE, SIDE, 3), "uint8")
    square[:height, :width] = pixels
    return square, np.array([height, width], "int32")


def crops_of(
    photo: UInt8[np.ndarray, "height width 3"],
    boxes: Sequence[Sequence[float]],
    size: int,
) -> list[UInt8[np.ndarray, "size size 3"]]:
    """Cuts boxes, 8 % larger, from a photo.

    Args:
        photo: uint8 `(height, width, 3)`.
        boxes: Sequence of x1, y1, x2, y2, divided by the photo's width and height.
        size: int, height and width of the returned images.
    """
    from PIL import Image

    image = Image.fromarray(photo)
    extent = np.array([*image.size, *image.size])
    crops = []
    for box in np.asarray(boxes, float).reshape(-1, 4):
        sides = np.tile(box[2:] - box[:2], 2)
        box = box + MARGIN * sides * (-1, -1, 1, 1)
        x1, y1, x2, y2 = np.clip(box, 0, 1) * extent
        cut = image.resize((size, size), Image.Resampling.BICUBIC, (x1, y1, x2, y2))
        crops.append(np.asarray(cut))
    return crops
