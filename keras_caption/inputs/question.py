from jaxtyping import Bool
from keras import ops

from keras_caption.base.arguments import Tensor
from keras_caption.base.errors import InputError
from keras_caption.inputs.text import Text
from keras_caption.text import PAD, UNK
from keras_caption.text.questions import MAX_QUESTION_TOKENS


class QuestionText(Text):
    """Questions about images, as token ids.

    | key | type and shape | meaning |
    |---|---|---|
    | `question` | int `(batch, T)` | tokens of a question, then PAD |

    A server takes `question` as strings, `(batch,)`, if the model has a tokenizer. At
    most 14 tokens are read. A question without tokens is read as one unknown word, so
    that its answer depends on the image alone. (MCAN's code reads 14 tokens of PAD;
    here the answer would then depend on the padding of a batch.)
    """

    keys = ("question",)
    noun = "question"
    greatest = MAX_QUESTION_TOKENS

    def read(self, batch: dict[str, Tensor], model_name: str) -> dict[str, Tensor]:
        inputs = super().read(batch, model_name)
        if inputs["question"].shape[1] == 0:
            raise InputError("Questions need at least one token, or PAD in its place.")
        return inputs

    def complete(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        tokens = ops.cast(inputs["question"], "int32")[:, :MAX_QUESTION_TOKENS]
        empty = ops.all(tokens == PAD, axis=1, keepdims=True)
        first = ops.arange(ops.shape(tokens)[1]) == 0
        return {"question": ops.where(ops.logical_and(empty, first), UNK, tokens)}

    def faults(self, inputs: dict[str, Tensor]) -> dict[str, Bool[Tensor, " batch"]]:
        return self.unknown_tokens(inputs["question"])

    def from_served(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        if self.tokenizer is None or inputs["question"].dtype != "string":
            return self.own(inputs)
        tokens = self.tokenizer.tokenize(inputs["question"])
        return {"question": tokens.to_tensor(PAD, shape=(None, MAX_QUESTION_TOKENS))}
