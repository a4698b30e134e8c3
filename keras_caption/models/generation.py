import dataclasses
from collections.abc import Iterable
from typing import Any

import keras
import numpy as np
from jaxtyping import Float32, Int32
from keras import ops

from keras_caption.arguments import Tensor, check
from keras_caption.decoding import (
    Decoding,
    beam_search,
    compile_function,
    greedy_search,
    length_limits,
    sample,
    with_decoding,
)
from keras_caption.decoding.beam_search import is_hypothesis
from keras_caption.decoding.options import BeamSize
from keras_caption.decoding.search import chosen_log_probs
from keras_caption.errors import InputError
from keras_caption.models.input_reader import BATCH_SIZE, InputReader
from keras_caption.text import PAD, Tokenizer


class Generation(InputReader):
    """Mixin of models and ensembles that generates captions.

    A class that inherits it has a `vocabulary`, `variables`, and the methods
    `encode`, `start` and `step`, beside what an `InputReader` needs.

    Attributes:
        generated: str, what an exported model calls its texts.
        decoding: `keras_caption.decoding.Decoding`, how it generates; a keyword of a
            call stands in place of one of these options.
    """

    generated = "captions"
    decoding: Decoding | None

    @property
    def tokenizers(self) -> list[Tokenizer]:
        """The tokenizers of the model, which an exported one needs."""
        return [self.vocabulary]

    @with_decoding
    def generate(
        self, raw: Any, batch_size: int = BATCH_SIZE, **options: Any
    ) -> list[str]:
        """Generates a caption for each example.

        Args:
            raw: dict of arrays or tensors, as for a call (`tokens` are ignored); or,
                for a model with an `extractor`, a list of photos, paths or uint8
                arrays `(height, width, 3)`. Any number of examples.
            batch_size: int, number of examples that are decoded at once. Memory grows
                with it, not with their number.
            **options: Fields of `keras_caption.decoding.Decoding`, in place of the
                model's own.

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
        tokens, _ = self.generate_tokens(raw, batch_size, **options)
        return [self.vocabulary.decode(row) for row in tokens]

    @with_decoding
    def generate_tokens(
        self, raw: Any, batch_size: int = BATCH_SIZE, **options: Any
    ) -> tuple[Int32[np.ndarray, "batch T"], Float32[np.ndarray, " batch"]]:
        """Generates a caption for each example, as tokens with their scores.

        Args:
            raw, batch_size, **options: As of `generate`.

        Returns:
            Tokens, int32 `(batch, T)`, from the first one to EOS, then PAD; and
            log-probabilities, float32 `(batch,)`. NumPy arrays. T is `max_length`, or
            less if a `length_ratio` allows no more.

        Raises:
            InputError: If an option is unknown, wrong or without effect, an input is
                missing or has a wrong shape, or an example has a fault: an image
                without a valid region, say, or with boxes in pixels.
        """
        options = self.decoding.override(**options)
        tokens, scores = self._search(raw, batch_size, options)
        return tokens[:, 0], scores[:, 0]

    @staticmethod
    def confidences(
        tokens: Int32[np.ndarray, "batch T"], scores: Float32[np.ndarray, " batch"]
    ) -> Float32[np.ndarray, " batch"]:
        """How sure a model is of what it generated, to compare with `threshold`.

        Args:
            tokens: int32 `(batch, T)`, token ids, then PAD.
            scores: float32 `(batch,)`, as `generate_tokens` returns them.

        Returns:
            float32 `(batch,)`, the geometric means of the tokens' probabilities.
        """
        lengths = np.count_nonzero(np.asarray(tokens) != PAD, axis=1)
        return np.exp(np.asarray(scores) / np.maximum(lengths, 1))

    @with_decoding
    def generate_n_best(
        self, raw: Any, n: int, batch_size: int = BATCH_SIZE, **options: Any
    ) -> list[list[tuple[str, float]]]:
        """Generates the best captions of each example, by beam search.

        Args:
            raw, batch_size: As of `generate`.
            n: int, number of captions of each example; there are fewer if the beam
                ends with fewer.
            **options: As of `generate`, but no `temperature`. The beam is made as wide
                as `n`.

        Returns:
            A list for each example of pairs of a caption, a str, and its
            log-probability, EOS included, a float. The best is first: with a
            `length_penalty` that need not be the most probable one.

        Raises:
            InputError: If `n` is not an int from 1 to a given `beam_size`, or as
                `generate` raises it.

        Example:

        ```python
        model.generate_n_best({"regions": regions, "boxes": boxes}, n=3)
        # [[("a dog on a beach", -3.1), ("a dog runs", -3.6), ...], ...]
        ```
        """
        check(BeamSize, n=n)
        self._check_vocabulary()
        changed = self.decoding.override(**options)
        if changed.temperature is not None:
            raise InputError("Sampling, by a `temperature`, has no n best captions.")
        if "beam_size" not in options:
            width = max(n, changed.beam_size)
            changed = self.decoding.override(**{**options, "beam_size": width})
        if n > changed.beam_size:
            raise InputError(
                f"A beam of {changed.beam_size} does not hold the {n} best."
            )
        return [
            [
                (self.vocabulary.decode(row), float(score))
                for row, score in zip(tokens[:n], scores[:n], strict=True)
                if is_hypothesis(score)
            ]
            for tokens, scores in zip(
                *self._search(raw, batch_size, changed), strict=True
            )
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

    def log_probabilities(
        self, tokens: Int32[Tensor, "batch*C T"], inputs: dict[str, Tensor]
    ) -> Float32[Tensor, " batch*C"]:
        """Log-probabilities of whole captions, EOS included.

        Args:
            tokens: int32 `(batch * C, T)`, from BOS to EOS, then PAD.
            inputs: dict of tensors of `batch` examples, as `read` returns it.

        Returns:
            float32 `(batch * C,)`.
        """
        logits = self.logits(tokens[:, :-1], self.encode(inputs))
        log_probs = ops.log_softmax(ops.cast(logits, "float32"))
        chosen = chosen_log_probs(log_probs, tokens[:, 1:])
        return ops.sum(ops.where(tokens[:, 1:] != PAD, chosen, 0.0), axis=1)

    def limits(
        self, inputs: dict[str, Tensor], options: Decoding
    ) -> Int32[Tensor, " batch"] | None:
        """Greatest numbers of tokens of outputs, by the lengths of their inputs.

        Args:
            inputs: dict of tensors, as `read` returns it.
            options: `keras_caption.decoding.Decoding`.

        Returns:
            int32 `(batch,)`, or `None` if there is no `length_ratio`.

        Raises:
            InputError: If inputs of the model have no length.
        """
        if options.length_ratio is None:
            return None
        lengths = self.memory_kind.lengths(inputs)
        return length_limits(lengths, options.length_ratio, options.length_margin)

    def _check_vocabulary(self):
        if self.vocabulary is None:
            raise InputError(
                f"The model '{self.name}' was made without a vocabulary: it can "
                "`generate_tokens`, but no strings."
            )

    def _search(
        self, raw: Any, batch_size: int, options: Decoding
    ) -> tuple[np.ndarray, np.ndarray]:
        """Tokens `(batch, n, T)` and log-probabilities `(batch, n)`, in batches."""
        count, batches = self.read_in_batches(raw, batch_size)
        numbers = None
        if options.temperature is not None:
            numbers = ops.convert_to_numpy(
                keras.random.uniform((count, options.max_length), seed=options.seed)
            )
        results = []
        for rows, inputs in batches:
            own = self._shorter(options, inputs)
            args = () if numbers is None else (numbers[rows][:, : own.max_length],)
            tokens, scores = map(
                ops.convert_to_numpy, self._compiled(own)(inputs, *args)
            )
            valid = rows[-1] - rows[0] + 1  # the others repeat the last example
            results.append((tokens[:valid], scores[:valid]))
        length = max(tokens.shape[-1] for tokens, _ in results)
        tokens = [
            np.pad(x, ((0, 0), (0, 0), (0, length - x.shape[-1]))) for x, _ in results
        ]
        return np.concatenate(tokens), np.concatenate([scores for _, scores in results])

    def _shorter(self, options: Decoding, inputs: dict[str, Any]) -> Decoding:
        """Options whose greatest length is no longer than a batch needs.

        It is a power of 2, for few compiled functions.
        """
        limits = self.limits(inputs, options)
        if limits is None:
            return options
        longest = 1 << (int(ops.max(limits)) - 1).bit_length()
        return dataclasses.replace(options, max_length=min(options.max_length, longest))

    def _compiled(self, options: Decoding) -> Any:
        """A function from inputs to tokens and scores, compiled once."""
        key = dataclasses.replace(options, seed=None)
        if key not in self._compiled_functions:

            def generate(inputs, *numbers):
                encoded, limits = self.encode(inputs), self.limits(inputs, options)
                if numbers:
                    outputs = sample(self, encoded, *numbers, options, limits)
                elif options.beam_size == 1:
                    outputs = greedy_search(self, encoded, options, limits)
                else:
                    return beam_search(self, encoded, options, limits)
                return [ops.expand_dims(x, 1) for x in outputs]

            self._compiled_functions[key] = compile_function(generate, self.variables)
        return self._compiled_functions[key]
