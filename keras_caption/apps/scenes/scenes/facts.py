from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_caption.apps.scenes.scenes.relations import RELATIONS, place, size_word
from keras_caption.apps.scenes.scenes.scene import COLOURS, KINDS, SceneObject
from keras_caption.apps.scenes.scenes.statements import (
    SCENE_PLACES,
    is_largest,
    judge,
    scene_objects,
)

# Names by number; 0 stands for none.
NUMBERED = {
    "kind": ("", *KINDS),
    "colour": ("", *COLOURS),
    "size": ("", "large", "small"),
    "place": ("", *SCENE_PLACES, "largest"),
    "relation": ("", *RELATIONS),
}


def scene_facts(
    objects: Sequence[SceneObject], references: Sequence[str]
) -> dict[str, np.ndarray]:
    """Encodes a scene by numbers that decide the truth of every statement.

    Args:
        objects: Sequence of `SceneObject`, the scene.
        references: Sequence of str, its reference captions.

    Returns:
        dict of `properties`, int32 `(N, 5)`: the numbers of an object's kind, colour,
        size and place, and whether it is the largest; `relations`, bool
        `(N, N, 11)`, whether the first object has each relation to the second; and
        `statements`, float32, the mean number of statements of the references.
    """

    def number(name, value):
        return NUMBERED[name].index(value or "")

    properties = [
        (
            number("kind", o.kind),
            number("colour", o.colour),
            number("size", size_word(o)),
            number("place", place(o)),
            is_largest(o, objects),
        )
        for o in objects
    ]
    relations = [
        [[a is not b and holds(a, b) for holds in RELATIONS.values()] for b in objects]
        for a in objects
    ]
    return {
        "properties": np.array(properties, "int32"),
        "relations": np.array(relations, bool),
        "statements": np.mean(
            [len(judge(text, objects)) for text in references], dtype="float32"
        ),
    }


def with_facts(examples: Any) -> Any:
    """Adds the facts of each scene to the examples of a dataset.

    Args:
        examples: Finite `tf.data.Dataset` of examples of `Scenes`.

    Returns:
        `tf.data.Dataset` of the examples with the values of `scene_facts`, padded with
        zeros to the largest scene.
    """
    import tensorflow as tf

    facts = [
        scene_facts(scene_objects(e), [text.decode() for text in e["captions"]])
        for e in examples.as_numpy_iterator()
    ]
    most = max(len(fact["properties"]) for fact in facts)

    def padded(name, axes):
        return np.stack(
            [
                np.pad(
                    fact[name],
                    [
                        (0, most - size) if axis < axes else (0, 0)
                        for axis, size in enumerate(fact[name].shape)
                    ],
                )
                for fact in facts
            ]
        )

    added = tf.data.Dataset.from_tensor_slices(
        {
            "properties": padded("properties", 1),
            "relations": padded("relations", 2),
            "statements": np.array([fact["statements"] for fact in facts]),
        }
    )
    return tf.data.Dataset.zip(examples, added).map(
        lambda example, fact: {**example, **fact}
    )
