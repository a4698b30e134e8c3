import dataclasses
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

SAMPLES = 1000  # of the bootstrap
LEVEL = 0.95


def ratio(sums: Float[np.ndarray, "... 2"]) -> Float[np.ndarray, "..."]:
    """A mean, by the sum of values and that of their weights."""
    return sums[..., 0] / sums[..., 1]


def bleu(sums: Float[np.ndarray, "... 10"]) -> Float[np.ndarray, "..."]:
    """BLEU, by sacreBLEU, of the sums of what `bleu_statistics` returns."""
    from sacrebleu.metrics import BLEU

    scores = [
        BLEU.compute_bleu(
            [*row[:4]], [*row[4:8]], int(row[8]), int(row[9]), smooth_method="exp"
        ).score
        / 100
        for row in sums.reshape(-1, sums.shape[-1])
    ]
    return np.array(scores).reshape(sums.shape[:-1])


def bleu_statistics(
    translations: Sequence[str], references: Sequence[str], tokenized: bool = False
) -> list[list[int]]:
    """What sums up to the BLEU of a corpus, of each translation.

    Args:
        translations, references, tokenized: As of
            `keras_caption.evaluation.score_translations`.

    Returns:
        A list of ten int each: n-grams of 1 to 4 words that are right, n-grams, length
        and the reference's length.
    """
    from sacrebleu.metrics import BLEU

    metric = BLEU(
        tokenize="none" if tokenized else "13a", force=tokenized, effective_order=True
    )
    scores = (
        metric.sentence_score(translation, [reference])
        for translation, reference in zip(translations, references, strict=True)
    )
    return [[*x.counts, *x.totals, x.sys_len, x.ref_len] for x in scores]


# How the score of a split follows from the sums of what its items have, by metric.
SCORES = {"BLEU": bleu}


@dataclasses.dataclass(frozen=True)
class Difference:
    """The difference between the scores of two models.

    Attributes:
        mean: float, of the mean scores over seeds.
        low, high: float, ends of its 95 % interval.
        items: int, number of items that both were scored on.
        has_seeds: bool, whether the interval says how scores vary with the seed: each
            model has been trained more than once.
    """

    mean: float
    low: float
    high: float
    items: int
    has_seeds: bool

    @property
    def verdict(self) -> str:
        """`"higher"`, `"lower"`, or `"cannot be told apart"`."""
        if self.low > 0:
            return "higher"
        return "lower" if self.high < 0 else "cannot be told apart"


def paired_difference(
    runs: Sequence[Mapping[Any, Sequence[float]]],
    others: Sequence[Mapping[Any, Sequence[float]]],
    score: Callable[[Any], Any] = ratio,
) -> Difference:
    """Compares two models, each trained with some seeds, on the same items.

    The interval is that of a bootstrap over items, which are sampled for all runs
    together, and over seeds, which are sampled for each model. Deviations of sampled
    means of n seeds are enlarged by `sqrt(n / (n - 1))`, and by how much wider
    Student's distribution is than the normal: sampled anew from three runs, means vary
    less than those of new runs.

    Args:
        runs: The model's runs, each a dict from item to numbers whose sums over items
            `score` reads. Items that not all runs have are skipped.
        others: The same of the model that it is compared with.
        score: Function of sums, float `(..., K)`, to scores. Defaults to `ratio`, of
            value and weight.

    Returns:
        `Difference`.

    Reference:
        Koehn, "Statistical Significance Tests for Machine Translation Evaluation",
        EMNLP 2004.
    """
    items = [i for i in runs[0] if all(i in run for run in (*runs[1:], *others))]
    degrees = sum(len(x) - 1 for x in (runs, others))
    rng = np.random.default_rng(0)
    counts = rng.multinomial(len(items), np.full(len(items), 1 / len(items)), SAMPLES)
    counts = np.concatenate([np.ones((1, len(items)), "int64"), counts])
    means, sampled = [], []
    for of_model in (runs, others):
        values = np.array([[run[i] for i in items] for run in of_model], "float64")
        scores = score(np.einsum("si,rik->srk", counts, values))
        seeds = len(of_model)
        mean = scores.mean(axis=1)
        means.append(mean[0])
        chosen = rng.integers(seeds, size=(SAMPLES, seeds))
        shift = np.take_along_axis(scores[1:], chosen, axis=1).mean(axis=1) - mean[1:]
        if seeds > 1:
            shift *= math.sqrt(seeds / (seeds - 1)) * widening(degrees)
        sampled.append(mean[1:] + shift)
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(sampled[0] - sampled[1], [tail, 1 - tail])
    seeds = min(len(runs), len(others))
    return Difference(
        float(means[0] - means[1]), float(low), float(high), len(items), seeds > 1
    )


def widening(degrees: int) -> float:
    """How much wider Student's 95 % interval is than the normal's."""
    z = statistics.NormalDist().inv_cdf((1 + LEVEL) / 2)
    # Abramowitz and Stegun, 26.7.5.
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return 1 + sum(x / degrees ** (i + 1) for i, x in enumerate(terms)) / z
