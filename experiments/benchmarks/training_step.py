"""One cross-entropy step at the papers' size, against a plain matrix product.

    python experiments/benchmarks/training_step.py [MODEL]

10 images x 5 captions of 17 tokens, 36 x 2048 regions, 9,487 words; NG-SAN and its
kin with 4 + 4 layers of 512, AoANet with 6 layers and an LSTM of 1024. The arithmetic
that the matrix products of the forward and the backward pass must do is counted; what
it takes is compared with one large matrix product.
"""

import sys

import keras
import numpy as np
import tensorflow as tf

import keras_caption as kc
from experiments.benchmarks.common import (
    REGION_DIM,
    REGIONS,
    VOCABULARY_SIZE,
    images,
    matmul_rate,
    multiplications,
    seconds,
    transformer,
)
from keras_caption.text import teacher_forcing

IMAGES, CAPTIONS, TOKENS = 10, 5, 17


def operations(model, images, words):
    """Floating-point operations of the matrix products forward.

    Args:
        model: `kc.models.NGSAN` or `kc.models.AoANet`.
        images: int, number of images.
        words: int, number of words of all captions, each of some `TOKENS`.
    """
    of_model = of_aoanet if isinstance(model, kc.models.AoANet) else of_ngsan
    return 2 * of_model(model, images * REGIONS, words)  # multiply and add


def of_aoanet(model, regions, words):
    d = model.model_dim
    # Queries, keys, values, attention, and AoA of both halves from both inputs.
    refining = model.num_layers * (3 * d * d + 2 * REGIONS * d + 4 * d * d)
    encoder = regions * (REGION_DIM * d + refining + 2 * d * d)
    lstm = 4 * d * (model.embedding_dim + 2 * d)
    decoder = lstm + d * d + 2 * REGIONS * d + 4 * d * d + d * VOCABULARY_SIZE
    return encoder + words * decoder


def of_ngsan(model, regions, words):
    d, layers = model.model_dim, model.num_layers
    shapes = transformer(layers, d, model.feedforward_dim, VOCABULARY_SIZE)
    encoder, decoder = map(multiplications, shapes)
    attention = 2 * layers * d  # to a region or a word
    encoder = regions * (REGION_DIM * d + encoder + REGIONS * attention)
    decoder = words * (decoder + (TOKENS + REGIONS) * attention)
    if model.geometry:
        pairs = regions * REGIONS
        width = model.geometry_dim
        encoder += layers * (
            regions * d * model.num_heads * width
            + pairs * (4 * width + model.num_heads * width)
        )
    return encoder + decoder


def main(name="ngsan"):
    model = kc.models.create(name, vocabulary_size=VOCABULARY_SIZE)
    rng = np.random.default_rng(0)
    tokens = rng.integers(4, VOCABULARY_SIZE, (IMAGES, CAPTIONS, TOKENS + 1))
    batch = {**images(IMAGES), "tokens": tf.constant(tokens, tf.int32)}
    variables = model.trainable_variables
    optimizer = keras.optimizers.Adam(1e-4)
    optimizer.build(variables)

    @tf.function(autograph=False)
    def gradients():
        with tf.GradientTape() as tape:
            inputs, targets, weights = teacher_forcing(batch)
            loss = model.loss(targets, model(inputs, training=True), weights)
        return tape.gradient(loss, variables)

    slopes = gradients()
    assert not any(isinstance(g, tf.IndexedSlices) for g in slopes)
    update = tf.function(lambda: optimizer.apply(slopes, variables), autograph=False)

    rate, step = matmul_rate(), seconds(gradients)
    rate = (rate + matmul_rate()) / 2  # before and after: machines drift
    # Backward takes twice as many as forward.
    count = 3 * operations(model, IMAGES, IMAGES * CAPTIONS * TOKENS)
    print(f"{name}: {count / 1e9:.1f} GFLOP in the matrix products of a step")
    print(f"plain matrix product      {rate / 1e9:6.0f} GFLOP/s")
    print(f"forward and backward      {count / step / 1e9:6.0f} GFLOP/s, {step:.3f} s")
    print(f"their ratio               {count / step / rate:6.2f}")
    print(f"Adam's update, apart      {seconds(update):6.3f} s")
    print(f"input, apart              {input_seconds():6.4f} s")


def input_seconds():
    """Time of the pipeline for a batch, everything in memory after one epoch."""
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(VOCABULARY_SIZE - 4)]
    count = 20 * IMAGES
    captions = [
        [" ".join(rng.choice(words, TOKENS - 1)) for _ in range(CAPTIONS)]
        for _ in range(count)
    ]
    examples = tf.data.Dataset.from_tensor_slices(
        {
            "regions": rng.normal(size=(count, REGIONS, REGION_DIM)).astype("float32"),
            "boxes": rng.random((count, REGIONS, 4)).astype("float32"),
            "words": captions,
        }
    )
    batches = kc.batches.train_batches(examples, kc.text.Vocabulary(words), IMAGES)
    iterator = iter(batches)
    return seconds(lambda: next(iterator), repeats=100)


if __name__ == "__main__":
    main(*sys.argv[1:])
