"""Beam search at the papers' size, against other ways of doing it.

    python experiments/benchmarks/decoding.py [MODEL [IMAGES]]

Batch 50, or another number of images, beam 3, 20 words, 36 x 2048 regions, 9,487 words,
random weights; NG-SAN with 4 + 4 layers of 512. The alternatives are KerasHub's
BeamSampler over the same cache, and the same search with the decoder run again for
every token, on the tokens before it or on all positions. All run as one compiled graph.
At last, captions that end by themselves: of 50 random layouts of ten objects, by
`ngsan_coco` of this repository, beside those of 20 words.
"""

import functools
import sys

import keras_hub
import numpy as np
import tensorflow as tf
from keras import ops
from keras_caption.objects import CATEGORIES

import keras_caption as kc
from experiments.benchmarks.common import (
    VOCABULARY_SIZE,
    images,
    matmul_rate,
    seconds,
)
from experiments.benchmarks.training_step import operations
from keras_caption.decoding import Decoding, beam_search, greedy_search
from keras_caption.text import BOS, EOS

BEAMS, LENGTH = 3, 20
OPTIONS = Decoding(beam_size=BEAMS, max_length=LENGTH)


class WholePrefix:
    """A captioner that computes earlier tokens anew for every token.

    It runs the decoder on the caption so far, over as many copies of the image's
    memory as there are captions.
    """

    def __init__(self, model):
        self.model = model

    def start(self, memory, length):
        shape = (ops.shape(memory["memory"])[0], length)
        return {"memory": memory, "cache": ops.zeros(shape, "int32")}

    def step(self, tokens, state, index):
        here = ops.arange(LENGTH) == index
        tokens = ops.where(here, ops.expand_dims(tokens, 1), state["cache"])
        memory = {
            name: ops.repeat(x, BEAMS, axis=0) for name, x in state["memory"].items()
        }
        return self.logits(tokens, memory, index), {**state, "cache": tokens}

    def logits(self, tokens, memory, index):
        return self.model.decoder(tokens[:, : index + 1], **memory)[:, -1]


class WholeCaption(WholePrefix):
    """The same at full length for every token, as graphs of fixed shapes do."""

    def logits(self, tokens, memory, index):
        return ops.take(self.model.decoder(tokens, **memory), index, axis=1)


def with_beam_sampler(model, memory):
    state = model.start(memory, length=LENGTH)
    batch = ops.shape(memory["memory"])[0]
    prompt = ops.where(ops.arange(LENGTH + 1) == 0, BOS, 0)
    prompt = ops.broadcast_to(prompt, (batch, LENGTH + 1))

    def step(prompt, cache, index):
        last = ops.take(prompt, index - 1, axis=1)
        logits, new = model.step(last, {**state, "cache": cache}, index - 1)
        return logits, None, new["cache"]

    sampler = keras_hub.samplers.BeamSampler(num_beams=BEAMS)
    return sampler(
        step, prompt, state["cache"], index=1, stop_token_ids=[EOS], model=model
    )


def main(name="ngsan", count=50):
    count = int(count)
    model = kc.models.create(name, vocabulary_size=VOCABULARY_SIZE)
    batch = images(count)

    def compiled(search):
        return functools.partial(
            tf.function(lambda x: search(model.encode(model.read(x))), autograph=False),
            batch,
        )

    ways = {
        "keras_caption": lambda m: beam_search(model, m, OPTIONS),
        "keras_hub BeamSampler, same cache": lambda m: with_beam_sampler(model, m),
        "tokens so far again, every token": lambda m: beam_search(
            WholePrefix(model), m, OPTIONS
        ),
        "all positions again, every token": lambda m: beam_search(
            WholeCaption(model), m, OPTIONS
        ),
    }
    rates = {}
    for name, search in ways.items():
        repeats = 2 if "again" in name else 7
        rates[name] = count / seconds(compiled(search), repeats)
        ratio = rates["keras_caption"] / rates[name]
        print(f"{name:36} {rates[name]:6.1f} images/s   ours is {ratio:4.1f} x")

    products = operations(model, count, count * BEAMS * LENGTH) / count
    share = rates["keras_caption"] * products / matmul_rate()
    print(f"matrix products at {share:.2f} of the rate of a large one")
    _, beams = compiled(ways["keras_caption"])()
    _, greedy = compiled(lambda m: greedy_search(model, m, OPTIONS))()
    gain = np.array(beams[:, 0]) - np.array(greedy)
    print(
        f"log-probability of beam {BEAMS} over greedy: mean {gain.mean():+.4f}, "
        f"least {gain.min():+.6f}"
    )
    print_captions_that_end()


def print_captions_that_end(count=50, objects=10):
    model = kc.models.load("ngsan_coco")
    rng = np.random.default_rng(0)
    categories = rng.integers(0, len(CATEGORIES), (count, objects))
    layouts = {
        "regions": np.eye(len(CATEGORIES), dtype="float32")[categories],
        "boxes": images(count, objects)["boxes"],
    }
    search = functools.partial(
        model.generate_tokens,
        layouts,
        batch_size=count,
        beam_size=BEAMS,
        max_length=LENGTH,
        evidence=False,
    )
    for name, least in (("until they end", 1), (f"of {LENGTH} words", LENGTH)):
        tokens, _ = search(min_length=least)
        words = np.mean(np.sum(np.array(tokens) > EOS, axis=-1))
        taken = seconds(functools.partial(search, min_length=least), 7)
        print(f"captions {name:15} {taken:.3f} s, {words:.1f} words each")


if __name__ == "__main__":
    main(*sys.argv[1:])
