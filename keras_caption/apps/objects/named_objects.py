"""Scores of captions by the objects that they name."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from keras_caption.apps.objects.object_words import mentions
from keras_caption.base.arguments import TextByImage, TextsByImage, check


def named_objects(caption: str) -> set[str]:
    """Finds the categories of `keras_caption.objects.CATEGORIES` in a caption.

    Singular and plural of a category's name and of its usual synonyms count.

    Args:
        caption: str.
    """
    return {category for _, category in mentions(caption)}


def object_agreement(
    captions: Mapping[Any, str], references: Mapping[Any, Sequence[str]]
) -> tuple[float, float]:
    """Computes how well captions and references agree on objects.

    Args:
        captions: dict from image id to str.
        references: dict from image id to a list of str, at least for these images.

    Returns:
        Precision, the share of categories named by captions that a person names too;
        and recall, the share of categories named by any person that captions name.
        Both are over the categories of all images together.

    Raises:
        InputError: If captions or references are of another kind.
    """
    check(TextByImage, captions=captions)
    check(TextsByImage, references=references)
    named = {i: named_objects(caption) for i, caption in captions.items()}
    referenced = {i: set().union(*map(named_objects, references[i])) for i in captions}
    both = sum(len(named[i] & referenced[i]) for i in captions)
    precision = both / max(sum(map(len, named.values())), 1)
    return precision, both / max(sum(map(len, referenced.values())), 1)


def object_scores(
    captions: Mapping[Any, str],
    references: Mapping[Any, Sequence[str]],
    objects: Mapping[Any, Iterable[str]],
) -> dict[str, float]:
    """Scores the objects that captions name: recall, precision, hallucinations.

    Args:
        captions: dict from image id to str.
        references: dict from image id to a list of str, at least for these images.
        objects: dict from image id to the categories of its objects, of
            `keras_caption.objects.CATEGORIES`, at least for these images.

    Returns:
        dict from name to share: `precision` and `recall` of `object_agreement`;
        `repeated`, the share of captions that repeat a noun of an object; `CHAIR-i`,
        the share of mentions of objects whose category is neither among the image's
        objects nor named by a reference; and `CHAIR-s`, the share of captions with such
        a mention. The words of a category are ours, not those of the paper.

    Raises:
        InputError: If captions, references or objects are of another kind.

    Reference:
        Rohrbach et al., "Object Hallucination in Image Captioning", EMNLP 2018.
    """
    check(Mapping, objects=objects)
    precision, recall = object_agreement(captions, references)
    total = hallucinated = with_hallucination = repeated = 0
    for image_id, caption in captions.items():
        mentioned = mentions(caption)
        wrong = hallucinations(caption, references[image_id], objects[image_id])
        total, hallucinated = total + len(mentioned), hallucinated + wrong
        with_hallucination += wrong > 0
        repeated += max(Counter(noun for noun, _ in mentioned).values(), default=0) > 1
    count = max(len(captions), 1)
    return {
        "precision": precision,
        "recall": recall,
        "repeated": repeated / count,
        "CHAIR-i": hallucinated / max(total, 1),
        "CHAIR-s": with_hallucination / count,
    }


def hallucinations(
    caption: str, references: Sequence[str], objects: Iterable[str]
) -> int:
    """Counts mentions of objects that neither the image nor a reference has.

    Args:
        caption: str.
        references: Sequence of str, of the same image.
        objects: Iterable of the categories of the image's objects.
    """
    known = set(objects).union(*map(named_objects, references))
    return sum(category not in known for _, category in mentions(caption))
