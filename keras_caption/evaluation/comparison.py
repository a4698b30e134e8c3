import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from keras_caption.base.errors import missing_extras

LEVEL = 0.95
POWER = 0.8  # probability of finding the smallest effect


def ratio(sums: Float[np.ndarray, "... 2"]) -> Float[np.ndarray, "..."]:
    """Computes a mean from the sum of values and the sum of weights."""
    return sums[..., 0] / sums[..., 1]


def bleu(sums: Float[np.ndarray, "... 10"]) -> Float[np.ndarray, "..."]:
    """Computes BLEU with sacreBLEU from sums of `bleu_statistics`."""
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
    """Computes the statistics of each translation whose sums yield a corpus BLEU.

    Args:
        translations, references, tokenized: See
            `keras_caption.evaluation.score_translations`.

    Returns:
        A list of lists of ten int: numbers of matching n-grams for n from 1 to 4,
        numbers of all n-grams, length, and length of the reference.
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


# Functions from sums over the items of a split to its score, by metric.
SCORES = {"BLEU": bleu}


@dataclasses.dataclass(frozen=True)
class Difference:
    """The difference between the scores of two models.

    Attributes:
        mean: float, difference of the models' mean scores over seeds.
        error: float, standard error of the mean.
        degrees: float, degrees of freedom of the error.
        items: int, number of items that both models were scored on.
        has_seeds: bool, whether the error includes the variation over seeds, because
            each model was trained more than once.
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
        """Two-sided p-value of the null hypothesis that the difference is 0."""
        with missing_extras():
            from scipy.stats import t
        if not self.error:
            return float(self.mean == 0)
        return float(2 * t.sf(abs(self.mean) / self.error, self.degrees))

    @property
    def smallest_effect(self) -> float:
        """The smallest true difference that such a comparison finds with 80 % power."""
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

    Items and seeds are both samples, of the items that could have been scored and of
    the runs that could have been trained. Items are paired: the effect of an item on
    both models cancels out. Seeds are not paired: runs of two models with the same seed
    are no more alike than others. With S runs of a model, n items, s^2 the variance of
    scores over its runs, d_i the difference of item i between the means over runs, and
    r^2 the variance of a model's values that neither run nor item explains, the squared
    error is

        sum over both models of s^2 / S  +  var(d_i) / n  -  sum of r^2 / (S n),

    but at least each of the first two terms; both of these contain the last term, which
    is therefore subtracted once. The degrees of freedom are those of Welch and
    Satterthwaite. For a score that is not a mean over items, the value of an item is
    its jackknife pseudo-value.

    Args:
        runs: Runs of a model, each a dict from item to K numbers, whose sums over items
            `score` reads. Items that some runs lack are skipped.
        others: Runs of the model that it is compared with, in the same form.
        score: Function from sums, float `(..., K)`, to scores. Defaults to `ratio`, for
            values and weights.

    Returns:
        `Difference`.

    References:
        Owen, "The Pigeonhole Bootstrap", Annals of Applied Statistics 2007, section 3;
        Efron and Stein, "The Jackknife Estimate of Variance", Annals of Statistics
        1981; Welch, "The Generalization of Student's Problem", Biometrika 1947.
    """
    items = [i for i in runs[0] if all(i in run for run in (*runs[1:], *others))]
    scores, values = [], []
    for model_runs in (runs, others):
        sums = np.array([[run[i] for i in items] for run in model_runs], "float64")
        totals = sums.sum(axis=1, keepdims=True)
        scores.append(score(totals[:, 0]))
        values.append(jackknife(score(totals), sums, totals, score))
    mean = float(scores[0].mean() - scores[1].mean())
    error, degrees = crossed_error(*values)
    has_seeds = min(len(runs), len(others)) > 1
    return Difference(mean, error, degrees, len(items), has_seeds)


def jackknife(whole, sums, totals, score):
    """Computes jackknife pseudo-values of items, `(runs, items)`."""
    count = sums.shape[1]
    if count == 1:
        return whole
    return count * whole - (count - 1) * score(totals - sums)


def crossed_error(
    values: Float[np.ndarray, "S n"], others: Float[np.ndarray, "Z n"]
) -> tuple[float, float]:
    """Computes the standard error of a difference of means over runs and items.

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
                # Residuals of a two-way layout: what neither run nor item explains.
                rest = x - x.mean(axis=0) - x.mean(axis=1, keepdims=True) + x.mean()
                shared += np.sum(rest**2) / ((runs - 1) * (count - 1)) / (runs * count)
    seed_part, item_part = sum(parts), 0.0
    if count > 1:
        item_part = (values.mean(axis=0) - others.mean(axis=0)).var(ddof=1) / count
        parts.append(item_part)
        degrees.append(count - 1)
    square = max(seed_part + item_part - shared, seed_part, item_part)
    if not square:
        return 0.0, float(sum(degrees))
    satterthwaite = sum(x**2 / n for x, n in zip(parts, degrees, strict=True))
    return float(np.sqrt(square)), float(square**2 / satterthwaite)
