import collections.abc
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_caption.decoding import (
    beam_search,
    check_options,
    compile_function,
    greedy_search,
    sample,
)
from keras_caption.errors import InputError
from keras_caption.models.input_reader import InputReader
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
                arrays `(height, width, 3)`.
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
        if self.vocabulary is None:
            raise InputError(
                f"The model '{self.name}' was made without a vocabulary: it can "
                "`generate_tokens`, but no strings."
            )
        tokens, _ = self.generate_tokens(raw, **options)
        return [self.vocabulary.decode(row) for row in tokens]

    def generate_tokens(
        self, raw: Any, beam_size: int | None = None, **options: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """Generates a caption for each example, as tokens with their scores.

        Args:
            raw: As of `generate`.
            beam_size: int, beam width, defaults to 3; 1 is greedy search.
            max_length: int, greatest number of tokens, defaults to 20.
            length_penalty, block_trigrams, keep_greedy: Options of
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
        options = {"beam_size": beam_size, **options}
        options = {k: value for k, value in options.items() if value is not None}
        check_options(options)
        inputs = self.prepare_inputs(self.read_inputs(raw, check=True))
        max_length = options.pop("max_length", 20)
        if "temperature" in options:
            shape = (len(next(iter(inputs.values()))), max_length)
            numbers = keras.random.uniform(shape, seed=options.pop("seed", None))
            tokens, scores = self._compiled(sample, **options)(inputs, numbers)
        elif beam_size == 1 and not options.get("block_trigrams"):
            search = self._compiled(greedy_search, max_length=max_length)
            tokens, scores = search(inputs)
        else:
            search = self._compiled(beam_search, max_length=max_length, **options)
            tokens, scores = (x[:, 0] for x in search(inputs))
        return ops.convert_to_numpy(tokens), ops.convert_to_numpy(scores)

    def caption(
        self, batches: collections.abc.Iterable[dict[str, Any]], **options: Any
    ) -> dict[int, str]:
        """Generates captions of a dataset.

        Args:
            batches: Iterable of batches with `image_id` beside the model's inputs,
                as `keras_caption.data.image_batches` makes them.
            **options: Options of `generate_tokens`.

        Returns:
            dict from image id to str.
        """
        captions = {}
        for batch in batches:
            image_ids = ops.convert_to_numpy(batch["image_id"]).tolist()
            generated = self.generate(batch, **options)
            captions.update(zip(image_ids, generated, strict=True))
        return captions

    def _compiled(self, search: Any, **options: Any) -> Any:
        """A function from inputs to the result of `search`, compiled once."""
        key = (search, *options.items())
        if key not in self._compiled_functions:

            def generate(inputs, *args):
                return search(self, self.encode(inputs), *args, **options)

            self._compiled_functions[key] = compile_function(generate, self.variables)
        return self._compiled_functions[key]
