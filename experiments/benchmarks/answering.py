"""Questions answered a second, and what geometry-aware self-attention costs.

    python experiments/benchmarks/answering.py

MCAN of the paper's sizes, 3,129 answers, batches of 64 questions of 6 words, from
strings to strings. The models take turns, so that the load of the machine is shared.
"""

import statistics
import time

import keras_caption as kc
from experiments.benchmarks.common import images

BATCH, ANSWERS, REPEATS = 64, 3129, 5
MODELS = {
    "none": {},
    "content_independent": {"geometry": "content_independent"},
    "query": {"geometry": "query"},
}


def main():
    words = [f"w{i}" for i in range(1000)]
    questions = [" ".join(words[i : i + 6]) for i in range(BATCH)]
    models = {
        name: kc.models.create(
            "mcan",
            answers=[f"a{i}" for i in range(ANSWERS)],
            question=kc.text.QuestionTokenizer(words),
            **options,
        )
        for name, options in MODELS.items()
    }
    rows = []
    for regions in (36, 100):
        batch = images(BATCH, regions)
        times = {name: [] for name in models}
        for repeat in range(REPEATS + 2):
            for name, model in models.items():
                start = time.perf_counter()
                model.answer(batch, questions)
                if repeat > 1:  # the first ones compile
                    times[name].append(time.perf_counter() - start)
        medians = {name: statistics.median(of_one) for name, of_one in times.items()}
        for name, median in medians.items():
            times = f"{BATCH / median:.1f}", f"{median / medians['none']:.2f}"
            rows.append((str(regions), name, *times))
    columns = "N", "geometry", "questions/s", "time over plain attention"
    print(kc.evaluation.markdown_table(columns, rows, labels=2))


if __name__ == "__main__":
    main()
