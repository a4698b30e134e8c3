import os
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_caption.base.arguments import Items, Tensor, check
from keras_caption.base.errors import InputError
from keras_caption.features.clips import Clip, read_clip
from keras_caption.features.extractor import Extractor
from keras_caption.features.keras_defaults import keras_defaults


@keras.saving.register_keras_serializable("keras_caption")
class ClipExtractor(keras.Model):
    """Extracts features of frames that are sampled from clips.

    The feature of a frame is the mean over the cells of its grid. A captioner of videos
    is saved with its `extractor`.

    Attributes:
        made: tuple of str, names of the features.

    Args:
        extractor: `Extractor` of the frames.
        num_frames: int, number of frames sampled from a clip, see `sampled_frames`.
            Defaults to 20, as on MSR-VTT in Huang et al., "Attention on Attention for
            Image Captioning", section 4.6.

    Call arguments:
        inputs: dict, as `to_pixels` returns it.

    Returns:
        dict of `frames` `(batch, T, dim)`, `times` and `frame_mask` `(batch, T)`, see
        `keras_caption.inputs.Frames`.
    """

    made = ("frames", "times", "frame_mask")

    def __init__(
        self,
        extractor: Extractor,
        num_frames: int = 20,
        name: str = "clip_extractor",
        **kwargs: Any,
    ):
        check(Items, num_frames=num_frames)
        with keras_defaults():
            super().__init__(name=name, **kwargs)
        self.extractor = extractor
        self.num_frames = num_frames
        self.trainable = False
        self.built = True

    @property
    def image_size(self) -> int:
        """Height and width of resized frames, in pixels."""
        return self.extractor.image_size

    @property
    def frame_dim(self) -> int:
        """Size of a frame's feature vector."""
        return self.extractor.grid_shape[-1]

    def read(self, path: str | os.PathLike) -> Clip:
        """Samples frames from a file, see `read_clip`."""
        return read_clip(path, self.num_frames, self.image_size)

    def to_pixels(self, clips: list[str | os.PathLike | Clip]) -> dict[str, Tensor]:
        """Makes a batch of clips.

        Args:
            clips: List of paths, or of results of `read`.

        Returns:
            dict of `images`, uint8 `(batch, T, image_size, image_size, 3)`; `times`,
            float32 `(batch, T)`, seconds; and `frame_mask`, bool `(batch, T)`, False
            for padding.

        Raises:
            InputError: If `clips` is no list of at least one clip, or a clip cannot be
                read.
        """
        if isinstance(clips, (str, bytes, os.PathLike)) or not len(clips):
            raise InputError(
                f"Clips should be a list of at least one path. Received: {clips!r}"
            )
        read = [clip if isinstance(clip, Clip) else self.read(clip) for clip in clips]
        lengths = np.array([len(clip.times) for clip in read])
        longest = lengths.max()

        def padded(arrays):
            widths = [[(0, longest - len(x))] + [(0, 0)] * (x.ndim - 1) for x in arrays]
            return np.stack(
                [np.pad(*pair) for pair in zip(arrays, widths, strict=True)]
            )

        return {
            "images": padded([clip.frames for clip in read]),
            "times": padded([clip.times for clip in read]),
            "frame_mask": np.arange(longest) < lengths[:, None],
        }

    def call(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        images = inputs["images"]
        batch, length = ops.shape(images)[:2]
        images = ops.reshape(images, (-1, *images.shape[2:]))  # (batch * T, ...)
        vectors = self.extractor.vectors(images)
        frames = ops.reshape(vectors, (batch, length, vectors.shape[-1]))
        return {
            "frames": frames,
            "times": inputs["times"],
            "frame_mask": inputs["frame_mask"],
        }

    def get_config(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
            "extractor": keras.saving.serialize_keras_object(self.extractor),
            "num_frames": self.num_frames,
        }

    @classmethod
    @keras_defaults()
    def from_config(cls, config: dict[str, Any]) -> "ClipExtractor":
        return cls(**keras.saving.deserialize_keras_object(config))
