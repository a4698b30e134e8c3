import keras
import numpy as np
from jaxtyping import Bool, Int, Int32
from keras import ops

from keras_caption.base.arguments import Tensor
from keras_caption.inputs.input_kind import InputKind
from keras_caption.text import EOS, PAD
from keras_caption.text.tokenizer import MAX_TOKENS

EXAMPLE = "a"


class Text(InputKind):
    """Sentences, as token ids.

    | key | type and shape | meaning |
    |---|---|---|
    | `source` | int `(batch, S)` | tokens of a sentence, to EOS, then PAD |

    A server takes `source` as strings, `(batch,)`, if the model has a tokenizer. A
    sentence has at most `MAX_TOKENS` tokens, EOS included; longer ones are refused
    before they take memory.
    """

    keys = ("source",)
    noun = "sentence"
    greatest = MAX_TOKENS

    @classmethod
    def symbolic(cls) -> dict[str, keras.KerasTensor]:
        """Symbolic inputs of an encoder of sentences."""
        [key] = cls.keys
        return {key: keras.Input((None,), dtype="int32", name=key)}

    def complete(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        return {key: ops.cast(x, "int32") for key, x in self.own(inputs).items()}

    def memory_mask(self, inputs: dict[str, Tensor]) -> Bool[Tensor, "batch T"]:
        return ops.not_equal(inputs[self.keys[0]], PAD)

    def faults(self, inputs: dict[str, Tensor]) -> dict[str, Bool[Tensor, " batch"]]:
        source = inputs["source"]
        is_token = ops.logical_and(source != PAD, source != EOS)
        return {
            "has no token": ~ops.any(is_token, axis=1),
            f"has more than {MAX_TOKENS:,} tokens": self.lengths(inputs) > MAX_TOKENS,
            **self.unknown_tokens(source),
        }

    def unknown_tokens(
        self, tokens: Int[Tensor, "batch T"]
    ) -> dict[str, Bool[Tensor, " batch"]]:
        """Finds tokens that the tokenizer lacks, see `faults`."""
        if self.tokenizer is None:
            return {}
        is_known = ops.logical_and(tokens >= 0, tokens < len(self.tokenizer))
        return {"has tokens of another tokenizer": ~ops.all(is_known, axis=1)}

    @property
    def padded_inputs(self) -> list[str]:
        return [*self.specs]

    def lengths(self, inputs: dict[str, Tensor]) -> Int32[Tensor, " batch"]:
        return ops.sum(ops.cast(self.memory_mask(inputs), "int32"), axis=1)

    def served_specs(self) -> dict[str, keras.KerasTensor]:
        if self.tokenizer is None:
            return super().served_specs()
        [key] = self.keys
        return {key: keras.KerasTensor((None,), "string", name=key)}

    def from_served(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        if self.tokenizer is None or inputs["source"].dtype != "string":
            return {"source": inputs["source"][:, : MAX_TOKENS + 1]}
        import tensorflow as tf

        # With EOS, one token more than allowed: enough for the fault, and bounded.
        tokens = self.tokenizer.tokenize(inputs["source"])[:, :MAX_TOKENS]
        tokens = tf.concat([tokens, tf.fill((tokens.nrows(), 1), EOS)], axis=1)
        return {"source": tokens.to_tensor(PAD)}

    def example(self) -> dict[str, np.ndarray]:
        [key] = self.keys
        if self.tokenizer is None:
            return {key: np.array([[EOS + 1, EOS]], "int32")}
        return {key: np.array([EXAMPLE], object)}
