import os
from typing import Any, Self

import keras

from keras_caption.base.atomic import replacing
from keras_caption.base.errors import InputError
from keras_caption.formats.keras_files import is_texts
from keras_caption.models.constructors import (
    OF_KERAS,
    parameters_of,
    read_arguments,
)
from keras_caption.models.input_reader import InputReader
from keras_caption.models.quantization import (
    quantization_of,
    quantize_layers,
    short_collections,
)
from keras_caption.models.replica_training import ReplicaTraining
from keras_caption.models.saving import save_preset


class TaskModel(InputReader, ReplicaTraining, keras.Model):
    """Base of all models: an encoder of a dict of inputs, and the parts of a task.

    The signature of a subclass's constructor declares its arguments, see
    `keras_caption.models.constructors`: their values are checked by their types, kept
    as attributes, and saved in the config. An argument that is a layer becomes an
    attribute by the constructor itself, after that of `keras.Model`. A file of a model
    is written whole or not at all. A quantized model can be saved and loaded.

    Attributes:
        hub_task: tuple of str or `None`, the names of the model's task and tag on hubs.

    Args:
        encoder: Functional Keras model of a dict of inputs, named as the keys of
            `keras_caption.inputs.KINDS`.
        name: str, name of the model.
        trainable: bool, whether its weights are trained.
        dtype: Keras dtype policy of the model, or its name.

    Raises:
        InputError: If the encoder reads no dict, an input has no known kind, or
            Keras's `floatx` is not float32.
    """

    hub_task: tuple[str | None, str | None] = (None, None)

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Checks the arguments of the constructor, and keeps them as attributes.

        Keras keeps arguments for configs in `__new__` too. Layers are not kept: Keras
        tracks the layers of a model only once its own constructor has run.
        """
        model = super().__new__(cls, *args, **kwargs)
        for name, value in read_arguments(cls, args, kwargs).items():
            if name not in OF_KERAS and not isinstance(value, keras.Layer):
                setattr(model, name, value)
        return model

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
                "a program sets it: models need float32. To compute in another "
                "precision, set the `dtype` of a model or a dtype policy."
            )
        # Without autocast boxes stay float32, and so do inputs that are only passed on.
        super().__init__(autocast=False, name=name, trainable=trainable, dtype=dtype)
        self.built = True  # encoder and decoder are built by the constructor
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
            **kwargs: Keywords of `keras.Model.save`.

        Raises:
            FileExistsError: If the file exists and `overwrite` is `False`.
            InputError: If the path has another suffix: no other file could be loaded.
        """
        if not os.fspath(filepath).endswith(".keras"):
            raise InputError(f"{filepath} should end in .keras: a saved model.")
        if not overwrite and os.path.exists(filepath):
            raise FileExistsError(f"There is a file {filepath} already.")
        if self.compiled and not self.optimizer.built:
            # Loading builds the optimizer, and warns of variables that the file lacks.
            self.optimizer.build(self.trainable_variables)
        with replacing(filepath) as partial:
            super().save(partial, **kwargs)

    @property
    def output_limits(self) -> list[str]:
        """Limits of the outputs, sentences for the model card."""
        return []

    def example_call(self, images: str) -> str:
        """Code of a call of the model, for the model card.

        Args:
            images: str, code of the first argument, if the model reads images.
        """
        return f"generate({images})"

    def without_optimizer(self) -> "TaskModel":
        """A copy of the model that is not compiled, with separate weights."""
        copy = type(self).from_config(self.get_config())
        copy.set_weights(self.get_weights())
        return copy

    def save_to_preset(self, preset_dir: str | os.PathLike) -> None:
        """Saves the model as a preset, a folder as KerasHub's presets are.

        `keras_caption.models.from_preset` loads the preset from a folder or a hub, with
        vocabularies, decoding, threshold and extractor, but without an optimizer. The
        folder appears whole or not at all. Its `README.md` is a model card; a card that
        a person has edited is kept.

        Args:
            preset_dir: Path of the folder. An existing preset is replaced.

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
        """Exports the call of the model, see `keras.Model.export`.

        `keras_caption.serving.export` exports generation, for a server.

        Args:
            filepath: Folder of the SavedModel.
            *args, **kwargs: Arguments of `keras.Model.export`.
            input_signature: Defaults to the dict `call_specs`.
        """
        if input_signature is None:
            input_signature = [self.call_specs]
        super().export(filepath, *args, input_signature=input_signature, **kwargs)

    def quantize(self, *args: Any, **kwargs: Any) -> None:
        """Quantizes the matrix products of dense layers, see `keras.Model.quantize`.

        Embeddings, normalizations and LSTM cells are not quantized. The optimizer is
        replaced by a new one: its moments belong to weights that no longer exist.

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
        self.forget_compiled()
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
        # Keras would replace an answer that is the name of a class by the class.
        config = {n: x if is_texts(x) else deserialize(x) for n, x in config.items()}
        quantized = config.pop("quantized", [])
        model = cls(**config)
        quantize_layers(model, quantized)
        return model
