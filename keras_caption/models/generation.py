from collections.abc import Iterable
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_caption.arguments import check
from keras_caption.decoding import (
    LengthLimit,
    beam_search,
    check_options,
    compile_function,
    greedy_search,
    length_limits,
    sample,
)
from keras_caption.decoding.beam_search import is_hypothesis
from keras_caption.decoding.options import BeamSize
from keras_caption.errors import InputError
from keras_caption.inputs import complete_inputs
from keras_caption.models.input_reader import BATCH_SIZE, InputReader
from keras_caption.text import Tokenizer


class Generation(InputReader):
    """Mixin of models and ensembles that generates captions.

    A class that inherits it has a `vocabulary`, `variables`, and the methods
    `encode`, `start` and `step`, beside what an `InputReader` needs.

    Attributes:
        generated: str, what an exported model calls its texts.
    """

    generated = "captions"

    @property
    def tokenizers(self) -> list[Tokenizer]:
        """The tokenizers of the model, which an exported one needs."""
        return [self.vocabulary]

    def generate(self, raw: Any, **options: Any) -> list[str]:
        """Generates a caption for each example.

        Args:
            raw: dict of arrays or tensors, as for a call (`tokens` are ignored); or,
                for a model with an `extractor`, a list of photos, paths or uint8
                arrays `(height, width, 3)`. Any number of examples.
            **options: Options of `generate_tokens`.

        Returns:
            A list of str.

        Raises:
            InputError: If the model was made without a vocabulary, or as
                `generate_tokens` raises it.

        Example:

        ```python
        model.generate({"regions": regions, "boxes": boxes}, beam_size=5)
        model.generate(["photo.jpg"])
        ```
        """
        self._check_vocabulary()
        tokens, _ = self.generate_tokens(raw, **options)
        return [self.vocabulary.decode(row) for row in tokens]

    def generate_tokens(
        self,
        raw: Any,
        beam_size: int | None = None,
        batch_size: int = BATCH_SIZE,
        **options: Any,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Generates a caption for each example, as tokens with their scores.

        Args:
            raw: As of `generate`.
            beam_size: int, beam width, up to 100, defaults to 3; 1 is greedy search.
            batch_size: int, number of examples that are decoded at once. Memory grows
                with it, not with their number.
            max_length: int, greatest number of tokens, up to 4,096, defaults to 20.
            length_ratio, length_margin: float and int, of models of text: each output
                has at most `length_ratio * n + length_margin` tokens, EOS included,
                for n tokens of its input, EOS included, and ends with EOS there. If
                omitted, `max_length` alone limits it; the margin defaults to 0.
            length_penalty, block_trigrams: Options of
                `keras_caption.decoding.beam_search`.
            temperature: float. If given, captions are sampled at this temperature
                instead of searched for.
            top_k: int. With `temperature`, sample from the k most probable tokens.
            seed: int. With `temperature`, makes the samples repeatable.

        Returns:
            Tokens, int32 `(batch, max_length)`, from the first one to EOS, then PAD;
            and log-probabilities, float32 `(batch,)`. NumPy arrays.

        Raises:
            InputError: If an option is unknown, wrong or without effect, an input is
                missing or has a wrong shape, or an example has a fault: an image
                without a valid region, say, or with boxes in pixels.
        """
        options = given({"beam_size": beam_size, **options})
        check_options(options)
        limit = take(options, "length_ratio", "length_margin")
        max_length = options.pop("max_length", 20)
        count, batches = self.read_in_batches(raw, batch_size)
        if "temperature" in options:
            seed = options.pop("seed", None)
            numbers = keras.random.uniform((count, max_length), seed=seed)
            search = self._compiled(sample, limit, **options)
            return run(search, batches, ops.convert_to_numpy(numbers))
        if beam_size == 1 and not options.get("block_trigrams"):
            search = self._compiled(greedy_search, limit, max_length=max_length)
            return run(search, batches)
        search = self._compiled(beam_search, limit, max_length=max_length, **options)
        tokens, scores = run(search, batches)
        return tokens[:, 0], scores[:, 0]

    def generate_n_best(
        self,
        raw: Any,
        n: int,
        beam_size: int | None = None,
        batch_size: int = BATCH_SIZE,
        **options: Any,
    ) -> list[list[tuple[str, float]]]:
        """Generates the best captions of each example, by beam search.

        Args:
            raw: As of `generate`.
            n: int, number of captions of each example; there are fewer if the beam
                ends with fewer.
            beam_size: int, beam width, at least `n`. Defaults to `n`, but at least 3.
            batch_size: int, number of examples that are decoded at once.
            **options: Options of `generate_tokens`, but no `temperature`.

        Returns:
            A list for each example of pairs of a caption, a str, and its
            log-probability, EOS included, a float. The best is first: with a
            `length_penalty` that need not be the most probable one.

        Raises:
            InputError: If `n` is not an int from 1 to `beam_size`, or as `generate`
                raises it.

        Example:

        ```python
        model.generate_n_best({"regions": regions, "boxes": boxes}, n=3)
        # [[("a dog on a beach", -3.1), ("a dog runs", -3.6), ...], ...]
        ```
        """
        check(BeamSize, n=n)
        beam_size = max(n, 3) if beam_size is None else beam_size
        options = given({"beam_size": beam_size, **options})
        if "temperature" in options:
            raise InputError("Sampling, by a `temperature`, has no n best captions.")
        self._check_vocabulary()
        check_options(options)
        if n > beam_size:
            raise InputError(f"A beam of {beam_size} does not hold the {n} best.")
        limit = take(options, "length_ratio", "length_margin")
        search = self._compiled(beam_search, limit, **options)
        found = run(search, self.read_in_batches(raw, batch_size)[1])
        return [
            [
                (self.vocabulary.decode(row), float(score))
                for row, score in zip(tokens[:n], scores[:n], strict=True)
                if is_hypothesis(score)
            ]
            for tokens, scores in zip(*found, strict=True)
        ]

    def caption(
        self, batches: Iterable[dict[str, Any]], **options: Any
    ) -> dict[int, str]:
        """Generates captions of a dataset.

        Args:
            batches: Iterable of batches with `image_id` beside the model's inputs,
                as `keras_caption.batches.image_batches` makes them.
            **options: Options of `generate_tokens`.

        Returns:
            dict from image id to str.
        """
        captions = {}
        for batch in batches:
            image_ids = ops.convert_to_numpy(batch["image_id"]).tolist()
            generated = self.generate(
                batch, **{"batch_size": len(image_ids), **options}
            )
            captions.update(zip(image_ids, generated, strict=True))
        return captions

    def limited(
        self,
        inputs: dict[str, Any],
        length_ratio: float | None = None,
        length_margin: int = 0,
    ) -> Any:
        """The model as a decoder, with the lengths of its outputs limited.

        Args:
            inputs: dict of tensors, as `prepare_inputs` returns it.
            length_ratio, length_margin: Options of `generate_tokens`.

        Returns:
            What searches take: the model itself if `length_ratio` is `None`.

        Raises:
            InputError: If inputs of the model have no length.
        """
        if length_ratio is None:
            return self
        lengths = self.memory_kind.lengths(inputs)
        return LengthLimit(self, length_limits(lengths, length_ratio, length_margin))

    def _check_vocabulary(self):
        if self.vocabulary is None:
            raise InputError(
                f"The model '{self.name}' was made without a vocabulary: it can "
                "`generate_tokens`, but no strings."
            )

    def _compiled(self, search: Any, limit: dict[str, Any], **options: Any) -> Any:
        """A function from inputs to the result of `search`, compiled once."""
        key = (search, *sorted(limit.items()), *sorted(options.items()))
        if key not in self._compiled_functions:

            def generate(inputs, *args):
                inputs = complete_inputs(self.kinds, inputs)
                decoder = self.limited(inputs, **limit)
                return search(decoder, self.encode(inputs), *args, **options)

            self._compiled_functions[key] = compile_function(generate, self.variables)
        return self._compiled_functions[key]


def run(
    search: Any,
    batches: Iterable[tuple[np.ndarray, dict[str, Any]]],
    numbers: np.ndarray | None = None,
) -> tuple[np.ndarray, ...]:
    """Results of a search in batches, one row for each example.

    Args:
        search: Function of a batch, and of its rows of `numbers` if there are any.
        batches: Of `InputReader.read_in_batches`.
        numbers: Uniform numbers, a row for each example.

    Returns:
        NumPy arrays, what `search` returns.
    """
    found = []
    for rows, inputs in batches:
        results = search(inputs, *(() if numbers is None else (numbers[rows],)))
        valid = rows[-1] - rows[0] + 1  # the others repeat the last example
        found.append([ops.convert_to_numpy(x)[:valid] for x in results])
    return tuple(map(np.concatenate, zip(*found, strict=True)))


def given(options: dict[str, Any]) -> dict[str, Any]:
    """The options that are not `None`."""
    return {name: value for name, value in options.items() if value is not None}


def take(options: dict[str, Any], *names: str) -> dict[str, Any]:
    """Removes the named options, if given, and returns them."""
    return {name: options.pop(name) for name in names if name in options}
