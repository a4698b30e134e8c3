import inspect
import os

import keras
from keras import ops

from keras_caption.atomic import replacing
from keras_caption.errors import InputError
from keras_caption.keras_overrides import CalledWithDicts, ReplicaTraining
from keras_caption.models.generator import Generator
from keras_caption.models.quantization import (
    quantization_of,
    quantize_layers,
    short_collections,
)


def configuration(model):
    """Arguments that a class of captioners keeps as attributes, with their defaults.

    All but what every captioner has: vocabulary, precision, name.
    """
    parameters = inspect.signature(model).parameters.values()
    others = ("encoder", "decoder", "vocabulary", "dtype", "kwargs")
    return {p.name: p.default for p in parameters if p.name not in others}


def region_inputs(region_dim):
    """Symbolic inputs of an encoder of regions."""
    return {
        "regions": keras.Input((None, region_dim), name="regions"),
        "boxes": keras.Input((None, 4), name="boxes"),
        "region_mask": keras.Input((None,), dtype="bool", name="region_mask"),
    }


def resolve_vocabulary_size(vocabulary, vocabulary_size):
    """The number of words, from a vocabulary or, without one, as given."""
    if vocabulary is None and vocabulary_size is None:
        raise ValueError("A captioner needs a `vocabulary` or a `vocabulary_size`.")
    if vocabulary is None:
        return vocabulary_size
    if vocabulary_size not in (None, len(vocabulary)):
        raise ValueError(
            f"vocabulary_size={vocabulary_size}, but the vocabulary has "
            f"{len(vocabulary)} words. Give one of them."
        )
    return len(vocabulary)


def check_heads(model_dim, num_heads):
    """Refuses a size that heads cannot share evenly."""
    if model_dim % num_heads:
        raise ValueError(
            f"model_dim={model_dim} cannot be divided among num_heads={num_heads}."
        )


@keras.saving.register_keras_serializable("keras_caption")
class Captioner(Generator, CalledWithDicts, ReplicaTraining, keras.Model):
    """Base of all captioning models: an encoder of images and a decoder of words.

    A Keras model over a captioning batch, a dict: what the encoder takes of an
    image (`regions`, `boxes` and, optionally, `region_mask`, for models of regions;
    `grid` for models of grids; or, with an `extractor`, `image`,
    `(batch, height, width, 3)`, 0 to 255), and `tokens`. It maps them to the logits
    of the next token. Once compiled, as `keras_caption.models.create` does it, it
    trains with `fit`, on what `keras_caption.data.teacher_forcing` makes of batches.

    The decoder is a layer with `start(memory, memory_mask, length) -> state` and
    `step(tokens, state, index) -> (logits, state)`, see
    `keras_caption.models.TransformerDecoder`. Everything that generates captions
    is written once over that pair.

    A subclass that makes encoder and decoder of arguments of its own keeps each
    argument as an attribute; its config holds them. The config of any other
    captioner holds encoder and decoder themselves.

    Args:
        encoder: Functional Keras model from a dict of inputs to the memory,
            `(batch, M, dim)`.
        decoder: Layer from `tokens`, the memory and its mask to logits.
        vocabulary: `keras_caption.text.Vocabulary`, or `None`: then the model
            generates tokens, but no strings.
        extractor: `keras_caption.features.Extractor` that makes the encoder's inputs
            out of photos, or `None`.

    Call arguments:
        inputs: dict of the encoder's inputs and `tokens`, int, either `(batch, T)`
            or, with C captions for each image, `(batch, C, T)`. A `region_mask`,
            bool `(batch, N)`, may say which regions are padding; those whose box has
            no area always are. Models that do not read `boxes` need none. Other
            keys are ignored.

    Returns:
        Logits, float32, of the shape of `tokens` plus `(vocabulary_size,)`: at
        position t, of the word after tokens 0 to t.
    """

    def __init__(
        self,
        encoder,
        decoder,
        vocabulary=None,
        dtype=None,
        extractor=None,
        **kwargs,
    ):
        decoder(
            keras.Input((None,), dtype="int32"),
            encoder(encoder.input),
            memory_mask=encoder.input.get("region_mask"),
        )
        # Boxes keep their float32, and what the model does not read its type.
        super().__init__(dtype=dtype, autocast=False, **kwargs)
        self.built = True
        self.encoder = encoder
        self.decoder = decoder
        self.vocabulary = vocabulary
        self.extractor = extractor

    def call(self, inputs, training=None):
        images = self.image_inputs(inputs)
        if "tokens" not in inputs:
            raise InputError(
                f"The model '{self.name}' is called with dicts that hold `tokens` "
                f"beside {', '.join(images)}. Received: {', '.join(inputs)}"
            )
        tokens = ops.convert_to_tensor(inputs["tokens"], "int32")
        shape = ops.shape(tokens)
        logits = self.decoder(
            ops.reshape(tokens, (-1, shape[-1])),
            self.encoder(images, training=training),
            memory_mask=images.get("region_mask"),
            training=training,
        )
        return ops.reshape(logits, (*shape, logits.shape[-1]))

    @property
    def layers(self):
        return [self.encoder, self.decoder]

    def encode(self, inputs):
        """What the decoder reads of the images.

        Args:
            inputs: As of a call; `tokens` are ignored.

        Returns:
            dict of `memory` `(batch, M, dim)` and `memory_mask`, bool
            `(batch, M)`, or `None` where all items are real.
        """
        inputs = self.image_inputs(inputs)
        memory = self.encoder(inputs, training=False)
        return {"memory": memory, "memory_mask": inputs.get("region_mask")}

    def start(self, memory, length=20):
        """The decoder's state before the first word.

        Args:
            memory: What `encode` returned.
            length: Room for so many words.
        """
        return self.decoder.start(**memory, length=length)

    def step(self, tokens, state, index):
        """One more word: see the decoder's `step`."""
        return self.decoder.step(tokens, state, index)

    def logits(self, tokens, memory):
        """Logits of the next word at every position of whole captions.

        Args:
            tokens: int `(batch * C, T)`, from BOS on.
            memory: What `encode` returned.
        """
        return self.decoder(tokens, **memory)

    def attention(self, tokens, memory):
        """Where the decoder looks while it reads captions.

        Args:
            tokens: int `(batch * C, T)`, from BOS on.
            memory: What `encode` returned.

        Returns:
            float32 `(batch, C * T, M)`, averaged over the heads of the last layer.
        """
        _, scores = self.decoder(tokens, **memory, return_attention_scores=True)
        return ops.mean(ops.cast(scores, "float32"), axis=1)

    @property
    def image_specs(self):
        """The encoder's inputs, a dict of symbolic tensors."""
        return self.encoder.input

    @property
    def reads_boxes(self):
        """Whether predictions depend on the boxes of regions."""
        return "boxes" in self.image_specs

    def save(self, filepath, overwrite=True, **kwargs):
        """Saves the model, vocabulary included, as a `.keras` file.

        The file appears whole or not at all: a full disk or a killed process
        leaves a previous file of that name as it was.

        Args:
            filepath: Path that ends in `.keras`.
            overwrite: Whether to replace an existing file.
            **kwargs: Of `keras.Model.save`.

        Raises:
            FileExistsError: If there is such a file and it may not be replaced.
        """
        if not overwrite and os.path.exists(filepath):
            raise FileExistsError(f"There is a file {filepath} already.")
        if self.compiled and not self.optimizer.built:
            # As it is once loaded: Keras warns of variables that a file lacks.
            self.optimizer.build(self.trainable_variables)
        with replacing(filepath) as partial:
            super().save(partial, **kwargs)

    def export(self, filepath, *args, input_signature=None, **kwargs):
        """Exports the teacher-forced call, see `keras.Model.export`.

        `keras_caption.serving.export` exports generation, for a server.

        Args:
            filepath: Folder of the SavedModel.
            *args, **kwargs: Of `keras.Model.export`.
            input_signature: Defaults to a dict of the encoder's inputs and `tokens`,
                `(batch, T)`.
        """
        if input_signature is None:
            tokens = keras.Input((None,), dtype="int32", name="tokens")
            input_signature = [{**self.image_specs, "tokens": tokens}]
        super().export(filepath, *args, input_signature=input_signature, **kwargs)

    def quantize(self, *args, **kwargs):
        """Quantizes the matrix products of dense layers, see `keras.Model.quantize`.

        Embeddings, normalizations and LSTM cells stay as they are. The optimizer
        starts anew: the weights that it had moments of are gone.

        Example:

        ```python
        model.quantize("int8")
        # Nearer to the captions of before, and faster on CPUs: weights only.
        model.quantize(
            config=keras.quantizers.Int8QuantizationConfig(activation_quantizer=None)
        )
        ```
        """
        with short_collections():
            super().quantize(*args, **kwargs)
        self._compiled_functions.clear()
        compile_config = self.get_compile_config()
        if compile_config:
            self.compile_from_config(compile_config)

    def get_config(self):
        serialize = keras.saving.serialize_keras_object
        values = {name: getattr(self, name) for name in configuration(type(self))}
        arguments = inspect.signature(type(self)).parameters
        parts = {"encoder", "decoder"}.intersection(arguments)
        quantized = quantization_of(self)
        return {
            **values,
            "name": self.name,
            "trainable": self.trainable,
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
            "vocabulary": serialize(self.vocabulary),
            "extractor": serialize(self.extractor),
            **{part: serialize(getattr(self, part)) for part in parts},
            **({"quantized": quantized} if quantized else {}),
        }

    @classmethod
    def from_config(cls, config):
        config = keras.saving.deserialize_keras_object(config)
        quantized = config.pop("quantized", [])
        model = cls(**config)
        quantize_layers(model, quantized)
        return model
