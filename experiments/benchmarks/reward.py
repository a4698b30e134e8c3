"""CIDEr-D inside the graph, against the Python scorer.

    python experiments/benchmarks/reward.py

250 captions (50 images x 5) of up to 20 words against 5 references each, with the
document frequencies of a corpus of COCO's size, 113,287 images of made-up captions.
The Python scorer is pycocoevalcap's, document frequencies given; it gets its
captions as strings, at no cost.
"""

import collections
import time

import numpy as np
import tensorflow as tf
from pycocoevalcap.cider.cider_scorer import CiderScorer

from experiments.benchmarks.common import VOCABULARY_SIZE, seconds
from keras_caption.rewards import CiderD, DocumentFrequencies
from keras_caption.rewards.ngrams import MAX_WORDS
from keras_caption.text import PAD

CORPUS, IMAGES, SAMPLES, REFERENCES, LENGTH = 113_287, 50, 5, 5, 20


def made_up_captions(rng, *shape):
    """Captions of 7 to 15 words, where a few words follow each word most often."""
    successors = np.random.default_rng(0).integers(
        4, VOCABULARY_SIZE, (VOCABULARY_SIZE, 60)
    )
    captions = np.zeros((*shape, LENGTH), "int32")
    word = np.full(shape, 4)
    for position in range(LENGTH):
        choice = np.minimum(rng.zipf(1.6, shape) - 1, successors.shape[1] - 1)
        word = successors[word, choice]
        captions[..., position] = word
    lengths = rng.integers(7, 16, (*shape, 1))
    return np.where(np.arange(LENGTH) < lengths, captions, PAD)


def words_of(row):
    return " ".join(str(token) for token in row if token != PAD)


def as_dictionary(frequencies):
    """Document frequencies as the Python scorer keeps them."""
    counts = collections.defaultdict(float)
    parts = np.stack(np.divmod(frequencies.keys, MAX_WORDS), axis=-1)
    for tokens, count in zip(
        parts.reshape(-1, 4).tolist(), frequencies.counts.tolist(), strict=True
    ):
        counts[tuple(str(token) for token in tokens if token)] = count
    return counts


def main():
    rng = np.random.default_rng(1)
    start = time.perf_counter()
    corpus = DocumentFrequencies.count(made_up_captions(rng, CORPUS, REFERENCES))
    print(f"{CORPUS:,} images, {len(corpus.keys):,} n-grams", end="")
    print(f", counted in {time.perf_counter() - start:.1f} s")
    captions = made_up_captions(rng, IMAGES * SAMPLES)
    references = made_up_captions(rng, IMAGES, REFERENCES)

    # The scorer takes the number of scored captions for that of the corpus.
    reward = CiderD(
        DocumentFrequencies(corpus.keys, corpus.counts, images=len(captions))
    )
    held = sum(v.value.numpy().nbytes for v in reward.variables)
    print(f"look-up table: {held / 2**20:.0f} MiB, {reward.probes} probes")

    texts = [words_of(row) for row in captions]
    reference_texts = [[words_of(row) for row in rows] for rows in references]
    frequencies = as_dictionary(corpus)

    def python_scorer():
        scorer = CiderScorer()
        scorer.document_frequency = frequencies
        for number, text in enumerate(texts):
            scorer += (text, reference_texts[number // SAMPLES])
        return scorer.compute_cider()

    inputs = tf.constant(captions), tf.constant(references)
    plain, xla = (tf.function(reward, jit_compile=jit) for jit in (False, True))
    ways = {
        "pycocoevalcap, Python": python_scorer,
        "in the graph": lambda: plain(*inputs).numpy(),
        "in the graph, XLA": lambda: xla(*inputs).numpy(),
    }
    times = {name: seconds(way, repeats=20) for name, way in ways.items()}
    expected = python_scorer()
    for name, taken in times.items():
        ratio = times["pycocoevalcap, Python"] / taken
        print(f"{name:22} {1000 * taken:7.2f} ms   {ratio:5.1f} x", end="")
        print(f"   off by {np.abs(np.array(ways[name]()) - expected).max():.1e}")


if __name__ == "__main__":
    main()
