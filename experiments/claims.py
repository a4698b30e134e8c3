r"""Says which effects of the papers came out, by the tables in docs/results.

    python experiments/claims.py --csv claims.csv

Prints, for each effect that a paper reports, its difference there, ours, the 95 %
interval of ours and a verdict. The interval is Welch's, of the means and deviations of
three seeds each in the CSV files, with Student's distribution. An effect came out if
the interval has the paper's sign only, is reversed if it has the other sign only, and
cannot be told if it has both.
"""

import csv
import math
import pathlib
from typing import NamedTuple

import keras_caption as kc
from keras_caption.commands.command_line import Parser, new_file, start
from keras_caption.evaluation.comparison import widening
from keras_caption.papers import TABLES

FOLDER = pathlib.Path(__file__).parents[1] / "docs" / "results"
SEEDS = 3
PUBLISHED = {"all": "accuracy"}  # columns of ours that have another name


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
    """

    effect: str
    table: str
    labels: tuple
    files: tuple
    column: str = "CIDEr-D"
    rows: tuple = ()
    layers: int | None = None


BOTH = ("coco_objects", "scenes")
AOA = ("aoanet_4", "aoanet_4_scenes")
QUESTIONS = ("coco_qa", "photos_coco_qa", "photos_vqa")


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
        Claim(effect, "aoanet_4", labels, files)
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
    print(kc.evaluation.markdown_table(heads, rows, labels=2))
    if options.csv:
        with open(options.csv, "w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([heads, *rows])


def table():
    """The heads of the columns, and the rows, lists of str."""
    heads = ["row", "table", "paper's", "ours", "95 % interval", "verdict"]
    return [heads] + [line(claim, file) for claim in CLAIMS for file in claim.files]


def line(claim, file):
    """The cells of a claim in one table of ours."""
    candidates = [
        row
        for row in TABLES[claim.table].rows
        if claim.layers in (None, row.overrides.get("model.num_layers"))
    ]
    theirs = [next(x for x in candidates if x.label == label) for label in claim.labels]
    names = [(row,) for row in claim.rows] or [(x.label, x.model) for x in theirs]
    name = PUBLISHED.get(claim.column, claim.column)
    published = theirs[0].scores[name] - theirs[1].scores[name]
    mean, low, high = difference(*(score(file, x, claim.column) for x in names))
    if low <= 0 <= high:
        verdict = "cannot be told"
    else:
        verdict = "came out" if (mean > 0) == (published > 0) else "reversed"
    values = f"{published:+.2g}", f"{mean:+.1f}", f"{low:+.1f} to {high:+.1f}"
    return [claim.effect, file, *values, verdict]


def score(file, names, column):
    """Mean and standard deviation over seeds of the first row of one of the names."""
    beginnings = tuple(f"{name} (" for name in names)  # a label, then its model
    with open(FOLDER / f"{file}.csv", newline="", encoding="utf-8") as lines:
        rows = [x for x in csv.DictReader(lines) if "±" in x[column]]
    found = next(
        x for x in rows if x["row"] in names or x["row"].startswith(beginnings)
    )
    return tuple(float(x) for x in found[column].split("±"))


def difference(one, other):
    """Difference of two means of seeds, and Welch's 95 % interval."""
    parts = [deviation**2 / SEEDS for _, deviation in (one, other)]
    total = sum(parts)
    degrees = total**2 / sum(x**2 / (SEEDS - 1) for x in parts)
    half = 1.96 * widening(degrees) * math.sqrt(total)
    mean = one[0] - other[0]
    return mean, mean - half, mean + half


if __name__ == "__main__":
    start(main)
