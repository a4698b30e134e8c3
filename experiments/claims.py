r"""Compares the effects that the papers report with the tables in docs/results.

`python experiments/results.py` writes `effects.csv`, `claims.csv` and
`claims_earlier.csv` to docs/results. For each effect that a paper reports
(experiments/papers/claimed.py), they hold the paper's difference, our difference with a
95 % interval, and a verdict: `claims.csv` those of five seeds or more that began as
today's code begins, `claims_earlier.csv` the others, and `effects.csv` what a reader
wants to know first.

Differences are those of `kc.evaluation.paired_difference`, over seeds and images, from
archived runs (experiments/papers/archives.py) or from files that `tables.py
--differences` wrote. Other tables have only means and deviations over seeds: intervals
are then Welch's, over seeds.

The log-probability of references per token decides if it is known, and else the paper's
score. This rule, the margins within which an effect counts as none (`MARGINS`), and the
rules of `verdict` were fixed before an effect was seen. The p-values of the primary
comparisons are adjusted for their number, by Holm, those that are not trained yet
included; all others are exploratory. Log-probabilities are in thousandths.
"""

import csv
import dataclasses
import functools
import math
import pathlib
from typing import NamedTuple

import numpy as np

from experiments.papers.archives import archived_runs
from experiments.papers.claimed import CLAIMS, HEADLINES, PRIMARY
from experiments.papers.plan import PLAN
from experiments.papers.rows import rows_of
from experiments.papers.sections import items_of
from keras_caption.evaluation import SCORES, Difference, paired_difference, ratio
from keras_caption.models.initializers import INITIALIZATION_VERSION

FOLDER = pathlib.Path(__file__).parents[1] / "docs" / "results"
LIKELIHOODS = "log_probability", "log_perplexity"
LEAST_SEEDS = 5  # of `claims.csv`
# Effects that count as none: in points, and for log-probabilities in nats.
MARGINS = {"CIDEr-D": 2.0, "BLEU": 0.5, "all": 0.5, "accuracy": 0.5}
LIKELIHOOD_MARGIN = 0.005
CAME_OUT, EQUIVALENT = "came out", "equivalent"
REVERSED, UNKNOWN = "reversed", "cannot be told"
UNTRAINED, NOT_YET = "base untrained", "not trained yet"
EXPLORATORY = "exploratory"  # instead of a p-value of Holm
HEADS = (
    *("row", "seeds", "paper's", "ours", "log-probability", "smallest effect"),
    *("p", "Holm", "verdict", "initialization"),
)
GAIN, LOSS = "gain", "loss"  # verdicts on effects without a number in the papers


class Evidence(NamedTuple):
    """The evidence of one of our files on a claim.

    Attributes:
        seeds: Number of seeds.
        score: `Difference` of the paper's score, in points.
        likelihood: `Difference` of log-probabilities, or `None` if not known.
        initialization: Version of the start of the weights, as its file has it.
    """

    seeds: int
    score: Difference
    likelihood: Difference | None = None
    initialization: str = str(INITIALIZATION_VERSION)

    @property
    def decisive(self):
        """The difference that decides on the claim."""
        return self.score if self.likelihood is None else self.likelihood

    @property
    def is_settled(self):
        """Whether it is of seeds enough, which began as today's code begins."""
        is_todays = self.initialization == str(INITIALIZATION_VERSION)
        return is_todays and self.seeds >= LEAST_SEEDS


def tables():
    """The lines of the CSV files, dicts from column to str, by name of the file."""
    results = {
        name_of(claim, file): (claim, file, evidence(claim, file))
        for claim in CLAIMS
        for file in claim.files
    }
    verdicts = {
        name: verdict(claim, result) if result else NOT_YET
        for name, (claim, _, result) in results.items()
    }
    for name, (claim, file, _) in results.items():
        premises = [x for x in CLAIMS if x.effect == claim.premise and file in x.files]
        if any(verdicts[name_of(x, file)] == REVERSED for x in premises):
            verdicts[name] = UNTRAINED
    primary = [results[name][-1] for name in PRIMARY]
    is_settled = [result is not None and result.is_settled for result in primary]
    adjusted = holm(
        [
            result.decisive.p_value if settled else 1.0
            for result, settled in zip(primary, is_settled, strict=True)
        ]
    )
    adjusted = {
        name: p
        for name, p, settled in zip(PRIMARY, adjusted, is_settled, strict=True)
        if settled
    }
    lines = {True: [], False: []}
    for name, (claim, _, result) in results.items():
        if result is None:
            continue
        likelihood, smallest = "", f"{result.score.smallest_effect:.1f}"
        if result.likelihood is not None:
            likelihood = interval(result.likelihood, 1000, 0)
            smallest += f" / {1000 * result.likelihood.smallest_effect:.0f}"
        line = {
            "row": name,
            "seeds": str(result.seeds),
            "paper's": paper_of(claim),
            "ours": interval(result.score),
            "log-probability": likelihood,
            "smallest effect": smallest,
            "p": f"{result.decisive.p_value:.3f}",
            "Holm": f"{adjusted[name]:.3f}" if name in adjusted else EXPLORATORY,
            "verdict": verdicts[name],
            "initialization": result.initialization,
        }
        lines[result.is_settled].append(line)
    found = {line["row"]: line for line in lines[True] + lines[False]}
    return {
        "effects": [*map(headline(found), HEADLINES)],
        "claims": lines[True],
        "claims_earlier": lines[False],
    }


def headline(found):
    """A function from a `Headline` to its line, by the lines of all claims."""

    def line_of(headline):
        line = found.get(headline.effect, {})
        text = line.get("verdict", headline.verdict)
        smallest = line.get("smallest effect", "").partition(" ")[0]
        return {
            "claim": headline.claim,
            "paper's": line.get("paper's", headline.paper),
            "ours": line.get("ours", ""),
            "seeds": line.get("seeds", ""),
            "verdict": text,
            # The reason was written for a verdict.
            "why": headline.why.format(smallest=smallest)
            if text == headline.verdict
            else "",
            "initialization": line.get("initialization", ""),
        }

    return line_of


def name_of(claim, file):
    """The name of a claim in one of its files."""
    return claim.effect if len(claim.files) == 1 else f"{claim.effect}: {file}"


def paper_of(claim):
    return "" if claim.paper is None else f"{claim.paper:+.2g}"


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
    """The `Evidence` of one of our files; `None` if nothing was trained for it."""
    archived = archived_evidence(claim, file)
    path = FOLDER / f"{file}.csv"
    if archived or not path.exists():
        return archived
    names = claim.names
    with open(path, newline="", encoding="utf-8") as lines:
        rows = [x for x in csv.DictReader(lines) if x.get("data", "") == claim.data]
    if f"{claim.column} error" in rows[0]:
        [row] = (
            x
            for x in rows
            if is_of(x["row"], names[0]) and is_of(x["against"], names[1])
        )
        known = [name for name in LIKELIHOODS if row.get(f"{name} error")]
        likelihoods = [compared(row, name) for name in known]
        likelihood = likelihoods[0] if likelihoods else None
        score, version = compared(row, claim.column), row["initialization"]
        return Evidence(int(row["seeds"]), score, likelihood, version)
    known = [row for row in rows if "\u00b1" in row[claim.column]]
    pair = [next((x for x in known if is_of(x["row"], y)), None) for y in names]
    if None in pair:
        return None
    one, other = pair
    # Of one row that is archived, the other is of earlier code: what else has changed
    # since would count as the effect.
    if bool(one.get("commit")) != bool(other.get("commit")):
        return None
    seeds = min(int(one["seeds"]), int(other["seeds"]))
    score = over_seeds(one[claim.column], other[claim.column], seeds)
    version = min(one["initialization"], other["initialization"])
    return Evidence(seeds, score, initialization=version)


def archived_evidence(claim, file):
    """The `Evidence` of archived runs, or `None` if both rows are not there."""
    rows = archived_rows(file)
    pair = [
        next((x for label, x in rows.items() if is_of(label, names)), None)
        for names in claim.names
    ]
    if None in pair:
        return None
    (seeds, items, version), (of_base, base, of_other) = pair
    differences = {
        name: paired_difference(items[name], base[name], SCORES.get(name, ratio))
        for name in (claim.column, *LIKELIHOODS)
        if name in items and name in base
    }
    score = differences.pop(claim.column)
    likelihood = next(iter(differences.values()), None)
    score = dataclasses.replace(score, mean=100 * score.mean, error=100 * score.error)
    return Evidence(min(seeds, of_base), score, likelihood, min(version, of_other))


@functools.cache
def archived_rows(file):
    """The archived rows of a planned table.

    Returns:
        dict from label to number of seeds, scores of single images as `items_of`
        returns them, and version of the start of the weights.
    """
    rows = {}
    for training in {x.csv: x for x in PLAN if x.csv == file}.values():
        with archived_runs(training) as runs:
            for row in rows_of(training.table, runs):
                versions = [str(run["initialization_version"]) for run in row.runs]
                if row.runs:
                    rows[row.label] = len(row.runs), items_of(row.runs), min(versions)
    return rows


def is_of(label, names):
    """Whether the label of a row begins with one of the names."""
    return label in names or label.startswith(tuple(f"{name} (" for name in names))


def compared(row, name):
    """The difference in a row of a file of differences."""
    mean, error, degrees = (
        float(row[f"{name} {part}"]) for part in ("difference", "error", "degrees")
    )
    return Difference(mean, error, degrees, int(row["items"]), True)


def over_seeds(one, other, seeds):
    """The difference of two means over seeds, with Welch's standard error."""
    (mean, deviation), (base, of_base) = (
        map(float, text.split("\u00b1")) for text in (one, other)
    )
    parts = [x**2 / seeds for x in (deviation, of_base)]
    degrees = sum(parts) ** 2 / sum(x**2 / (seeds - 1) for x in parts)
    return Difference(mean - base, math.sqrt(sum(parts)), degrees, 0, True)


def holm(p_values):
    """Holm's adjusted p-values, in the same order."""
    adjusted, least = {}, 0.0
    for rank, number in enumerate(np.argsort(p_values)):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[number]))
        adjusted[number] = least
    return [adjusted[number] for number in range(len(p_values))]
