from typing import Any

import keras
import numpy as np
from jaxtyping import Bool, Float
from keras import ops

from keras_caption.base.arguments import Tensor
from keras_caption.inputs.input_kind import has_not_finite, not_finite
from keras_caption.inputs.masked_items import MaskedItems

# How far a box may exceed its image, as a fraction of the image's sides: enough for
# rounding and half a pixel, too little for a box in pixels.
BOX_MARGIN = 0.01


class Regions(MaskedItems):
    """Regions of an image, with their boxes.

    | key | type and shape | meaning |
    |---|---|---|
    | `regions` | float `(batch, N, region_dim)` | features |
    | `boxes` | float `(batch, N, 4)` | x1, y1, x2, y2, divided by width and height |
    | `region_mask` | bool `(batch, N)` | True where valid; optional |

    A region is valid if its box has an area and its mask, if given, is True. Boxes
    padded with zeros have no area, nor do boxes padded with any other single number, as
    TensorFlow Serving pads them. Models that do not depend on boxes need none; for
    them, a mask alone decides if there is one. Such models, exported, take
    `num_regions`, int32 `(batch,)`, instead of boxes.
    """

    keys = ("regions", "boxes", "region_mask")
    sizes = ("region_dim",)
    noun = "image"
    mask, number = "region_mask", "num_regions"

    @staticmethod
    def symbolic(region_dim: int) -> dict[str, keras.KerasTensor]:
        """Symbolic inputs of an encoder of regions.

        Args:
            region_dim: int, size of a region's feature vector.
        """
        return {
            "regions": keras.Input((None, region_dim), name="regions"),
            "boxes": keras.Input((None, 4), name="boxes"),
            "region_mask": keras.Input((None,), dtype="bool", name="region_mask"),
        }

    @property
    def reads_boxes(self) -> bool:
        """Whether predictions of the model depend on boxes."""
        return "boxes" in self.specs and "boxes" not in self.ignored

    @property
    def optional(self) -> set[str]:
        return {"region_mask"} if self.reads_boxes else {"region_mask", "boxes"}

    def read(self, batch: dict[str, Tensor], model_name: str) -> dict[str, Tensor]:
        inputs = super().read(batch, model_name)
        if "region_mask" in inputs and not self.reads_boxes:
            inputs.pop("boxes", None)
        return inputs

    def complete(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """Adds mask and boxes, and sets padded rows to zero.

        If no box of an image has an area, as in training data without boxes, the mask
        alone decides.
        """
        if "region_mask" not in self.specs:
            return inputs
        regions, boxes, given = map(inputs.get, self.keys)
        mask = valid_regions(regions, boxes, given)
        no_area = ~ops.any(mask, axis=1, keepdims=True)
        mask_alone = valid_regions(regions, None, given)
        mask = ops.where(no_area, mask_alone, mask)
        if boxes is None:
            boxes = ops.zeros((*ops.shape(regions)[:2], 4))
        valid = ops.expand_dims(mask, -1)
        regions, boxes = (ops.where(valid, x, 0.0) for x in (regions, boxes))
        return {"regions": regions, "boxes": boxes, "region_mask": mask}

    def faults(self, inputs: dict[str, Tensor]) -> dict[str, Bool[Tensor, " batch"]]:
        mask = valid_regions(*map(inputs.get, self.keys))
        problem = (
            "has no valid region: one needs a box with an area, and a mask of True"
        )
        faults = {problem: ~ops.any(mask, axis=1)}
        if "boxes" in inputs:
            boxes = ops.cast(inputs["boxes"], "float32")
            inside = ops.logical_and(boxes >= -BOX_MARGIN, boxes <= 1 + BOX_MARGIN)
            outside = ops.any(~inside, axis=-1)
            problem = (
                "has boxes that are not x1, y1, x2, y2 divided by width and height"
            )
            faults[problem] = ops.any(ops.logical_and(mask, outside), axis=1)
            swapped = ops.any(boxes[..., :2] > boxes[..., 2:], axis=-1)
            problem = "has boxes whose corners are not in order: x1 <= x2 and y1 <= y2"
            faults[problem] = ops.any(ops.logical_and(mask, swapped), axis=1)
        wrong = has_not_finite(inputs["regions"], ops.expand_dims(mask, -1))
        return {**faults, not_finite("regions"): wrong}

    def before_padding(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Adds a mask if there are neither a mask nor boxes."""
        if "regions" not in inputs or {"boxes", "region_mask"} & {*inputs}:
            return inputs
        return {
            **inputs,
            "region_mask": np.ones(np.shape(inputs["regions"])[:1], "bool"),
        }

    @property
    def is_counted(self) -> bool:
        return not self.reads_boxes

    def served_specs(self) -> dict[str, keras.KerasTensor]:
        specs = super().served_specs()
        if self.number in specs:
            specs.pop("boxes", None)
        return specs

    def example(self) -> dict[str, np.ndarray]:
        example = super().example()
        if "boxes" in example:
            example["boxes"][:] = [0, 0, 1, 1]
        return example

    def areas(self, inputs: dict[str, Tensor]) -> Float[np.ndarray, "batch N 4"] | None:
        """Returns the boxes, or `None` if there are none."""
        boxes = inputs.get("boxes")
        return None if boxes is None else ops.convert_to_numpy(boxes)


def valid_regions(
    regions: Float[Tensor, "batch N dim"],
    boxes: Float[Tensor, "batch N 4"] | None = None,
    region_mask: Bool[Tensor, "batch N"] | None = None,
) -> Bool[Tensor, "batch N"]:
    """Returns which regions are valid: the mask is True and the box has an area.

    A missing mask, or missing boxes, make no region invalid.

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
    # NaN in a box must stay visible to `faults`: such a region counts as valid.
    flat = ops.logical_and(flat, ops.all(ops.isfinite(boxes), axis=-1))
    return ops.logical_and(mask, ~flat)
