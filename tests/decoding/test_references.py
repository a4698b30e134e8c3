"""Every option of decoding against slow searches in NumPy, in float64."""

import dataclasses
import os
import subprocess
import sys

import keras
import numpy as np
import pytest
from conftest import PROJECT
from keras import ops

from keras_caption.decoding import (
    Decoding,
    beam_search,
    compile_function,
    greedy_search,
    sample,
)
from keras_caption.decoding.constrained_beam import required_phrases
from keras_caption.text import BOS, EOS, PAD, UNK

BATCH, LENGTH, SIZE = 3, 5, 8
TABLE = np.random.default_rng(5).normal(size=(BATCH, LENGTH, SIZE, SIZE)) * 1.5
NUMBERS = np.random.default_rng(6).random((BATCH * 2, LENGTH)).astype("float32")
# Options, and what models make of texts: phrases of tokens.
CASES = {
    "plain": {},
    "min_length": {"min_length": 3},
    "repetition_penalty": {"repetition_penalty": 1.7},
    "no_repeat_ngram": {"no_repeat_ngram": 1},
    "forbidden": {"forbidden": [(4,), (5, 6), (7, 7, 5)]},
    "prefix": {"prefix": [(5, 5), (), (7,)], "forbidden": [(5,)]},
    "length_penalty": {"length_penalty": 1.0, "min_length": 2},
    "length_offset": {"length_penalty": 1.0, "length_offset": 0.0},
    "scores": {"allow_unk": True, "renormalize": True},
    "greedy_scores": {"beam_size": 1, "renormalize": True},
    "groups": {"beam_size": 4, "groups": 2, "diversity": 0.8},
    "copies": {"beam_size": 4, "groups": 2, "diversity": 0.1},
    "required": {"required": [(6, 6, 4), (5,)]},
    "required_greedy": {"required": [(6, 5), (5, 7)], "beam_size": 1},
    "greedy": {"beam_size": 1, "min_length": 2, "repetition_penalty": 1.5},
    "top_k": {"temperature": 0.7, "top_k": 2},
    "top_p": {"temperature": 1.3, "top_p": 0.6},
    "sample": {"temperature": 1.0, "top_k": 3, "top_p": 0.7, "min_length": 3},
    "sample_prefix": {"temperature": 1.0, "prefix": [(4,), (4, 7), ()]},
}
TEXTS = "forbidden", "prefix", "required"


class Random:
    """A decoder of random logits, by example, position and last token."""

    def start(self, memory, length):
        return {"memory": memory, "cache": ops.arange(BATCH)}

    def step(self, tokens, state, index):
        logits = ops.take(ops.convert_to_tensor(TABLE.astype("float32")), index, axis=1)
        logits = ops.reshape(logits, (BATCH * SIZE, SIZE))
        return ops.take(logits, state["cache"] * SIZE + tokens, axis=0), state


# === References ===


def log_softmax(x):
    x = x - x.max()
    return x - np.log(np.exp(x).sum())


def next_scores(example, tokens, case):
    """Log-probabilities, and scores to choose by."""
    index = len(tokens)
    last = tokens[-1] if tokens else BOS
    never = (PAD, BOS) if case.get("allow_unk") else (PAD, BOS, UNK)
    logits = TABLE[example, index, last].copy()
    if case.get("renormalize"):
        logits[[*never]] = -np.inf
    log_probs = log_softmax(logits)
    scores = log_probs.copy()
    prefix = case.get("prefix", [()] * BATCH)[example]
    for token in range(SIZE):
        longer = (*tokens, token)
        if token in tokens:
            scores[token] *= case.get("repetition_penalty", 1.0)
        n = case.get("no_repeat_ngram", 0)
        ngrams = [longer[i : i + n] for i in range(index + 2 - n)]
        is_wrong = (
            token in never
            or (n and len({*ngrams}) < len(ngrams))
            or any(longer[-len(p) :] == p for p in case.get("forbidden", ()))
            or (token == EOS and index < case.get("min_length", 0))
        )
        if index < len(prefix):
            scores[token] = log_probs[token]
            is_wrong = token != prefix[index]
        if is_wrong:
            scores[token] = -np.inf
    return log_probs, scores


def progress(tokens, phrase):
    """The number of a phrase's tokens that end a sequence; all, once it has come."""
    size = len(phrase)
    if any(tokens[i : i + size] == phrase for i in range(len(tokens))):
        return size
    ends = (n for n in range(size, -1, -1) if tokens[len(tokens) - n :] == phrase[:n])
    return next(ends)


def reference_beam(example, case):
    """Pairs of tokens and log-probability, the best first."""
    width, groups = case.get("beam_size", 3), case.get("groups", 1)
    required = case.get("required", ())
    needed = sum(map(len, required))
    part = width // groups
    beams = [[((), 0.0, 0.0)] for _ in range(groups)]
    done = [[] for _ in range(groups)]

    def rank(hypothesis):
        penalty = case.get("length_penalty", 0.0)
        offset = case.get("length_offset", 5.0)
        length = len(hypothesis[0])
        return hypothesis[1] / ((offset + length) / (offset + 1)) ** penalty

    for index in range(LENGTH):
        taken = np.zeros(SIZE)
        for number, beam in enumerate(beams):
            banks = {}
            for tokens, score, log_prob in beam:
                log_probs, scores = next_scores(example, tokens, case)
                scores = scores - case.get("diversity", 0.0) * taken
                for token in np.flatnonzero(np.isfinite(scores)):
                    longer = (*tokens, int(token))
                    bank = sum(progress(longer, p) for p in required)
                    if token == EOS and bank < needed:
                        continue
                    banks.setdefault(bank, []).append(
                        (longer, score + scores[token], log_prob + log_probs[token])
                    )
            beams[number] = []
            for bank, hypotheses in banks.items():
                for one in sorted(hypotheses, key=lambda h: -h[1])[:part]:
                    taken[one[0][-1]] += 1
                    if one[0][-1] != EOS and index < LENGTH - 1:
                        beams[number].append(one)
                    elif bank == needed:
                        done[number].append(one)
            done[number] = sorted(done[number], key=rank, reverse=True)[:part]
    # Of hypotheses that several groups have, the first group's has the least penalty.
    distinct = {h[0]: h for group in reversed(done) for h in group}
    best = sorted(distinct.values(), key=rank, reverse=True)
    return [(tokens, log_prob) for tokens, _, log_prob in best]


def reference_sequence(example, case, numbers=None):
    """Tokens and log-probability, greedy or by uniform numbers."""
    tokens, total = (), 0.0
    while len(tokens) < LENGTH and EOS not in tokens:
        log_probs, scores = next_scores(example, tokens, case)
        token = int(scores.argmax())
        if numbers is not None:
            order = np.argsort(-scores)
            p = np.exp(log_softmax(scores / case["temperature"])[order])
            p[case.get("top_k", SIZE) :] = 0
            p /= p.sum()
            p[np.cumsum(p) - p >= case.get("top_p", 2.0)] = 0
            p = p[np.argsort(order)]
            passed = np.cumsum(p) <= numbers[len(tokens)] * p.sum()
            token = int(passed.sum())
        tokens, total = (*tokens, token), total + log_probs[token]
    return tokens, total


def expected(case):
    if "temperature" in case:
        rows = enumerate(NUMBERS)
        return [[reference_sequence(i // 2, case, own)] for i, own in rows]
    if case.get("beam_size") == 1 and "required" not in case:
        return [[reference_sequence(i, case)] for i in range(BATCH)]
    return [reference_beam(i, case) for i in range(BATCH)]


# === The searches ===


def found(case, tensors):
    """Tokens and log-probabilities.

    Args:
        case: One of `CASES`.
        tensors: dict of the options that differ from example to example.
    """
    plain = {name: x for name, x in case.items() if name not in TEXTS}
    options = Decoding(**{"beam_size": 3, "max_length": LENGTH, **plain})
    if "temperature" in case:
        return sample(Random(), None, NUMBERS, options, tensors)
    if options.beam_size == 1 and "required" not in case:
        return greedy_search(Random(), None, options, tensors)
    required = None
    if "required" in case:
        required = required_phrases(case["required"])
    return beam_search(Random(), None, options, tensors, required)


def tensors_of(case):
    tensors = {}
    if "prefix" in case:
        tensors["prefix"] = np.zeros((BATCH, LENGTH), "int32")
        for row, prefix in zip(tensors["prefix"], case["prefix"], strict=True):
            row[: len(prefix)] = prefix
    if "forbidden" in case:
        longest = max(map(len, case["forbidden"]))
        rows = [(*[PAD] * (longest - len(p)), *p) for p in case["forbidden"]]
        tensors["forbidden"] = np.tile(np.int32(rows), (BATCH, 1, 1))
    return tensors


def check(case, outputs):
    tokens, scores = map(np.array, outputs)
    tokens = tokens.reshape(len(tokens), -1, LENGTH)
    for row, row_scores, reference in zip(
        tokens, scores.reshape(tokens.shape[:2]), expected(case), strict=True
    ):
        sequences = [tuple(int(t) for t in one if t != PAD) for one in row]
        assert sequences[: len(reference)] == [own for own, _ in reference]
        assert not any(sequences[len(reference) :])
        np.testing.assert_allclose(
            row_scores[: len(reference)], [x for _, x in reference], atol=1e-4
        )


def check_case(name):
    """A case as it is, and compiled, where numbers are those of each example too.

    JAX compiles the case as it is, too: operations one by one take longer.
    """
    case = CASES[name]
    tensors = {n: ops.convert_to_tensor(x) for n, x in tensors_of(case).items()}
    compiled = compile_function(lambda x: found(case, x), [])
    kinds = {"min_length": "int32", "top_k": "int32", "top_p": "float32"}
    kinds |= dict.fromkeys(["length_penalty", "repetition_penalty"], "float32")
    numbers = {n: np.full(BATCH, case[n], kinds[n]) for n in kinds if n in case}
    check(case, compiled({**tensors, **numbers}))
    if keras.backend.backend() == "tensorflow":
        check(case, found(case, tensors))
    elif numbers:
        check(case, compiled(tensors))


@pytest.mark.parametrize("name", CASES)
def test_every_option_is_its_reference(name):
    check_case(name)


def test_options_compile_with_xla():
    import tensorflow as tf

    case = CASES["required"]
    compiled = tf.function(lambda: found(case, {}), jit_compile=True, autograph=False)
    check(case, compiled())


def test_every_option_on_jax():
    program = "import test_references as t; [t.check_case(name) for name in t.CASES]"
    folders = ".", "tests", "tests/helpers", "tests/decoding"
    paths = [PROJECT / name for name in folders]
    subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        env={
            **os.environ,
            "KERAS_BACKEND": "jax",
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
        },
    )


def test_every_option_has_a_case():
    # Others decide the size, differ in nothing but tensors, or are tested with models.
    others = {"max_length", "length_ratio", "length_margin", "seed", "evidence"}
    names = {name for case in CASES.values() for name in case}
    assert names | others == {field.name for field in dataclasses.fields(Decoding)}
    assert keras.backend.backend() == "tensorflow"
