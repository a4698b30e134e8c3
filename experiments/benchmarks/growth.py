"""How time and memory of a search grow with what it reads and writes.

    taskset --cpu-list 0 python experiments/benchmarks/growth.py growth.csv growth.svg
    ... growth.csv growth.svg --luo ImageCaptioning.pytorch

Beam search of NG-SAN, width 3, random weights, all tokens forced: 36 regions, 50
images, 10,000 tokens in the vocabulary and 16 of a caption, of which one at a time has
other values. Each search has a process of its own: the median CPU seconds of three
calls after the first, or of one if it takes over a minute; and the peak memory that the
calls add to that of the model and its inputs. `--luo` measures Luo's toolkit too.
"""

import argparse
import csv
import functools
import math
import statistics
import time

from experiments.benchmarks.common import arrays, in_a_process, peak_memory

BASE = {"regions": 36, "images": 50, "vocabulary": 10_000, "tokens": 16}
VALUES = {
    "regions": (36, 100, 196),
    "images": (1, 50, 1_000),
    "vocabulary": (10_000, 32_000),
    "tokens": (16, 64),
}
BEAM_SIZE, REPEATS, LONGEST = 3, 3, 60


def ours(sizes):
    import keras_caption as kc

    model = kc.models.create("ngsan", vocabulary_size=sizes["vocabulary"])
    return functools.partial(
        model.generate_tokens,
        arrays(sizes["images"], sizes["regions"]),
        batch_size=sizes["images"],
        beam_size=BEAM_SIZE,
        max_length=sizes["tokens"],
        min_length=sizes["tokens"],
    )


def luo(folder, sizes):
    import torch

    from experiments.benchmarks import luo_peer
    from experiments.benchmarks.forced_translation import cores

    torch.set_num_threads(cores())
    luo_peer.REGIONS = sizes["regions"]
    luo_peer.VOCABULARY_SIZE, luo_peer.WORDS = sizes["vocabulary"], sizes["tokens"]
    return luo_peer.beam_search(folder, "transformer", sizes["images"], BEAM_SIZE)


def measure(make, sizes):
    """Median CPU seconds of later calls, and the MB that all calls add to the peak."""
    search = make(sizes)
    before, seconds = peak_memory(), []
    search()
    while len(seconds) < REPEATS and max(seconds, default=0) < LONGEST:
        begun = time.process_time()
        search()
        seconds.append(time.process_time() - begun)
    return statistics.median(seconds), peak_memory() - before


def exponent(first, second, name):
    """The power of a size with which a column grows from one row to another."""
    return math.log(second[name] / first[name]) / math.log(
        second["value"] / first["value"]
    )


def draw(rows, path):
    """Draws time and memory by each of the sizes, in logarithmic scales."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.5), layout="constrained")
    axes = figure.subplots(2, len(VALUES), sharey="row", squeeze=False)
    searches = dict.fromkeys(row["search"] for row in rows)
    for column, size in enumerate(VALUES):
        for who in searches:
            points = [x for x in rows if (x["size"], x["search"]) == (size, who)]
            values = [x["value"] for x in points]
            for row, name in enumerate(("CPU seconds", "MB")):
                y = [x[name] for x in points]
                axes[row][column].loglog(values, y, "o-", label=who)
        ticks = [*VALUES[size]]
        for axis in axes[:, column]:
            axis.set_xticks(ticks, [f"{x:,}" for x in ticks])
            axis.minorticks_off()
            axis.grid(alpha=0.3)
        axes[1][column].set_xlabel(size)
    for row, name in enumerate(("CPU seconds", "MB")):
        first = axes[row][0]  # whose scale all others share
        first.set_ylabel(name)
        ticks = [x * 10**n for n in range(-2, 6) for x in (1, 2, 5)]
        low, high = first.get_ylim()
        ticks = [x for x in ticks if low <= x <= high]
        first.set_yticks(ticks, [f"{x:,g}" for x in ticks])
        first.minorticks_off()
    if len(searches) > 1:
        axes[0][2].legend(loc="upper left")
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("csv", help="table to write")
    parser.add_argument("figure", help="figure to write, PNG or SVG")
    parser.add_argument("--luo", metavar="FOLDER")
    options = parser.parse_args()
    makers = {"keras_caption": ours}
    if options.luo:
        makers["Luo's toolkit"] = functools.partial(luo, options.luo)
    rows, known = [], {}
    for size, values in VALUES.items():
        for who, make in makers.items():
            for value in values:
                sizes = {**BASE, size: value}
                key = who, *sizes.values()
                if key not in known:
                    known[key] = in_a_process(measure, make, sizes)
                seconds, memory = known[key]
                row = {"size": size, "value": value, "search": who}
                row |= {"CPU seconds": round(seconds, 2), "MB": round(memory)}
                before = rows[-1] if rows else {}
                if (before.get("size"), before.get("search")) == (size, who):
                    for name in ("CPU seconds", "MB"):
                        row[f"exponent of {name}"] = round(
                            exponent(before, row, name), 2
                        )
                rows.append(row)
                print(row, flush=True)
    heads = dict.fromkeys(name for row in rows for name in row)
    with open(options.csv, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [*heads], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    draw(rows, options.figure)


if __name__ == "__main__":
    main()
