from typing import Any, Unpack

import keras
from jaxtyping import Float32, Int
from keras import ops

from keras_caption.base.arguments import KerasOptions, Tensor
from keras_caption.base.errors import InputError
from keras_caption.decoding import Decoding
from keras_caption.inputs import InputKind
from keras_caption.models.constructors import parameters_of
from keras_caption.models.searching import Searching
from keras_caption.models.task_model import TaskModel
from keras_caption.text import Tokenizer


@keras.saving.register_keras_serializable("keras_caption")
class Seq2Seq(Searching, TaskModel):
    """Base of models that generate: an encoder of inputs, and a decoder of tokens.

    A Keras model over a batch, a dict of the encoder's inputs and `tokens`, that
    returns the logits of the next token. Once compiled it trains with `fit` on batches
    that `keras_caption.text.teacher_forcing` makes.

    The decoder is a layer with `start(memory, memory_mask, length) -> state` and
    `step(tokens, state, index) -> (logits, state)`, see
    `keras_caption.models.TransformerDecoder`. All searches use this pair of methods.

    A subclass that builds encoder and decoder from its own arguments has these
    arguments in its config. The config of any other model holds encoder and decoder,
    which must not share weights if the model is to be saved.

    Args:
        encoder: Functional Keras model from a dict of inputs to the memory,
            `(batch, M, dim)`, or to a dict of `memory` and further arguments of the
            decoder. The names of its inputs decide their kinds, see
            `keras_caption.inputs.KINDS`.
        decoder: Layer from `tokens`, the memory and its mask to logits.
        vocabulary: `keras_caption.text.Vocabulary`. If `None`, the model generates
            tokens, but no strings.
        decoding: `keras_caption.decoding.Decoding`, options of generation. Defaults to
            `default_decoding()`.
        name, trainable, dtype: Of any Keras model.

    Call arguments:
        inputs: dict of the encoder's inputs and `tokens`, int, either `(batch, T)`
            or, with C captions for each example, `(batch, C, T)`. Masks may be
            omitted, see `keras_caption.inputs`; other keys are ignored.

    Returns:
        Logits, float32, of the shape of `tokens` plus `(vocabulary_size,)`: those at
        position t are of the token after tokens 0 to t.
    """

    vocabulary: Tokenizer | None

    def __init__(
        self,
        encoder: keras.Model,
        decoder: keras.layers.Layer,
        vocabulary: Tokenizer | None = None,
        *,
        decoding: Decoding | None = None,
        **kwargs: Unpack[KerasOptions],
    ):
        super().__init__(encoder, **kwargs)
        self.decoder = decoder
        self.vocabulary = vocabulary
        self.decoding = decoding
        # Raises now if the decoding has a `length_ratio` and the inputs are images.
        self.limits(encoder.input, self.decoding)
        # Builds the decoder.
        decoder(keras.Input((None,), dtype="int32"), **self._encoded(encoder.input))

    @property
    def output_limits(self) -> list[str]:
        tokens = self.vocabulary and f" of {len(self.vocabulary):,} tokens"
        return [
            f"It writes with a vocabulary{tokens or ''}, at most "
            f"{self.decoding.max_length} of them."
        ]

    @property
    def memory_kind(self) -> InputKind:
        """The kind of input that has the items and the mask of the memory.

        Raises:
            InputError: If the encoder reads several kinds, and the subclass does not
                override this property.
        """
        kinds = self.kinds
        if len(kinds) > 1:
            names = " and ".join(kind.keys[0] for kind in kinds)
            raise InputError(
                f"The encoder reads {names}: a subclass of {type(self).__name__} "
                "should override `memory_kind`, the kind of the memory's items."
            )
        return kinds[0]

    @property
    def layers(self) -> list[keras.layers.Layer]:
        return [self.encoder, self.decoder]

    @property
    def call_specs(self) -> dict[str, keras.KerasTensor]:
        tokens = keras.Input((None,), dtype="int32", name="tokens")
        return {**self.input_specs, "tokens": tokens}

    def call(
        self, inputs: dict[str, Tensor], training: bool | None = None
    ) -> Float32[Tensor, "... T vocabulary_size"]:
        read = self.read(inputs)
        if "tokens" not in inputs:
            raise InputError(
                f"The model '{self.name}' is called with dicts that hold `tokens` "
                f"beside {', '.join(read)}. Received: {', '.join(inputs)}"
            )
        tokens = ops.convert_to_tensor(inputs["tokens"], "int32")
        shape = ops.shape(tokens)
        logits = self.decoder(
            ops.reshape(tokens, (-1, shape[-1])),  # (batch * C, T)
            **self._encoded(read, training),
            training=training,
        )
        return ops.reshape(logits, (*shape, logits.shape[-1]))

    def encode(self, inputs: dict[str, Tensor]) -> dict[str, Any]:
        """Encodes inputs as the memory that the decoder reads.

        Args:
            inputs: dict of tensors, as `read` returns it; other keys are ignored.

        Returns:
            dict of `memory` `(batch, M, dim)`; `memory_mask`, bool `(batch, M)`, or
            `None` if all items are valid; and further outputs of the encoder.
        """
        inputs = {name: inputs[name] for name in self.input_specs}
        return self._encoded(inputs, training=False)

    def _encoded(self, inputs, training=None):
        """Encodes inputs as a dict of the decoder's arguments."""
        memory = self.encoder(inputs, training=training)
        memory = memory if isinstance(memory, dict) else {"memory": memory}
        return {**memory, "memory_mask": self.memory_kind.memory_mask(inputs)}

    @property
    def can_grow(self) -> bool:
        """Whether `start` takes `length=None`, as that of our own decoders."""
        return getattr(self.decoder, "can_grow", False)

    def start(self, memory: dict[str, Any], length: int | None = 20) -> dict[str, Any]:
        """The decoder's state before the first token.

        Args:
            memory: dict, as `encode` returns it.
            length: int, greatest number of tokens; or `None`, see
                `keras_caption.models.TransformerDecoder.start`.
        """
        return self.decoder.start(**memory, length=length)

    def step(
        self,
        tokens: Int[Tensor, " batch*C"],
        state: dict[str, Any],
        index: Int[Tensor, ""],
    ) -> tuple[Float32[Tensor, "batch*C vocabulary_size"], dict[str, Any]]:
        """Reads one more token of every caption: see the decoder's `step`."""
        return self.decoder.step(tokens, state, index)

    def logits(
        self, tokens: Int[Tensor, "batch*C T"], memory: dict[str, Any]
    ) -> Float32[Tensor, "batch*C T vocabulary_size"]:
        """Logits of the next token at every position of whole captions.

        Args:
            tokens: int `(batch * C, T)`, from BOS on.
            memory: dict, as `encode` returns it.
        """
        return self.decoder(tokens, **memory)

    def get_config(self) -> dict[str, Any]:
        if "encoder" in parameters_of(type(self)):  # else the constructor shares again
            known = {id(v) for v in self.encoder.weights}
            shared = [v.path for v in self.decoder.weights if id(v) in known]
            if shared:
                raise InputError(
                    f"Encoder and decoder of the model '{self.name}' share "
                    f"{shared[0]}, which Keras would load as two: a subclass that "
                    "builds both from its own arguments can be saved."
                )
        return super().get_config()

    def attention(
        self, tokens: Int[Tensor, "batch*C T"], memory: dict[str, Any]
    ) -> Float32[Tensor, "batch C*T M"]:
        """Attention weights of the decoder over the memory, token by token.

        Args:
            tokens: int `(batch * C, T)`, from BOS on.
            memory: dict, as `encode` returns it.

        Returns:
            float32 `(batch, C * T, M)`, averaged over the heads of the last layer.
        """
        _, scores = self.decoder(tokens, **memory, return_attention_scores=True)
        return ops.mean(ops.cast(scores, "float32"), axis=1)
