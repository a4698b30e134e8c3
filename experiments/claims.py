r"""Says which effects of the papers came out, by the tables in docs/results.

    python experiments/claims.py --csv claims.csv

Prints, for each effect that a paper reports, its difference there, ours with a 95 %
interval, and a verdict. Differences are those of `kc.evaluation.paired_difference`,
over seeds and images, of files that `tables.py --differences` wrote. Older tables have
means and deviations of three seeds only: of these, intervals are over seeds, Welch's.

The log-probability of references decides, per token, where it is known; else the
paper's score. Fixed before an effect was seen are this, the margins within which an
effect is none (`MARGINS`) and the rules of `verdict`. All p-values are adjusted for the
number of comparisons, by Holm and by Benjamini and Hochberg. Log-probabilities are in
thousandths.
"""

import csv
import math
import pathlib
from typing import NamedTuple

import numpy as np
from scipy.stats import false_discovery_control

import keras_caption as kc
from keras_caption.commands.command_line import Parser, new_file, start
from keras_caption.evaluation import Difference
from keras_caption.papers import TABLES

FOLDER = pathlib.Path(__file__).parents[1] / "docs" / "results"
SEEDS = 3  # of tables of means and deviations
LIKELIHOODS = "log_probability", "log_perplexity"
PUBLISHED = {"all": "accuracy"}  # columns of ours that have another name
# Effects that are as good as none: points, and for log-probabilities nats.
MARGINS = {"CIDEr-D": 2.0, "BLEU": 0.5, "all": 0.5}
LIKELIHOOD_MARGIN = 0.005
CAME_OUT, EQUIVALENT = "came out", "equivalent"
REVERSED, UNKNOWN = "reversed", "cannot be told"
UNTRAINED = "base untrained"
HEADS = (
    *("row", "seeds", "paper's", "ours", "log-probability"),
    *("p", "Holm", "Benjamini-Hochberg", "smallest effect", "verdict"),
)


class Claim(NamedTuple):
    """An effect: one row of a table over another.

    Attributes:
        effect: What it is of.
        table: Name of the paper's table in `keras_caption.papers.TABLES`.
        labels: Labels of the two rows there, with the effect and without.
        files: CSV files of ours in docs/results, whose rows have these labels, or the
            names of their models.
        column: The score there.
        rows: Names of our two rows, where they are others.
        layers: Depth of the paper's rows, where a table has several.
        premise: Effect, of another claim, without which this one means nothing: that
            its base trains as well as the paper's.
        is_none: Whether the paper's claim is that there is no effect.
    """

    effect: str
    table: str
    labels: tuple
    files: tuple
    column: str = "CIDEr-D"
    rows: tuple = ()
    layers: int | None = None
    premise: str = ""
    is_none: bool = False


BOTH = ("coco_objects", "scenes")
AOA = ("aoanet_4", "aoanet_4_scenes")
QUESTIONS = ("coco_qa", "photos_coco_qa", "photos_vqa")
NO_EFFECT = "eight heads for one"
PREMISES = {"AoA over an LSTM, eight heads": "an LSTM in the decoder, eight heads"}


def before_and_after(effect, effect_after, *labels):
    """The claims of captioners before self-critical training, and after it."""
    own = {row.label: row.model for row in TABLES["ngsan_6"].rows}
    rows = tuple(f"{own[label]} + SCST" for label in labels)
    return (
        Claim(effect, "ngsan_6", labels, BOTH),
        Claim(effect_after, "ngsan_6", labels, BOTH, rows=rows),
    )


CLAIMS = (
    *before_and_after("GSA (SAN to G-SAN)", "GSA, after SCST", "G-SAN", "SAN"),
    *before_and_after("NSA (SAN to N-SAN)", "NSA, after SCST", "N-SAN", "SAN"),
    *before_and_after(
        "NSA with GSA (G-SAN to NG-SAN)", "NSA with GSA, after SCST", "NG-SAN", "G-SAN"
    ),
    *(
        Claim(
            f"NSA over objects as pixels, {name}",
            "ngsan_1",
            ("N-SAN", "SAN"),
            (file,),
            layers=layers,
        )
        for name, file, layers in (
            ("one layer", "effects_norms", 1),
            ("two layers", "effects_depth", 2),
        )
    ),
    Claim("IN over LN", "ngsan_2", ("IN", "LN"), ("ngsan_2",)),
    Claim("IN over BN", "ngsan_2", ("IN", "BN"), ("ngsan_2",)),
    Claim("queries over keys normalized", "ngsan_3", ("query", "key"), ("ngsan_3",)),
    Claim(
        "absolute positions",
        "ngsan_4",
        ("absolute", "SAN"),
        ("ngsan_4", "effects_size"),
        is_none=True,
    ),
    Claim(
        "content-independent GSA",
        "ngsan_4",
        ("content-independent", "SAN"),
        ("ngsan_4",),
    ),
    Claim(
        "query-dependent over content-independent GSA",
        "ngsan_4",
        ("query-dependent", "content-independent"),
        ("ngsan_4",),
    ),
    Claim(
        "NSA over frames",
        "ngsan_7",
        ("+ NSA", "Transformer"),
        ("moving_scenes_parts", "msvd"),
    ),
    Claim(
        "GSA in MCAN",
        "ngsan_9",
        ("+ GSA, test-std", "MCAN (Ours), test-std"),
        QUESTIONS,
        "all",
        ("mcan_gsa, query", "mcan"),
    ),
    *(
        Claim(
            *(effect, "aoanet_4", tuple(labels), files),
            premise=PREMISES.get(effect, ""),
            is_none=effect == NO_EFFECT,
        )
        for effect, files, *labels in (
            ("refining without AoA", AOA, "+ Enc: Refine (w/o AoA)", "Base"),
            (
                "AoA in refining",
                AOA,
                "+ Enc: Refine (w/ AoA)",
                "+ Enc: Refine (w/o AoA)",
            ),
            ("AoA in the decoder, one head", AOA, "+ Dec: AoA", "Base"),
            (
                "an LSTM in the decoder, one head",
                (*AOA, "effects_size"),
                "+ Dec: LSTM",
                "Base",
            ),
            ("eight heads for one", AOA[:1], "+ Dec: MH-Att", "Base"),
            (
                "AoA in the decoder, eight heads",
                AOA[:1],
                "+ Dec: MH-Att, AoA",
                "+ Dec: MH-Att",
            ),
            (
                "an LSTM in the decoder, eight heads",
                AOA[:1],
                "+ Dec: MH-Att, LSTM",
                "+ Dec: MH-Att",
            ),
            (
                "AoA over an LSTM, eight heads",
                AOA,
                "+ Dec: MH-Att, AoA",
                "+ Dec: MH-Att, LSTM",
            ),
            (
                "refining in the full model",
                AOA,
                "Full: AoANet",
                "+ Dec: MH-Att, AoA",
            ),
        )
    ),
    *(
        Claim(
            f"areas, subwords, {languages}",
            "area_2",
            (f"Tiny, area, {languages}", f"Tiny, regular, {languages}"),
            ("area_2",),
            "BLEU",
        )
        for languages in ("En-De", "En-Fr")
    ),
    *(
        Claim(
            f"areas that begin smaller, En-De{blocks}",
            "area_2",
            ("Tiny, area, En-De", "Tiny, regular, En-De"),
            ("effects_areas",),
            "BLEU",
            rows,
        )
        for blocks, rows in (
            ("", ("areas, begun at a third", "plain attention")),
            (", pre-norm blocks", ("pre-norm at a third", "pre-norm plain")),
        )
    ),
)


def main(arguments):
    parser = Parser("experiments/claims.py", __doc__, imports=True)
    parser.add_argument("--csv", type=new_file, help="new file for the table as well")
    options = parser.parse_args(arguments)
    heads, *rows = table()
    print(kc.evaluation.markdown_table(heads, rows))
    if options.csv:
        with open(options.csv, "w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([heads, *rows])


class Evidence(NamedTuple):
    """What a file of ours says of a claim.

    Attributes:
        seeds: Number of seeds.
        score: `Difference` of the paper's score, in points.
        likelihood: `Difference` of log-probabilities, or `None` where not known.
    """

    seeds: str
    score: Difference
    likelihood: Difference | None = None

    @property
    def decisive(self):
        """The difference that decides."""
        return self.score if self.likelihood is None else self.likelihood


def table():
    """The heads of the columns, and the rows, lists of str."""
    found = {
        (claim, file): evidence(claim, file) for claim in CLAIMS for file in claim.files
    }
    verdicts = {
        (claim.effect, file): verdict(claim, of_file)
        for (claim, file), of_file in found.items()
    }
    p_values = [x.decisive.p_value for x in found.values()]
    adjusted = zip(
        p_values, holm(p_values), false_discovery_control(p_values), strict=True
    )
    lines = [[*HEADS]]
    for ((claim, file), of_file), of_p in zip(found.items(), adjusted, strict=True):
        text = verdicts[claim.effect, file]
        if verdicts.get((claim.premise, file)) == REVERSED:
            text = UNTRAINED
        likelihood, smallest = "", f"{of_file.score.smallest_effect:.1f}"
        if of_file.likelihood is not None:
            likelihood = interval(of_file.likelihood, 1000, 0)
            smallest += f" / {1000 * of_file.likelihood.smallest_effect:.0f}"
        lines.append(
            [
                *(f"{claim.effect}: {file}", of_file.seeds),
                *(f"{published(claim):+.2g}", interval(of_file.score), likelihood),
                *(f"{x:.3f}" for x in of_p),
                *(smallest, text),
            ]
        )
    return lines


def interval(found, scale=1, digits=1):
    """Text of a difference and its interval."""
    ends = (scale * x for x in (found.mean, found.low, found.high))
    return "{} ({} to {})".format(*(f"{x:+.{digits}f}" for x in ends))


def verdict(claim, found):
    """What `Evidence` says of a claim.

    An effect that the paper calls none came out if the interval is within the margin,
    and is reversed if it is beyond. Any other came out if the interval has its sign
    only, and is reversed if it has the other sign only; without a sign it is equivalent
    to none if the interval is within the margin. Where the paper's score and the
    log-probability have different signs, it cannot be told.
    """
    of_score, decisive = found.score, found.decisive
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
    if sign(decisive):
        return CAME_OUT if sign(decisive) * published(claim) > 0 else REVERSED
    return EQUIVALENT if is_within else UNKNOWN


def sign(found):
    """The sign that all of an interval has: 1, -1, or 0 if it has both."""
    return (found.low > 0) - (found.high < 0)


def published(claim):
    """The paper's effect, in points."""
    one, other = (row.scores for row in published_rows(claim))
    name = PUBLISHED.get(claim.column, claim.column)
    return one[name] - other[name]


def published_rows(claim):
    """The paper's rows with the effect and without."""
    rows = [
        row
        for row in TABLES[claim.table].rows
        if claim.layers in (None, row.overrides.get("model.num_layers"))
    ]
    return [next(x for x in rows if x.label == label) for label in claim.labels]


def evidence(claim, file):
    """The `Evidence` of a file of ours."""
    names = [(row,) for row in claim.rows]
    names = names or [(x.label, x.model) for x in published_rows(claim)]
    with open(FOLDER / f"{file}.csv", newline="", encoding="utf-8") as lines:
        rows = [*csv.DictReader(lines)]
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
    """Whether a row is of one of the names, by which its label begins."""
    return label in names or label.startswith(tuple(f"{name} (" for name in names))


def compared(row, name):
    """The difference that a row of a file of differences holds."""
    mean, error, degrees = (
        float(row[f"{name} {part}"]) for part in ("difference", "error", "degrees")
    )
    return Difference(mean, error, degrees, int(row["items"]), True)


def over_seeds(one, other):
    """The difference of two means of seeds, by their deviations, Welch's."""
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
