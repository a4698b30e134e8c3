"""Questions about scenes, for `keras_caption.datasets.load_questions`."""

from typing import Any

import numpy as np

from keras_caption.datasets.questions import read_features
from keras_caption.errors import InputError
from keras_caption.formats.question import Question
from keras_caption.synthetic.scenes.questions import ask
from keras_caption.synthetic.scenes.statements import scene_objects


def load_scene_questions(
    path: Any, builder: Any, split_of_image: dict[int, str]
) -> dict[str, list[Question]]:
    """Asks about scenes, see `keras_caption.datasets.register_questions`."""
    if path is not None:
        raise InputError(
            f"The questions of scene_questions are built in, and not read from {path}."
        )
    if "objects" not in builder.info.features:
        raise InputError(
            f"The images in {builder.data_path} have no known objects to ask about: "
            "scene_questions are about scenes."
        )
    splits: dict[str, list[Question]] = {}
    for split in dict.fromkeys(split_of_image.values()):
        questions: list[Question] = []
        splits[split] = questions
        for example in read_features(builder, split, "image_id", "boxes", "objects"):
            image_id = int(example["image_id"])
            asked = ask(scene_objects(example), np.random.default_rng(image_id))
            for number, (kind, text, answer) in enumerate(asked):
                number += 100 * image_id
                questions.append(
                    Question(number, image_id, text, (answer,), answer, kind)
                )
    return splits
