import os
from typing import Any

import keras

from keras_caption.atomic import replacing
from keras_caption.errors import InputError
from keras_caption.formats.keras_files import is_texts
from keras_caption.keras_overrides import CalledWithDicts, ReplicaTraining
from keras_caption.models.constructors import keep_arguments, parameters_of
from keras_caption.models.input_reader import InputReader
from keras_caption.models.quantization import (
    quantization_of,
    quantize_layers,
    short_collections,
)
from keras_caption.models.saving import save_preset


class TaskModel(InputReader, CalledWithDicts, ReplicaTraining, keras.Model):
    """Base of all models: an encoder of a dict of inputs, and what a task adds.

    The signature of a subclass's constructor says what arguments it has, see
    `keras_caption.models.constructors`: their values are checked by their types, kept
    as attributes, and saved in the config. A model is saved whole or not at all, and
    quantized with the layers that it has.

    Attributes:
        hub_task: tuple of str or `None`, its task and a tag, as the hubs call them.

    Args:
        encoder: Functional Keras model of a dict of inputs, named as the keys of
            `keras_caption.inputs.KINDS`.
        name: str, name of the model.
        trainable: bool, whether its weights are trained.
        dtype: Keras dtype policy of the model, or its name.

    Raises:
        InputError: If the encoder reads no dict, or an input of no known kind, or
            Keras's `floatx` is not float32.
    """

    hub_task: tuple[str | None, str | None] = (None, None)

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            cls.__init__ = keep_arguments(cls.__init__, super(cls, cls).__init__)

    def __init__(
        self,
        encoder: keras.Model,
        *,
        name: str | None = None,
        trainable: bool = True,
        dtype: Any = None,
    ):
        if keras.config.floatx() != "float32":
            raise InputError(
                f"Keras's floatx is {keras.config.floatx()}, as ~/.keras/keras.json or "
                "a program sets it: models need float32. What they compute in is their "
                "dtype, or a dtype policy."
            )
        # Boxes keep their float32, and what the model does not read its type.
        super().__init__(autocast=False, name=name, trainable=trainable, dtype=dtype)
        self.built = True
        self.encoder = encoder
        if not self.kinds:
            raise InputError("An encoder should read at least one input.")

    @property
    def input_specs(self) -> dict[str, keras.KerasTensor]:
        """The encoder's inputs, a dict of symbolic tensors."""
        return self.encoder.input

    @property
    def call_specs(self) -> dict[str, keras.KerasTensor]:
        """The inputs of a call, a dict of symbolic tensors."""
        return dict(self.input_specs)

    @property
    def layers(self) -> list[keras.layers.Layer]:
        return [self.encoder]

    def save(
        self, filepath: str | os.PathLike, overwrite: bool = True, **kwargs: Any
    ) -> None:
        """Saves the model as a `.keras` file.

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

    @property
    def output_limits(self) -> list[str]:
        """What limits the outputs, sentences for its card."""
        return []

    def example_call(self, images: str) -> str:
        """How the model is called, code for its card.

        Args:
            images: str, code of its first argument, if it reads images.
        """
        return f"generate({images})"

    def without_optimizer(self) -> "TaskModel":
        """A copy that is not compiled, with weights of its own."""
        copy = type(self).from_config(self.get_config())
        copy.set_weights(self.get_weights())
        return copy

    def save_to_preset(self, preset_dir: str | os.PathLike) -> None:
        """Saves the model as a preset, a folder as KerasHub's presets are.

        `keras_caption.models.from_preset` reads it, from a folder or a hub, with its
        vocabularies, decoding, threshold and extractor, but without an optimizer. The
        folder appears whole or not at all. Its `README.md` is a model card, which is
        kept once a person has edited it.

        Args:
            preset_dir: Path of the folder. A preset that is there is replaced.

        Raises:
            InputError: If the folder holds other files than those of a preset.
        """
        save_preset(self, preset_dir)

    def export(
        self,
        filepath: str | os.PathLike,
        *args: Any,
        input_signature: Any = None,
        **kwargs: Any,
    ) -> None:
        """Exports the call, see `keras.Model.export`.

        `keras_caption.serving.export` exports generation, for a server.

        Args:
            filepath: Folder of the SavedModel.
            *args, **kwargs: Of `keras.Model.export`.
            input_signature: Defaults to a dict, `call_specs`.
        """
        if input_signature is None:
            input_signature = [self.call_specs]
        super().export(filepath, *args, input_signature=input_signature, **kwargs)

    def quantize(self, *args: Any, **kwargs: Any) -> None:
        """Quantizes the matrix products of dense layers, see `keras.Model.quantize`.

        Embeddings, normalizations and LSTM cells stay as they are. The optimizer
        starts anew: its moments belong to weights that are replaced.

        Example:

        ```python
        model.quantize("int8")
        # Weights only: nearer to the captions of the float model, and faster on CPUs.
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

    def get_config(self) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in parameters_of(type(self))}
        values["dtype"] = self.dtype_policy
        quantized = quantization_of(self)
        return {
            **{
                name: keras.saving.serialize_keras_object(value)
                for name, value in values.items()
            },
            **({"quantized": quantized} if quantized else {}),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "TaskModel":
        deserialize = keras.saving.deserialize_keras_object
        # Texts stay: Keras takes an answer that is called like a class for that class.
        config = {n: x if is_texts(x) else deserialize(x) for n, x in config.items()}
        quantized = config.pop("quantized", [])
        model = cls(**config)
        quantize_layers(model, quantized)
        return model
