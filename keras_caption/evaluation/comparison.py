import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from keras_caption.errors import missing_extras

LEVEL = 0.95
POWER = 0.8  # with which a smallest effect is found


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
        error: float, its standard error.
        degrees: float, degrees of freedom of that error.
        items: int, number of items that both were scored on.
        has_seeds: bool, whether the error says how scores vary with the seed: each
            model has been trained more than once.
    """

    mean: float
    error: float
    degrees: float
    items: int
    has_seeds: bool

    @property
    def low(self) -> float:
        """Lower end of the 95 % interval."""
        return self.mean - self.error * quantile((1 + LEVEL) / 2, self.degrees)

    @property
    def high(self) -> float:
        """Upper end of the 95 % interval."""
        return self.mean + self.error * quantile((1 + LEVEL) / 2, self.degrees)

    @property
    def p_value(self) -> float:
        """Probability of a difference this far from 0, of either sign, of equals."""
        with missing_extras():
            from scipy.stats import t
        if not self.error:
            return float(self.mean == 0)
        return float(2 * t.sf(abs(self.mean) / self.error, self.degrees))

    @property
    def smallest_effect(self) -> float:
        """The smallest true difference that 80 % of such comparisons would find."""
        quantiles = (quantile(x, self.degrees) for x in ((1 + LEVEL) / 2, POWER))
        return self.error * sum(quantiles)

    @property
    def verdict(self) -> str:
        """`"higher"`, `"lower"`, or `"cannot be told apart"`."""
        if self.low > 0:
            return "higher"
        return "lower" if self.high < 0 else "cannot be told apart"


def quantile(share: float, degrees: float) -> float:
    """Quantile of Student's distribution."""
    with missing_extras():
        from scipy.stats import t
    return float(t.ppf(share, degrees))


def paired_difference(
    runs: Sequence[Mapping[Any, Sequence[float]]],
    others: Sequence[Mapping[Any, Sequence[float]]],
    score: Callable[[Any], Any] = ratio,
) -> Difference:
    """Compares two models, each trained with some seeds, on the same items.

    Items and seeds are both samples: of the items that could have been scored, and of
    the runs that could have been trained. What an item has in common in both models
    cancels out. Seeds are not paired: a seed's number makes runs of two models no more
    alike. With S runs of a model, n items, s^2 the variance of scores over its runs,
    d_i the difference of item i between the means over runs, and r^2 the variance of a
    model's values that neither the run nor the item explains, the squared error is

        sum over both models of s^2 / S  +  var(d_i) / n  -  sum of r^2 / (S n),

    the last of which the first two both count, and no less than either of them. The
    degrees of freedom are Welch's and Satterthwaite's. Of a score that is no mean over
    items, an item's value is the jackknife's.

    Args:
        runs: The model's runs, each a dict from item to numbers whose sums over items
            `score` reads. Items that not all runs have are skipped.
        others: The same of the model that it is compared with.
        score: Function of sums, float `(..., K)`, to scores. Defaults to `ratio`, of
            value and weight.

    Returns:
        `Difference`.

    References:
        Owen, "The Pigeonhole Bootstrap", Annals of Applied Statistics 2007, section 3;
        Efron and Stein, "The Jackknife Estimate of Variance", Annals of Statistics
        1981; Welch, "The Generalization of Student's Problem", Biometrika 1947.
    """
    items = [i for i in runs[0] if all(i in run for run in (*runs[1:], *others))]
    scores, values = [], []
    for of_model in (runs, others):
        sums = np.array([[run[i] for i in items] for run in of_model], "float64")
        totals = sums.sum(axis=1, keepdims=True)
        scores.append(score(totals[:, 0]))
        values.append(jackknife(score(totals), sums, totals, score))
    mean = float(scores[0].mean() - scores[1].mean())
    error, degrees = crossed_error(*values)
    has_seeds = min(len(runs), len(others)) > 1
    return Difference(mean, error, degrees, len(items), has_seeds)


def jackknife(whole, sums, totals, score):
    """Values of items whose mean is the score but for its bias, `(runs, items)`."""
    count = sums.shape[1]
    if count == 1:
        return whole
    return count * whole - (count - 1) * score(totals - sums)


def crossed_error(
    values: Float[np.ndarray, "S n"], others: Float[np.ndarray, "Z n"]
) -> tuple[float, float]:
    """The standard error of a difference of means over runs and items.

    Args:
        values: float `(S, n)`, of S runs of a model and n items.
        others: float `(Z, n)`, of Z runs of another model and the same items.

    Returns:
        The error and its degrees of freedom, see `paired_difference`.
    """
    count = values.shape[1]
    parts, degrees, shared = [], [], 0.0
    for x in (values, others):
        runs = len(x)
        if runs > 1:
            parts.append(x.mean(axis=1).var(ddof=1) / runs)
            degrees.append(runs - 1)
            if count > 1:
                rest = x - x.mean(axis=0) - x.mean(axis=1, keepdims=True) + x.mean()
                shared += np.sum(rest**2) / ((runs - 1) * (count - 1)) / (runs * count)
    of_seeds, of_items = sum(parts), 0.0
    if count > 1:
        of_items = (values.mean(axis=0) - others.mean(axis=0)).var(ddof=1) / count
        parts.append(of_items)
        degrees.append(count - 1)
    square = max(of_seeds + of_items - shared, of_seeds, of_items)
    if not square:
        return 0.0, float(sum(degrees))
    satterthwaite = sum(x**2 / n for x, n in zip(parts, degrees, strict=True))
    return float(np.sqrt(square)), float(square**2 / satterthwaite)
