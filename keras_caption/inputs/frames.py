from typing import Any

import keras
import numpy as np
from jaxtyping import Bool, Float, UInt8
from keras import ops

from keras_caption.base.arguments import Tensor
from keras_caption.inputs.input_kind import has_not_finite, not_finite
from keras_caption.inputs.masked_items import MaskedItems

MAX_FRAMES = 1024  # of a video: attention takes its square


class Frames(MaskedItems):
    """Frames of a video, in order of time.

    | key | type and shape | meaning |
    |---|---|---|
    | `frames` | float `(batch, T, frame_dim)` | features |
    | `times` | float `(batch, T)` | seconds from the video's start; optional |
    | `frame_mask` | bool `(batch, T)` | True where valid; optional |

    Models read the order of the frames, not their `times`, which only figures show. A
    video has at most `MAX_FRAMES` valid frames. Exported models take `num_frames`,
    int32 `(batch,)`, instead of a mask: later frames are padding.
    """

    keys = ("frames", "times", "frame_mask")
    sizes = ("frame_dim",)
    noun = "video"
    optional = {"frame_mask"}
    mask, number = "frame_mask", "num_frames"

    @staticmethod
    def symbolic(frame_dim: int) -> dict[str, keras.KerasTensor]:
        """Symbolic inputs of an encoder of frames.

        Args:
            frame_dim: int, size of a frame's feature vector.
        """
        return {
            "frames": keras.Input((None, frame_dim), name="frames"),
            "frame_mask": keras.Input((None,), dtype="bool", name="frame_mask"),
        }

    def complete(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """Adds a mask, and sets padded frames to zero."""
        mask = valid_frames(inputs)
        frames = ops.where(ops.expand_dims(mask, -1), inputs["frames"], 0.0)
        return {**inputs, "frames": frames, "frame_mask": mask}

    def faults(self, inputs: dict[str, Tensor]) -> dict[str, Bool[Tensor, " batch"]]:
        inputs = self.own(inputs)
        mask = valid_frames(inputs)
        count = ops.sum(ops.cast(mask, "int32"), axis=1)
        wrong = has_not_finite(inputs["frames"], ops.expand_dims(mask, -1))
        return {
            "has no valid frame": count == 0,
            f"has more than {MAX_FRAMES:,} frames": count > MAX_FRAMES,
            not_finite("frames"): wrong,
        }

    def before_padding(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Adds a mask if there is none."""
        if "frames" not in inputs or "frame_mask" in inputs:
            return inputs
        return {**inputs, "frame_mask": np.ones(np.shape(inputs["frames"])[:1], "bool")}

    def from_served(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        tensors = super().from_served(inputs)
        # One frame more than allowed is enough for the fault, and bounds the memory.
        return {name: x[:, : MAX_FRAMES + 1] for name, x in tensors.items()}

    def blank(self, inputs: dict[str, Tensor]) -> UInt8[np.ndarray, "height width 3"]:
        """A film strip of plain frames."""
        return np.full((48, 48 * inputs["frames"].shape[1], 3), 100, "uint8")

    def areas(self, inputs: dict[str, Tensor]) -> Float[np.ndarray, "batch T 4"]:
        """Returns the frames of a film strip, columns of equal width."""
        batch, count = inputs["frames"].shape[:2]
        left = np.arange(count) / count
        low, high = np.zeros(count), np.ones(count)
        columns = np.stack([left, low, left + 1 / count, high], axis=1)
        return np.tile(columns, (batch, 1, 1))


def valid_frames(inputs: dict[str, Tensor]) -> Bool[Tensor, "batch T"]:
    """Returns which frames are valid: those of the mask, or all without a mask.

    Returns:
        bool `(batch, T)`.
    """
    if "frame_mask" in inputs:
        return ops.cast(inputs["frame_mask"], "bool")
    return ops.ones(ops.shape(inputs["frames"])[:2], "bool")
