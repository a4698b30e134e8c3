from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from jaxtyping import Float32, Int, Int32
from keras import ops

from keras_caption.base.arguments import Tensor
from keras_caption.base.compilation import compile_function, round_up, shapes_of
from keras_caption.decoding import Decoding
from keras_caption.decoding.random_numbers import numbers_of_samples
from keras_caption.decoding.search import is_hypothesis
from keras_caption.decoding.text_options import (
    forbidden_tokens,
    prefix_tokens,
    required_tokens,
)
from keras_caption.models.backend import Attended
from keras_caption.text import BOS, Tokenizer

MAX_COMPILED = 32  # compiled functions of a model; each takes some megabytes
# Options whose values are arguments of compiled functions, see `CompiledSearches.feed`.
WITHOUT_VALUES = {"prefix": "", "forbidden": (), "required": (), "seed": None}
NO_SEARCH = Decoding()  # stands for the options of a function that does not search


class CompiledSearches:
    """The compiled functions by which a model in Keras generates.

    Args:
        model: `keras_caption.models.searching.Searching`, a model or an ensemble.

    Attributes:
        functions: dict of compiled functions, the one that was used last at the end.
    """

    def __init__(self, model: Any):
        self.model = model
        self.functions: dict[Any, Callable] = {}

    @property
    def vocabulary(self) -> Tokenizer:
        """The model's vocabulary, which options with texts need."""
        vocabulary = self.model.vocabulary
        assert vocabulary is not None  # checked with the options
        return vocabulary

    def run(
        self,
        inputs: dict[str, Tensor],
        places: Int[np.ndarray, " size"],
        n: int,
        options: Decoding,
    ) -> tuple[Int32[np.ndarray, "size n T"], Float32[np.ndarray, "size n"]]:
        """Generates captions of one batch, see `Backend.run`."""
        plain, feed = self.feed(inputs, places, n, options)
        make = only_best if n == 1 else whole
        tokens, scores = map(ops.convert_to_numpy, self._call(make, plain, feed))
        # (size, n, T) and (size, n): a beam may be wider than n.
        tokens, scores = tokens[:, :n], scores[:, :n]
        return present_first(tokens, scores) if n > 1 else (tokens, scores)

    def steps(
        self,
        inputs: dict[str, Tensor],
        places: Int[np.ndarray, " size"],
        options: Decoding,
    ) -> Iterator[tuple[Int32[np.ndarray, "size T"], Float32[np.ndarray, " size"]]]:
        """Generates captions of one batch step by step, see `Backend.steps`."""
        plain, feed = self.feed(inputs, places, 1, options)
        memory, values = self._call(first_values, plain, feed)
        for index in range(plain.max_length):
            # A tensor, so that one compiled function does all steps.
            position = ops.convert_to_tensor(index, "int32")
            values, tokens, scores, is_unfinished = self._call(
                one_step, plain, feed, memory, position, values
            )
            yield ops.convert_to_numpy(tokens), ops.convert_to_numpy(scores)
            if not is_unfinished:
                return

    def feed(
        self,
        inputs: dict[str, Tensor],
        places: Int[np.ndarray, " size"],
        n: int,
        options: Decoding,
    ) -> tuple[Decoding, dict[str, Any]]:
        """Splits options into plain options, without texts, and arguments of `search`.

        A compiled function depends on the plain options. Texts, and the random numbers
        that the seed decides, are tensors among the arguments, so that others of the
        same shape need no further compilation.
        """
        size = len(places)
        if not isinstance(options.prefix, str):
            prefixes = tuple(options.prefix[place] for place in places)
            options = options.replaced({"prefix": prefixes})
        plain = options.replaced(WITHOUT_VALUES)
        feed: dict[str, Any] = {"inputs": inputs}
        per_example: dict[str, Any] = {}
        prefix = None
        if options.required:
            feed["required"] = required_tokens(self.vocabulary, options)
        if options.forbidden:
            forbidden = forbidden_tokens(self.vocabulary, options.forbidden)
            if len(forbidden):
                shape = size, *forbidden.shape  # one row for each example
                per_example["forbidden"] = np.broadcast_to(forbidden, shape)
        if options.prefix:
            prefix = prefix_tokens(self.vocabulary, options, size)
        if options.length_ratio is not None:
            limits = self.model.limits(inputs, options, prefix)
            # Rounded up, so that few functions are compiled.
            longest = min(options.max_length, round_up(int(ops.max(limits))))
            plain = plain.replaced({"max_length": longest})
        if prefix is not None:
            per_example["prefix"] = prefix[:, : plain.max_length]
        if options.temperature is not None:
            feed["numbers"] = numbers_of_samples(
                options.seed, places, n, plain.max_length
            )
        return plain, {**feed, "per_example": per_example}

    def attended(
        self, inputs: dict[str, Tensor], tokens: Int32[np.ndarray, "size n T"]
    ) -> Attended:
        """What each token attends to, see `Backend.attended`."""
        # Decoder inputs: BOS before the tokens, without the last.
        shifted = np.pad(tokens, ((0, 0), (0, 0), (1, 0)), constant_values=BOS)
        shifted = shifted[..., :-1]
        feed = {"inputs": inputs, "tokens": shifted.reshape(-1, shifted.shape[-1])}
        # (size, n * T, M) to (size, n, T, M)
        weights = ops.convert_to_numpy(self._call(attention, NO_SEARCH, feed))
        weights = weights.reshape(*tokens.shape, -1)
        # Weights of the padding that `padded` adds are removed.
        name = self.model.memory_kind.keys[0]
        added = self.model.padded(inputs)[name].shape[1] - inputs[name].shape[1]
        weights = weights[..., : weights.shape[-1] - added]
        lengths = np.count_nonzero(tokens, axis=-1)
        return [
            [caption[:length] for caption, length in zip(*example, strict=True)]
            for example in zip(weights, lengths, strict=True)
        ]

    def _call(
        self, make: Callable, options: Decoding, feed: dict[str, Any], *args: Any
    ) -> Any:
        """Compiles what `make` returns for the model and options, and calls it."""
        feed = {**feed, "inputs": self.model.padded(feed["inputs"])}
        by_xla = self.model.jit_compile
        # Single steps return to Python: XLA gains little there.
        if make in (whole, only_best):
            examples = len(next(iter(feed["inputs"].values())))
            by_xla = self.model.pays_off(examples, (make, options, shapes_of(feed)))
        required = tuple(x.shape for x in feed.get("required", ()))
        return self.compiled(make, options, required, by_xla)(feed, *args)

    def compiled(
        self,
        make: Callable,
        options: Decoding,
        required: tuple[Any, ...] = (),
        by_xla: bool = False,
    ) -> Callable:
        """The compiled function that `make` returns for the model and options.

        The `MAX_COMPILED` functions that were used last are kept.
        """
        model, functions = self.model, self.functions
        key = make, options, required, tuple(model.hooks.items()), by_xla
        function = functions.pop(key, None) or compile_function(
            make(model, options), model.variables, by_xla
        )
        functions[key] = function  # at the end: a dict keeps the order of insertion
        if len(functions) > MAX_COMPILED:
            del functions[next(iter(functions))]
        return function


def present_first(
    tokens: Int32[np.ndarray, "batch n T"], scores: Float32[np.ndarray, "batch n"]
) -> tuple[np.ndarray, np.ndarray]:
    """Moves missing texts of each example behind the others, whose order stays."""
    order = np.argsort(~is_hypothesis(scores), axis=1, kind="stable")
    tokens = np.take_along_axis(tokens, order[..., None], axis=1)
    return tokens, np.take_along_axis(scores, order, axis=1)


# === Functions that are compiled: each takes the arguments of `search` as `feed` ===


def whole(model: Any, options: Decoding, **keywords: bool) -> Callable:
    """A whole search: tokens `(batch, n, T)` and log-probabilities `(batch, n)`."""

    def run(feed):
        search = model.search(options, **feed, **keywords)
        tokens, scores = search.run(model.encode(feed["inputs"]))
        batch = ops.shape(next(iter(feed["inputs"].values())))[0]
        shape = batch, -1, options.max_length
        return ops.reshape(tokens, shape), ops.reshape(scores, (batch, -1))

    return run


def only_best(model: Any, options: Decoding) -> Callable:
    """A search as `whole`, of which only the first text of each example counts."""
    return whole(model, options, only_best=True)


def first_values(model: Any, options: Decoding) -> Callable:
    """The start of a search: the decoder's memory, and the values of the loop."""

    def start(feed):
        return model.search(options, **feed).start(model.encode(feed["inputs"]))

    return start


def one_step(model: Any, options: Decoding) -> Callable:
    """One step: the next values, the best tokens, their scores, and whether to go on.

    An unfinished hypothesis has no score yet.
    """

    def step(feed, memory, index, values):
        search = model.search(options, **feed, only_best=True)
        values = search.next_step(memory, index, values)
        tokens, scores = search.best_so_far(values), search.results(values)[1]
        scores = ops.reshape(scores, (ops.shape(tokens)[0], -1))[:, 0]
        return values, tokens, scores, search.is_unfinished(values)

    return step


def attention(model: Any, options: Decoding) -> Callable:
    """Attention weights of the captions in `tokens`, see `Seq2Seq.attention`."""
    return lambda feed: model.attention(feed["tokens"], model.encode(feed["inputs"]))
