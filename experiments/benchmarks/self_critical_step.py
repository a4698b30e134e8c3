"""A self-critical step at the papers' size, against a cross-entropy step.

    python experiments/benchmarks/self_critical_step.py [MODEL]

10 images x 5 captions of 20 words, 4 + 4 layers, 512-d, 36 x 2048 regions, 9,487
words, random weights, so that sampled captions have the greatest length. The
self-critical step samples 5 captions of each image beside the greedy one.
"""

import sys

import keras
import numpy as np
import tensorflow as tf

import keras_caption as kc
from experiments.benchmarks.common import VOCABULARY_SIZE, images, seconds
from keras_caption.training import SelfCritical

IMAGES, CAPTIONS, WORDS = 10, 5, 20


def main(name="ngsan"):
    model = kc.models.create(name, vocabulary_size=VOCABULARY_SIZE)
    rng = np.random.default_rng(0)
    tokens = rng.integers(4, VOCABULARY_SIZE, (IMAGES, CAPTIONS, WORDS + 1))
    tokens[..., 0] = kc.text.BOS
    tokens = tf.constant(tokens, tf.int32)
    batch = {**images(IMAGES), "tokens": tokens, "references": tokens[..., 1:]}
    reward = kc.rewards.CiderD.from_references(batch["references"])
    model.compile(keras.optimizers.Adam(0.0), loss=model.loss)
    trainer = SelfCritical(model, reward, samples=CAPTIONS, max_length=WORDS)
    trainer.compile(keras.optimizers.Adam(0.0))
    data = tf.data.Dataset.from_tensors(kc.text.teacher_forcing(batch)).repeat()

    def step(trained):
        trained.make_train_function()
        iterator = iter(data)
        return lambda: trained.train_function(iterator)

    plain, critical = seconds(step(model), 5), seconds(step(trainer), 5)
    print(f"cross-entropy step   {plain:6.2f} s")
    print(f"self-critical step   {critical:6.2f} s, {critical / plain:.2f} x")

    encode = tf.function(lambda: model.encode(model.read(batch)), autograph=False)
    memory = encode()
    explore = tf.function(
        lambda: trainer.explore(memory, batch["references"]), autograph=False
    )
    sampled, _, _ = explore()
    lengths = np.sum(sampled.numpy() != kc.text.PAD, axis=1)
    score = tf.function(lambda: reward(sampled, batch["references"]), autograph=False)
    print("of which")
    print(f"  encoding, forward  {seconds(encode):6.2f} s")
    print(f"  sampling, greedy   {seconds(explore):6.2f} s, {lengths.mean():.1f} words")
    print(f"  reward of samples  {seconds(score):6.3f} s")
    print("  the rest: the teacher-forced pass, the gradient and Adam")


if __name__ == "__main__":
    main(*sys.argv[1:])
