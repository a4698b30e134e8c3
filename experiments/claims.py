r"""Compares the effects that the papers report with the tables in docs/results.

    python experiments/claims.py

writes `claims.csv` and `claims_earlier.csv` to docs/results. For each effect that a
paper reports (experiments/papers/claimed.py), they hold the paper's difference, our
difference with a 95 % interval, and a verdict. Our differences are those of
`kc.evaluation.paired_difference`, over seeds and images, from files that `tables.py
--differences` wrote. Earlier tables have only means and deviations over three seeds:
intervals are then Welch's, over seeds.

The log-probability of references per token decides if it is known, and else the paper's
score. This rule, the margins within which an effect counts as none (`MARGINS`), and the
rules of `verdict` were fixed before an effect was seen. P-values are adjusted for the
number of comparisons in a file, by Holm and by Benjamini and Hochberg.
Log-probabilities are in thousandths.
"""

import csv
import math
import pathlib
from typing import NamedTuple

import numpy as np
from scipy.stats import false_discovery_control

from experiments.papers.claimed import EARLIER, SETTLED
from keras_caption.commands.command_line import Parser, start
from keras_caption.evaluation import Difference

FOLDER = pathlib.Path(__file__).parents[1] / "docs" / "results"
SEEDS = 3  # in tables of means and deviations
LIKELIHOODS = "log_probability", "log_perplexity"
# Effects that count as none: in points, and for log-probabilities in nats.
MARGINS = {"CIDEr-D": 2.0, "BLEU": 0.5, "all": 0.5}
LIKELIHOOD_MARGIN = 0.005
FILES = {"claims": SETTLED, "claims_earlier": EARLIER}
CAME_OUT, EQUIVALENT = "came out", "equivalent"
REVERSED, UNKNOWN = "reversed", "cannot be told"
UNTRAINED = "base untrained"
GAIN, LOSS = "gain", "loss"  # verdicts on effects without a number in the papers
HEADS = (
    *("row", "seeds", "paper's", "ours", "log-probability"),
    *("p", "Holm", "Benjamini-Hochberg", "smallest effect", "verdict"),
)


def main(arguments):
    parser = Parser("experiments/claims.py", __doc__, needs_library=False)
    parser.parse_args(arguments)
    for name, claims in FILES.items():
        path = FOLDER / f"{name}.csv"
        with open(path, "w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(table(claims))
        print(f"Wrote {path}")


class Evidence(NamedTuple):
    """The evidence of one of our files on a claim.

    Attributes:
        seeds: Number of seeds.
        score: `Difference` of the paper's score, in points.
        likelihood: `Difference` of log-probabilities, or `None` if not known.
    """

    seeds: str
    score: Difference
    likelihood: Difference | None = None

    @property
    def decisive(self):
        """The difference that decides on the claim."""
        return self.score if self.likelihood is None else self.likelihood


def table(claims):
    """The heads of the columns, and the rows, lists of str."""
    results = {
        (claim, file): evidence(claim, file) for claim in claims for file in claim.files
    }
    verdicts = {
        (claim.effect, file): verdict(claim, result)
        for (claim, file), result in results.items()
    }
    p_values = [x.decisive.p_value for x in results.values()]
    adjusted = zip(
        p_values, holm(p_values), false_discovery_control(p_values), strict=True
    )
    lines = [[*HEADS]]
    for ((claim, file), result), p in zip(results.items(), adjusted, strict=True):
        text = verdicts[claim.effect, file]
        if verdicts.get((claim.premise, file)) == REVERSED:
            text = UNTRAINED
        likelihood, smallest = "", f"{result.score.smallest_effect:.1f}"
        if result.likelihood is not None:
            likelihood = interval(result.likelihood, 1000, 0)
            smallest += f" / {1000 * result.likelihood.smallest_effect:.0f}"
        paper = "" if claim.paper is None else f"{claim.paper:+.2g}"
        name = claim.effect if len(claim.files) == 1 else f"{claim.effect}: {file}"
        lines.append(
            [
                *(name, result.seeds, paper, interval(result.score), likelihood),
                *(f"{x:.3f}" for x in p),
                *(smallest, text),
            ]
        )
    return lines


def interval(difference, scale=1, digits=1):
    """Text of a difference and its interval."""
    ends = (scale * x for x in (difference.mean, difference.low, difference.high))
    return "{} ({} to {})".format(*(f"{x:+.{digits}f}" for x in ends))


def verdict(claim, result):
    """The verdict of `Evidence` on a claim.

    - The paper reports no effect: it came out if the interval is within the margin, and
      is reversed if the interval is beyond it.
    - The paper reports an effect: it came out if all of the interval has its sign, and
      is reversed if all has the other sign. If the interval has both signs, the effect
      is equivalent to none if the interval is within the margin.
    - The paper gives no number, as for controls: a sign is a gain or a loss.

    If the paper's score and the log-probability have different signs, the verdict is
    that it cannot be told.
    """
    of_score, decisive = result.score, result.decisive
    margin = MARGINS[claim.column] if decisive is of_score else LIKELIHOOD_MARGIN
    is_within = -margin < decisive.low and decisive.high < margin
    if claim.is_none:
        if is_within:
            return CAME_OUT
        is_beyond = decisive.low > margin or decisive.high < -margin
        return REVERSED if is_beyond else UNKNOWN
    signs = {sign(x) for x in (of_score, decisive)} - {0}
    if len(signs) > 1:
        return UNKNOWN
    if sign(decisive) and claim.paper is None:
        return GAIN if sign(decisive) > 0 else LOSS
    if sign(decisive):
        return CAME_OUT if sign(decisive) * claim.paper > 0 else REVERSED
    return EQUIVALENT if is_within else UNKNOWN


def sign(difference):
    """The sign of all of an interval: 1, -1, or 0 if it has both signs."""
    return (difference.low > 0) - (difference.high < 0)


def evidence(claim, file):
    """The `Evidence` of one of our files."""
    names = claim.names
    with open(FOLDER / f"{file}.csv", newline="", encoding="utf-8") as lines:
        rows = [x for x in csv.DictReader(lines) if x.get("data", "") == claim.data]
    if f"{claim.column} error" in rows[0]:
        [row] = (
            x
            for x in rows
            if is_of(x["row"], names[0]) and is_of(x["against"], names[1])
        )
        known = [name for name in LIKELIHOODS if row.get(f"{name} error")]
        likelihoods = [compared(row, name) for name in known]
        return Evidence(row["seeds"], compared(row, claim.column), *likelihoods)
    known = [row for row in rows if "\u00b1" in row[claim.column]]
    one, other = (
        next(x for x in known if is_of(x["row"], of_row))[claim.column]
        for of_row in names
    )
    return Evidence(str(SEEDS), over_seeds(one, other))


def is_of(label, names):
    """Whether the label of a row begins with one of the names."""
    return label in names or label.startswith(tuple(f"{name} (" for name in names))


def compared(row, name):
    """The difference in a row of a file of differences."""
    mean, error, degrees = (
        float(row[f"{name} {part}"]) for part in ("difference", "error", "degrees")
    )
    return Difference(mean, error, degrees, int(row["items"]), True)


def over_seeds(one, other):
    """The difference of two means over seeds, with Welch's standard error."""
    (mean, deviation), (base, of_base) = (
        map(float, text.split("\u00b1")) for text in (one, other)
    )
    parts = [x**2 / SEEDS for x in (deviation, of_base)]
    degrees = sum(parts) ** 2 / sum(x**2 / (SEEDS - 1) for x in parts)
    return Difference(mean - base, math.sqrt(sum(parts)), degrees, 0, True)


def holm(p_values):
    """Holm's adjusted p-values, in the same order."""
    adjusted, least = {}, 0.0
    for rank, number in enumerate(np.argsort(p_values)):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[number]))
        adjusted[number] = least
    return [adjusted[number] for number in range(len(p_values))]


if __name__ == "__main__":
    start(main)
