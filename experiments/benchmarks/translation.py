"""Training steps and beam search of a translator, and what areas cost.

    python experiments/benchmarks/translation.py

`transformer_tiny`, 2 + 2 layers of 128, with a vocabulary of 10,000 subwords shared by
both languages. A training step takes 4,096 tokens of each language, in sentences of 30:
forward, backward and Adam's update. Its arithmetic in matrix products is counted, and
compared with one large matrix product. The search has beam width 5, over 64 sentences,
for 40 steps. Areas of up to five tokens in the first two layers,
`transformer_tiny_area`, are compared with plain attention, also with a vocabulary of
360 characters, whose logits are small. Each of these steps has a process of its own, so
that its peak memory is known: the greatest resident size, less that before the first
step.
"""

import keras
import numpy as np
import tensorflow as tf

import keras_caption as kc
from experiments.benchmarks.common import (
    in_a_process,
    matmul_rate,
    peak_and_seconds,
    seconds,
)
from keras_caption.text import EOS, teacher_forcing

SUBWORDS, CHARACTERS = 10_000, 360  # vocabulary sizes
TOKENS = 4096  # of a batch, in each language
LENGTHS = 30, 100, 200
SENTENCES = 64  # that are translated at once
MODELS = "transformer_tiny", "transformer_tiny_area"


def make_model(name, size=SUBWORDS):
    return kc.models.create(
        name, source_size=size, target_size=size, shared_embeddings=True
    )


def make_batch(length, sentences, size=SUBWORDS):
    """Inputs, targets and weights of random sentences of one length."""
    rng = np.random.default_rng(0)
    shape = (2, sentences, length + 1)
    source, target = rng.integers(EOS + 1, size, shape).astype("int32")
    batch = {"source": tf.constant(source[:, 1:]), "tokens": tf.constant(target)}
    return teacher_forcing(batch)


def make_step(name, length, size):
    """A training step of `TOKENS` tokens, compiled as `fit` compiles it."""
    model = make_model(name, size)
    schedule = kc.training.InverseSquareRoot(1e-3, 4000)
    optimizer = keras.optimizers.Adam(schedule, beta_2=0.98, epsilon=1e-9)
    loss = kc.training.SequenceCrossEntropy(label_smoothing=0.1)
    model.compile(optimizer, loss, jit_compile=False)
    batch = make_batch(length, TOKENS // length, size)
    return lambda: model.train_on_batch(*batch)


def operations(model, length):
    """Floating-point operations of a step's matrix products."""
    d, inner, layers = model.model_dim, model.feedforward_dim, model.num_layers
    attention = 4 * d * d + 2 * length * d
    of_a_token = layers * (3 * attention + 4 * d * inner) + d * model.target_size
    tokens = TOKENS // length * length
    return 2 * 3 * tokens * of_a_token  # multiply and add; forward, twice that backward


def measure(name, length, size):
    return peak_and_seconds(make_step(name, length, size), repeats=5)


def search_seconds():
    model = make_model("transformer_tiny")
    inputs, _, _ = make_batch(LENGTHS[0], SENTENCES)
    options = {"beam_size": 5, "max_length": 40, "batch_size": SENTENCES}
    return seconds(lambda: model.generate_tokens(inputs, **options), repeats=5)


def main():
    # A process begins with the peak memory of its parent, so this one computes last.
    steps = {
        (size, length): [in_a_process(measure, name, length, size) for name in MODELS]
        for size in (SUBWORDS, CHARACTERS)
        for length in LENGTHS
    }
    search = in_a_process(search_seconds)
    length = LENGTHS[0]
    step = steps[SUBWORDS, length][0]["time"]
    count = operations(make_model(MODELS[0]), length)
    print(f"training step    {TOKENS / step:8,.0f} tokens/s, {step:.3f} s")
    print(f"matrix products  {count / step / 1e9:8.0f} GFLOP/s in it")
    print(f"a large product  {matmul_rate() / 1e9:8.0f} GFLOP/s")
    print(f"beam search      {SENTENCES / search:8.0f} sentences/s, {search:.3f} s\n")
    rows = []
    for (size, length), measured in steps.items():
        times = (f"{x['time']:.2f}" for x in measured)
        peaks = (f"{x['peak']:.0f}" for x in measured)
        rows.append((f"{size:,}", str(length), *times, *peaks))
    columns = "vocabulary", "length", "plain, s", "areas, s", "plain, MB", "areas, MB"
    print(kc.evaluation.markdown_table(columns, rows, labels=0))


if __name__ == "__main__":
    main()
