import functools
from typing import Any

from keras_caption.inputs import (
    InputKind,
    check_inputs,
    complete_inputs,
    kinds_of,
    read_inputs,
)
from keras_caption.text import Tokenizer


class InputReader:
    """Mixin of models and ensembles that takes their inputs out of batches.

    A class that inherits it has a `name` and `input_specs`, a dict of symbolic inputs.

    Attributes:
        ignored_inputs: tuple of str, names of inputs that the encoder takes, but that
            predictions do not depend on.
        source, question: `keras_caption.text.Tokenizer` of the inputs of this name, or
            `None`.
    """

    ignored_inputs: tuple[str, ...] = ()
    source: Tokenizer | None = None
    question: Tokenizer | None = None

    @property
    def kinds(self) -> list[InputKind]:
        """The kinds of input that the model reads."""
        tokenizers = {"source": self.source, "question": self.question}
        return kinds_of(self.input_specs, self.ignored_inputs, tokenizers)

    def to_batch(self, raw: Any) -> Any:
        """Turns raw input into a batch; the default is that it is one."""
        return raw

    def read_inputs(self, raw: Any, check: bool = False) -> dict[str, Any]:
        """Takes what the model reads out of a batch.

        Args:
            raw: dict of arrays or tensors, or what `to_batch` takes.
            check: bool, whether to check the values too, not only the shapes.

        Returns:
            dict of tensors.

        Raises:
            InputError: If an input is missing or has a wrong shape; with `check`, if
                an example is one that nothing can be predicted from.
        """
        batch = self.to_batch(raw)
        inputs = read_inputs(self.kinds, batch, self.name)
        if check:
            check_inputs(self.kinds, inputs, batch.get("image_id"))
        return inputs

    def prepare_inputs(self, raw: Any) -> dict[str, Any]:
        """Takes the encoder's inputs out of a batch, completed with masks.

        Args:
            raw: As of `read_inputs`.

        Returns:
            dict of tensors.

        Raises:
            InputError: If an input is missing or has a wrong shape.
        """
        return complete_inputs(self.kinds, self.read_inputs(raw))

    @functools.cached_property
    def _compiled_functions(self) -> dict:
        return {}
