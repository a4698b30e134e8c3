r"""COCO's objects with people who are alone, as the dataset `lone_people`.

    python experiments/run.py --import experiments/papers/lone_people.py \
        --dataset lone_people --data_dir coco \
        --config experiments/configs/captioning/detected_objects.py

Of a photo a detector often finds one person and nothing else, where nearly all training
images have many annotated objects. Of training images that are captioned so that the
only object is one person, a further example has the largest person alone, and these
captions alone.
"""

from typing import Any

import numpy as np

import keras_caption as kc
from keras_caption.batches.examples import captions_and_words
from keras_caption.features import CATEGORIES
from keras_caption.features.object_words import mentions, said_several

PERSON = CATEGORIES.index("person")
LEAST_AREA = 0.02  # of the image
NEW_IDS = 10**9  # added to an image's id
SEVERAL = {"group", "couple", "pair", "team", "crowd", "some", "several"}
SEVERAL |= {"two", "three", "four"}


class LonePeople(kc.datasets.CocoObjects):
    """`CocoObjects` with further training images."""

    def _split_generators(self, dl_manager):
        generators = super()._split_generators(dl_manager)
        return {**generators, "train": with_lone_people(generators["train"])}


def with_lone_people(examples):
    """Yields pairs of an image id and an example, and the further ones."""
    for image_id, example in examples:
        yield image_id, example
        alone = alone_in(example)
        if alone:
            new_id = NEW_IDS + image_id
            yield new_id, {**alone, "image_id": new_id}


def alone_in(example: dict[str, Any]) -> dict[str, Any] | None:
    """Makes an example of the largest person, or `None` where there is none."""
    people = np.flatnonzero(example["regions"][:, PERSON])
    captions = [text for text in example["captions"] if names_one_person(text)]
    if not len(people) or not captions:
        return None
    boxes = example["boxes"][people]
    areas = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
    largest = areas.argmax()
    if areas[largest] < LEAST_AREA:
        return None
    return {
        "regions": example["regions"][people[[largest]]],
        "boxes": boxes[[largest]],
        **captions_and_words(captions),
    }


def names_one_person(caption: str) -> bool:
    """Whether a person is the only object of COCO's categories that a caption names."""
    named = mentions(caption)
    words = set(caption.lower().replace(".", "").split())
    return (
        len({noun for noun, _ in named}) == 1
        and named[0][1] == "person"
        and not said_several(caption)
        and not words & SEVERAL
    )


kc.datasets.register("lone_people", LonePeople.from_folder)
