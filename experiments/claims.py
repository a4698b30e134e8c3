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

FOLDER = pathlib.Path(__file__).parents[1] / "docs" / "results"
SEEDS = 3


class Claim(NamedTuple):
    """An effect: one row of a table over another.

    Attributes:
        effect: What it is of.
        published: Tuple of the paper's two scores, with the effect and without.
        rows: The same two rows of ours, beginnings of their names.
        files: CSV files of ours in docs/results.
        column: The score.
    """

    effect: str
    published: tuple
    rows: tuple
    files: tuple
    column: str = "CIDEr-D"


COCO, SCENES = "coco_objects", "scenes"
BOTH = (COCO, SCENES)
AOA = ("aoanet_4", "aoanet_4_scenes")
QUESTIONS = ("coco_qa", "photos_coco_qa", "photos_vqa")


def with_reward(*rows):
    return tuple(f"{row} + SCST" for row in rows)


CLAIMS = (
    Claim("GSA (SAN to G-SAN)", (131.4, 128.6), ("gsan", "san"), BOTH),
    Claim("GSA, after SCST", (131.4, 128.6), with_reward("gsan", "san"), BOTH),
    Claim("NSA (SAN to N-SAN)", (130.8, 128.6), ("nsan", "san"), BOTH),
    Claim("NSA, after SCST", (130.8, 128.6), with_reward("nsan", "san"), BOTH),
    Claim("NSA with GSA (G-SAN to NG-SAN)", (132.1, 131.4), ("ngsan", "gsan"), BOTH),
    Claim(
        "NSA with GSA, after SCST", (132.1, 131.4), with_reward("ngsan", "gsan"), BOTH
    ),
    Claim(
        "NSA over objects as pixels, one layer",
        (127.2, 123.4),
        ("N-SAN", "SAN"),
        ("effects_norms",),
    ),
    Claim("IN over LN", (130.7, 128.2), ("IN (", "LN ("), ("ngsan_2",)),
    Claim("IN over BN", (130.7, 129.4), ("IN (", "BN ("), ("ngsan_2",)),
    Claim(
        "queries over keys normalized",
        (130.8, 130.1),
        ("query (", "key ("),
        ("ngsan_3",),
    ),
    Claim("absolute positions", (128.4, 128.6), ("absolute (", "SAN ("), ("ngsan_4",)),
    Claim(
        "content-independent GSA",
        (131.0, 128.6),
        ("content-independent (", "SAN ("),
        ("ngsan_4",),
    ),
    Claim(
        "query-dependent over content-independent GSA",
        (131.4, 131.0),
        ("query-dependent (", "content-independent ("),
        ("ngsan_4",),
    ),
    Claim(
        "NSA over frames",
        (57.1, 53.4),
        ("video_nsa", "video_transformer"),
        ("moving_scenes_parts", "msvd"),
    ),
    Claim("GSA in MCAN", (71.28, 70.83), ("mcan_gsa, query", "mcan"), QUESTIONS, "all"),
    Claim(
        "refining without AoA", (112.5, 109.5), ("+ Enc: Refine (w/o AoA)", "Base"), AOA
    ),
    Claim(
        "AoA in refining",
        (114.5, 112.5),
        ("+ Enc: Refine (w/ AoA)", "+ Enc: Refine (w/o AoA)"),
        AOA,
    ),
    Claim("AoA in the decoder, one head", (113.8, 109.5), ("+ Dec: AoA", "Base"), AOA),
    Claim(
        "an LSTM in the decoder, one head",
        (113.5, 109.5),
        ("+ Dec: LSTM (", "Base"),
        AOA,
    ),
    Claim(
        "AoA over an LSTM, eight heads",
        (114.3, 113.8),
        ("+ Dec: MH-Att, AoA", "+ Dec: MH-Att, LSTM"),
        AOA,
    ),
    Claim(
        "refining in the full model",
        (119.8, 114.3),
        ("Full: AoANet", "+ Dec: MH-Att, AoA"),
        AOA,
    ),
    Claim(
        "areas, subwords, En-De",
        (18.80, 18.60),
        ("Tiny, area, En-De", "Tiny, regular, En-De"),
        ("area_2",),
        "BLEU",
    ),
    Claim(
        "areas, subwords, En-Fr",
        (27.29, 27.07),
        ("Tiny, area, En-Fr", "Tiny, regular, En-Fr"),
        ("area_2",),
        "BLEU",
    ),
    Claim(
        "areas that begin smaller, En-De",
        (18.80, 18.60),
        ("areas, begun at a third", "plain attention"),
        ("effects_areas",),
        "BLEU",
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
    published = claim.published[0] - claim.published[1]
    ours, low, high = difference(
        *(score(file, row, claim.column) for row in claim.rows)
    )
    if low <= 0 <= high:
        verdict = "cannot be told"
    else:
        verdict = "came out" if (ours > 0) == (published > 0) else "reversed"
    values = f"{published:+.2g}", f"{ours:+.1f}", f"{low:+.1f} to {high:+.1f}"
    return [claim.effect, file, *values, verdict]


def score(file, row, column):
    """Mean and standard deviation over seeds of the first row of this name."""
    with open(FOLDER / f"{file}.csv", newline="", encoding="utf-8") as lines:
        rows = [x for x in csv.DictReader(lines) if "±" in x[column]]
    exact = [x for x in rows if x["row"] == row]
    [found, *_] = exact or [x for x in rows if x["row"].startswith(row)]
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
