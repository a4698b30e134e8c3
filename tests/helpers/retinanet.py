"""A small object detector of KerasHub."""

import keras_hub


def small_retinanet(num_classes):
    """A RetinaNet with random weights."""
    encoder = keras_hub.models.ResNetBackbone(
        input_conv_filters=[64],
        input_conv_kernel_sizes=[3],
        stackwise_num_filters=[64, 8, 8, 8],
        stackwise_num_blocks=[1, 1, 1, 1],
        stackwise_num_strides=[1, 2, 2, 2],
        block_type="basic_block",
    )
    levels, box_format = {"min_level": 3, "max_level": 5}, "yxyx"
    anchors = keras_hub.layers.AnchorGenerator(
        box_format, **levels, num_scales=3, aspect_ratios=[0.5, 1, 2], anchor_size=4.0
    )
    converter = keras_hub.layers.RetinaNetImageConverter(
        image_size=(64, 64), scale=1 / 255, bounding_box_format=box_format
    )
    return keras_hub.models.RetinaNetObjectDetector(
        keras_hub.models.RetinaNetBackbone(encoder, use_p5=False, **levels),
        anchor_generator=anchors,
        num_classes=num_classes,
        bounding_box_format=box_format,
        preprocessor=keras_hub.models.RetinaNetObjectDetectorPreprocessor(converter),
    )
