"""Translations of a forced length, which compare translators by speed alone.

Random sentences of 15 tokens, a shared vocabulary of 9,712, beam width 5, and exactly
30 tokens, whatever the random weights say. The translators take turns, each in a
process of its own, and so does a large matrix product: what part of its rate the matrix
products of a search reach says how much faster a search could be.

On a machine that does other things too, compare times of processors on one core, by
`taskset --cpu-list 0` before the command: several threads that wait for each other then
count as work.
"""

import dataclasses
import functools
import os
import pathlib

import keras
import numpy as np

import keras_caption as kc
from experiments.benchmarks.common import in_turn, multiplications, transformer
from keras_caption.text import EOS

VOCABULARY_SIZE, SOURCE_LENGTH = 9712, 15
BEAM_SIZE, LENGTH = 5, 30
PRODUCT = "a large product"
PRODUCT_SIZE = 2048


@dataclasses.dataclass(frozen=True)
class Work:
    """A translator's sizes, and how many sentences it translates at once."""

    num_layers: int
    model_dim: int
    feedforward_dim: int
    num_heads: int
    sentences: int

    def __str__(self):
        return (
            f"{self.num_layers} + {self.num_layers} layers of {self.model_dim}, "
            f"{self.sentences} sentence{'s' if self.sentences > 1 else ''}"
        )

    @property
    def sources(self):
        """Tokens of the sentences, int32 `(sentences, SOURCE_LENGTH)`, EOS last."""
        return self._tokens(SOURCE_LENGTH)

    @property
    def targets(self):
        """Tokens of translations to train on, int32 `(sentences, LENGTH)`, EOS last."""
        return self._tokens(LENGTH)

    @property
    def shapes(self):
        """Shapes of the weights of encoder and decoder, see `transformer`."""
        sizes = self.num_layers, self.model_dim, self.feedforward_dim
        return transformer(*sizes, VOCABULARY_SIZE)

    def _tokens(self, length):
        shape = self.sentences, length
        tokens = np.random.default_rng(0).integers(EOS + 2, VOCABULARY_SIZE, shape)
        tokens[:, -1] = EOS
        return tokens.astype("int32")

    @property
    def operations(self):
        """Floating-point operations of the matrix products of a search."""
        # A token attends to half of a translation, on average.
        return 2 * self.sentences * self._products(BEAM_SIZE, LENGTH // 2)

    @property
    def training_operations(self):
        """Floating-point operations of the matrix products of a step of training."""
        # Forward, and backward by inputs and by weights.
        return 3 * 2 * self.sentences * self._products(1, LENGTH)

    def _products(self, translations, attended):
        """Multiplications for a sentence and its translations.

        Args:
            translations: int, number of translations.
            attended: int, number of translated tokens that a token attends to.
        """
        of_source, of_token = map(multiplications, self.shapes)
        attention = 2 * self.num_layers * self.model_dim  # to a token, by a token
        of_source += SOURCE_LENGTH * attention
        of_token += (attended + SOURCE_LENGTH) * attention
        return SOURCE_LENGTH * of_source + translations * LENGTH * of_token


WORKS = (
    Work(4, 128, 256, 4, 64),
    Work(6, 512, 2048, 8, 64),
    Work(6, 512, 2048, 8, 1),
)


def make_model(work):
    """A translator, the same in each process."""
    keras.utils.set_random_seed(0)
    special = len(kc.text.Vocabulary([]))
    words = kc.text.Vocabulary(f"w{i}" for i in range(special, VOCABULARY_SIZE))
    return kc.models.create(
        "transformer_base",
        source=words,
        target=words,
        shared_embeddings=True,
        num_layers=work.num_layers,
        model_dim=work.model_dim,
        feedforward_dim=work.feedforward_dim,
        num_heads=work.num_heads,
    )


def ours(work):
    """A search of keras_caption, as a function without arguments."""
    return functools.partial(
        make_model(work).generate_tokens,
        {"source": work.sources},
        batch_size=work.sentences,
        beam_size=BEAM_SIZE,
        max_length=LENGTH,
        min_length=LENGTH,
    )


def large_product(work):
    import tensorflow as tf

    x = tf.random.normal((PRODUCT_SIZE, PRODUCT_SIZE))
    return tf.function(lambda: tf.matmul(x, x))


def compare(peers):
    """Prints the seconds of searches by keras_caption and by peers.

    Args:
        peers: dict from a name to a function of a `Work`, of a module, which returns a
            function without arguments that translates its sentences.
    """
    print(f"{processor()}; medians of five, in turn")
    for work in WORKS:
        taken = in_turn({"keras_caption": ours, **peers, PRODUCT: large_product}, work)
        rate = 2 * PRODUCT_SIZE**3 / taken.pop(PRODUCT).wall
        print(f"\n{work}, beam {BEAM_SIZE}, {LENGTH} tokens")
        print(f"{PRODUCT:20} {rate / 1e9:6.0f} GFLOP/s")
        ours_times = taken["keras_caption"]
        for name, times in taken.items():
            share = work.operations / times.wall / rate
            line = (
                f"{name:20} {times.wall:6.3f} s, {times.cpu:6.3f} s of processors; "
                f"{share:.2f} of that rate"
            )
            if times is not ours_times:
                line += f"; ours is {times.wall / ours_times.wall:.2f} x, "
                line += f"by processors {times.cpu / ours_times.cpu:.2f} x"
            print(line)


def processor():
    """The processor's name, and the number of its cores that are used."""
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    name = next(x.partition(": ")[2] for x in lines if x.startswith("model name"))
    return f"{name}, {cores()} of its cores"


def cores():
    """Number of cores that this process may use, which `taskset` can limit."""
    return len(os.sched_getaffinity(0))
