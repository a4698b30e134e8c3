"""What models read of images: taken from a batch, checked, masked.

Written once for captioners and ensembles, in Python and in exported graphs.
"""

import collections.abc

import keras
import numpy as np
from keras import ops

from keras_caption.errors import InputError
from keras_caption.features import resize_photo
from keras_caption.formats.faults import reason_of

# How far a box may reach out of its image, in units of the image's sides: rounding,
# and half a pixel. A box in pixels reaches further.
BOX_MARGIN = 0.01


def read_inputs(model, inputs):
    """Takes what a model reads out of a batch of images.

    If the batch lacks it but has an `image`, the model's extractor makes it.

    Args:
        model: Captioner or ensemble.
        inputs: dict of arrays or tensors; other keys are ignored.

    Returns:
        dict of tensors, those of `model.image_specs` that the batch has.

    Raises:
        InputError: If an input is missing, is not numeric or has a wrong shape.
    """
    specs = model.image_specs
    optional = {"region_mask"} if model.reads_boxes else {"region_mask", "boxes"}
    required = [name for name in specs if name not in optional]
    if not isinstance(inputs, collections.abc.Mapping):
        raise InputError(
            f"The model '{model.name}' needs a dict of {', '.join(required)} (photos "
            "are captioned by `generate_from_images`). "
            f"Received: {type(inputs).__name__}"
        )
    missing = [name for name in required if inputs.get(name) is None]
    if missing and model.extractor is not None and inputs.get("image") is not None:
        photos = resize_photo(inputs["image"], model.extractor.image_size)
        inputs = model.extractor(photos)
    elif missing:
        raise InputError(
            f"The model '{model.name}' needs {', '.join(required)}. "
            f"Missing from the batch: {', '.join(missing)}"
        )
    images = {
        name: to_tensor(name, inputs[name])
        for name in specs
        if inputs.get(name) is not None
    }
    check_shapes(model, images)
    if "region_mask" in images and not model.reads_boxes:
        images.pop("boxes", None)  # which a mask makes superfluous
    return images


def to_tensor(name, values):
    """Numbers as a tensor.

    Raises:
        InputError: If they are not numbers, or lists of different lengths.
    """
    try:
        tensor = ops.convert_to_tensor(values)
        kind = keras.backend.standardize_dtype(tensor.dtype)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"`{name}` should be an array of numbers, padded to one shape: "
            f"{reason_of(error)}."
        ) from None
    if kind == "string":
        raise InputError(f"`{name}` should be an array of numbers. Received: strings")
    return tensor


def check_shapes(model, images):
    """Checks the shapes of a batch against the model and each other.

    Raises:
        InputError: If a shape is wrong, or there are not as many boxes, or values of
            the mask, as regions.
    """
    for name, values in images.items():
        expected = model.image_specs[name].shape[1:]
        found = tuple(values.shape[1:])
        if len(found) != len(expected) or any(
            e not in (f, None) for e, f in zip(expected, found, strict=True)
        ):
            raise InputError(
                f"The model '{model.name}' reads {name} of shape "
                f"{('batch', *expected)}. Received: {tuple(values.shape)}"
            )
    for name in {"boxes", "region_mask"} & set(images):
        counts = [tuple(images[key].shape[:2]) for key in ("regions", name)]
        if None not in (*counts[0], *counts[1]) and counts[0] != counts[1]:
            raise InputError(
                f"An image needs as many {name} as regions. Received a batch of "
                f"{counts[0]} regions and {counts[1]} {name}."
            )


def valid_regions(regions, boxes=None, region_mask=None):
    """Which regions are valid: those of the mask whose box has an area.

    Whoever pads with zeros, or with any other one number as TensorFlow Serving does,
    pads with boxes that have no area. Without a mask or without boxes, all regions
    are as far as these are concerned.

    Returns:
        bool `(batch, N)`.
    """
    if region_mask is None:
        mask = ops.ones(ops.shape(regions)[:2], "bool")
    else:
        mask = ops.cast(region_mask, "bool")
    if boxes is None:
        return mask
    flat = ops.any(boxes[..., :2] == boxes[..., 2:], axis=-1)
    flat = ops.logical_and(flat, ops.all(ops.isfinite(boxes), axis=-1))
    return ops.logical_and(mask, ~flat)


def mask_regions(regions, boxes=None, region_mask=None):
    """Completes the inputs of a region model: with a mask, and zeros in padded rows.

    If none of an image's regions is valid because no box has an area, those of the
    mask are: a training batch without boxes means that.

    Returns:
        dict of `regions`, `boxes` and `region_mask`.
    """
    mask = valid_regions(regions, boxes, region_mask)
    no_area = ~ops.any(mask, axis=1, keepdims=True)
    mask = ops.where(no_area, valid_regions(regions, None, region_mask), mask)
    if boxes is None:
        boxes = ops.zeros((*ops.shape(regions)[:2], 4))
    valid = ops.expand_dims(mask, -1)
    regions, boxes = (ops.where(valid, x, 0.0) for x in (regions, boxes))
    return {"regions": regions, "boxes": boxes, "region_mask": mask}


def find_faults(images):
    """Finds the images that cannot be captioned.

    Args:
        images: dict of `read_inputs`.

    Returns:
        dict from a problem, as a phrase, to the images that have it, bool `(batch,)`.
    """
    faults = {}
    if "regions" in images:
        regions = {"regions", "boxes", "region_mask"} & set(images)
        mask = valid_regions(**{name: images[name] for name in regions})
        problem = (
            "has no valid region: one needs a box with an area, and a mask of True"
        )
        faults[problem] = ~ops.any(mask, axis=1)
    if "boxes" in images:
        boxes = ops.cast(images["boxes"], "float32")
        inside = ops.logical_and(boxes >= -BOX_MARGIN, boxes <= 1 + BOX_MARGIN)
        outside = ops.any(~inside, axis=-1)
        problem = "has boxes that are not x1, y1, x2, y2 divided by width and height"
        faults[problem] = ops.any(ops.logical_and(mask, outside), axis=1)
        swapped = ops.any(boxes[..., :2] > boxes[..., 2:], axis=-1)
        problem = "has boxes whose corners are not in order: x1 <= x2 and y1 <= y2"
        faults[problem] = ops.any(ops.logical_and(mask, swapped), axis=1)
    for name in set(images) - {"boxes", "region_mask"}:
        values = ops.cast(images[name], "float32")
        wrong = ~ops.isfinite(values)
        if name == "regions":
            wrong = ops.logical_and(wrong, ops.expand_dims(mask, -1))
        axes = tuple(range(1, len(values.shape)))
        faults[f"has {name} that are not finite numbers"] = ops.any(wrong, axis=axes)
    return faults


def check_images(images, image_ids=None):
    """Checks that every image of a batch can be captioned.

    Args:
        images: dict of `read_inputs`.
        image_ids: Ids of the images, for messages, or `None`.

    Raises:
        InputError: If there is none, the inputs have different numbers of images, or
            an image has a fault, see `find_faults`.
    """
    counts = {name: len(values) for name, values in images.items()}
    if len(set(counts.values())) > 1:
        raise InputError(f"The inputs differ in their number of images: {counts}.")
    if 0 in counts.values():
        raise InputError("The batch holds no image.")
    for problem, wrong in find_faults(images).items():
        indices = np.flatnonzero(ops.convert_to_numpy(wrong))
        if len(indices):
            index = int(indices[0])
            known = "" if image_ids is None else f" (id {image_ids[index]})"
            raise InputError(f"Image {index} of the batch{known} {problem}.")
