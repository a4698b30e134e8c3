"""Questions answered a second, and what geometry-aware self-attention costs.

    python experiments/benchmarks/answering.py

MCAN of the paper's sizes, 3,129 answers, batches of 64 questions of 6 words, from
strings to strings. The models take turns, so that the load of the machine is shared.
What plain attention takes is compared with one large matrix product.
"""

import statistics
import time

import keras_caption as kc
from experiments.benchmarks.common import REGION_DIM, images, matmul_rate

BATCH, WORDS, ANSWERS, REPEATS = 64, 6, 3129, 5
VOCABULARY = [f"w{i}" for i in range(1000)]
MODELS = {
    "none": {},
    "content_independent": {"geometry": "content_independent"},
    "query": {"geometry": "query"},
}


def operations(model, regions):
    """Floating-point operations of the matrix products that answer a question."""
    d, inner, layers = model.model_dim, model.feedforward_dim, model.num_layers
    block = 4 * d * d + 2 * d * inner  # projections of self-attention, feed-forward
    of_word = 4 * d * (model.embedding_dim + d)  # LSTM
    of_word += layers * (block + 2 * WORDS * d + 2 * d * d)  # keys, values of regions'
    of_region = REGION_DIM * d
    of_region += layers * (block + 2 * regions * d + 2 * d * d + 2 * WORDS * d)
    pooled = (WORDS + regions) * d * model.pooling_dim + 2 * d * model.fusion_dim
    answer = model.fusion_dim * ANSWERS
    return 2 * (WORDS * of_word + regions * of_region + pooled + answer)


def make_model(**options):
    return kc.models.create(
        "mcan",
        answers=[f"a{i}" for i in range(ANSWERS)],
        question=kc.text.QuestionTokenizer(VOCABULARY),
        **options,
    )


def main():
    questions = [" ".join(VOCABULARY[i : i + WORDS]) for i in range(BATCH)]
    models = {name: make_model(**options) for name, options in MODELS.items()}
    rows, plain = [], []
    for regions in (36, 100):
        batch = images(BATCH, regions)
        times = {name: [] for name in models}
        for repeat in range(REPEATS + 2):
            for name, model in models.items():
                start = time.perf_counter()
                model.answer(batch, questions)
                if repeat > 1:  # the first ones compile
                    times[name].append(time.perf_counter() - start)
        medians = {name: statistics.median(seconds) for name, seconds in times.items()}
        count = BATCH * operations(models["none"], regions)
        share = count / medians["none"] / matmul_rate()
        plain.append(
            f"{BATCH} questions, {regions} regions, plain attention: "
            f"{medians['none']:.3f} s, {share:.2f} of the rate of a large product"
        )
        for name, median in medians.items():
            times = f"{BATCH / median:.1f}", f"{median / medians['none']:.2f}"
            rows.append((str(regions), name, *times))
    columns = "N", "geometry", "questions/s", "time over plain attention"
    print(kc.evaluation.markdown_table(columns, rows, labels=2))
    print("\n".join(plain))


if __name__ == "__main__":
    main()
