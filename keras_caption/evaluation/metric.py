"""The metrics of captions, by name."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from keras_caption.base.errors import InputError, missing_extras, need_name
from keras_caption.evaluation.meteor import meteor

Captions = Mapping[Any, Sequence[str]]


@dataclasses.dataclass(frozen=True)
class Metric:
    """One metric, or several that are computed at once.

    Attributes:
        compute: Function from references and captions to a float for each name. Both
            are dicts from image id to a list of str, of captions to
            a list of one; their words are separated by spaces. Where it raises
            `OSError` or `ValueError`, the scores have the reason as a note.
        is_of_english: bool, whether it needs English words, not characters.
        is_usual: bool, whether it is computed where nobody names metrics.
    """

    compute: Callable[[Captions, Captions], Sequence[float]]
    is_of_english: bool = False
    is_usual: bool = True


def _bleu(references: Captions, captions: Captions) -> Sequence[float]:
    with missing_extras():
        from pycocoevalcap.bleu.bleu import Bleu
    return Bleu(4).compute_score(references, captions, verbose=0)[0]


def _meteor(references: Captions, captions: Captions) -> Sequence[float]:
    return [meteor(references, captions)]


def _rouge(references: Captions, captions: Captions) -> Sequence[float]:
    with missing_extras():
        from pycocoevalcap.rouge.rouge import Rouge
    return [Rouge().compute_score(references, captions)[0]]


def _cider(references: Captions, captions: Captions) -> Sequence[float]:
    with missing_extras():
        from pycocoevalcap.cider.cider import Cider
    return [Cider().compute_score(references, captions)[0]]


def _spice(references: Captions, captions: Captions) -> Sequence[float]:
    with missing_extras():
        from keras_caption.evaluation.spice import spice
    return [spice(references, captions)]


REGISTRY: dict[tuple[str, ...], Metric] = {
    ("BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4"): Metric(_bleu),
    ("METEOR",): Metric(_meteor),
    ("ROUGE-L",): Metric(_rouge),
    ("CIDEr-D",): Metric(_cider),
    ("SPICE",): Metric(_spice, is_of_english=True, is_usual=False),
}
METRICS = tuple(name for names in REGISTRY for name in names)  # COCO's


def register_metric(name: str, compute: Callable[[Captions, Captions], float]) -> None:
    """Registers a metric of captions, which `score` and `--metrics` compute by name.

    Args:
        name: str.
        compute: Function from references and captions to a float; tables show it times
            100. Both are dicts from image id to a list of str, of captions to a list of
            one, as the PTB tokenizer splits them: words in lower case, without
            punctuation, separated by spaces.

    Raises:
        InputError: If there is a metric of that name already.

    Example:

    ```python
    def distinct(references, captions):
        return len({x for [x] in captions.values()}) / len(captions)

    kc.evaluation.register_metric("distinct", distinct)
    ```
    """
    if name in known_metrics():
        raise InputError(f"There is a metric {name!r} already.")

    def of_one(references, captions):
        return [compute(references, captions)]

    REGISTRY[name,] = Metric(of_one, is_usual=False)


def known_metrics() -> list[str]:
    """The names of the metrics of single captions."""
    return [name for names in REGISTRY for name in names]


def check_metric_names(names: Sequence[str], others: Sequence[str] = ()) -> None:
    """Raises `InputError` if there is no metric of a name."""
    known = [*known_metrics(), *others]
    for name in names:
        need_name(name, known, f"There is no metric {name!r}")
