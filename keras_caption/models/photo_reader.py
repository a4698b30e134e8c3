import collections.abc
import os
from typing import Any

import numpy as np
from keras import ops

from keras_caption.decoding import compile_function
from keras_caption.errors import InputError
from keras_caption.features import read_photo, resize_photo
from keras_caption.inputs import missing_inputs
from keras_caption.models.input_reader import InputReader


class PhotoReader(InputReader):
    """Mixin of models and ensembles that reads photos, by an `extractor`."""

    def to_batch(self, raw: Any) -> Any:
        """Turns photos into a batch of features.

        Args:
            raw: List of paths or of uint8 arrays `(height, width, 3)`; or a dict,
                which may hold `image`, `(batch, height, width, 3)`, 0 to 255, in
                place of features.

        Returns:
            dict of arrays or tensors.

        Raises:
            InputError: If a photo cannot be read, or the model has no extractor.
        """
        if not isinstance(raw, collections.abc.Mapping):
            return self.extract(raw)
        is_image = self.extractor is not None and raw.get("image") is not None
        if is_image and missing_inputs(self.kinds, raw):
            photos = resize_photo(raw["image"], self.extractor.image_size)
            return {**raw, **self.extractor(photos)}
        return raw

    def extract(self, photos: list[str | os.PathLike | np.ndarray]) -> dict[str, Any]:
        """Extracts features of photos, as those of the training data were.

        Args:
            photos: List of paths, or of uint8 arrays `(height, width, 3)`.

        Returns:
            dict of tensors, see `keras_caption.features.Extractor`.

        Raises:
            InputError: If a photo cannot be read, or the model has no extractor.
        """
        if self.extractor is None:
            required = ", ".join(name for kind in self.kinds for name in kind.required)
            raise InputError(
                f"The model '{self.name}' needs a dict of {required}: it has no "
                f"`extractor` for photos. Received: {type(photos).__name__}"
            )
        check_photos(photos)
        size = self.extractor.image_size
        resized = ops.stack([resize_photo(to_pixels(p), size) for p in photos])
        if self.extractor not in self._compiled_functions:
            self._compiled_functions[self.extractor] = compile_function(
                self.extractor, self.extractor.variables
            )
        return self._compiled_functions[self.extractor](resized)


def check_photos(photos: Any) -> Any:
    """Returns photos; raises `InputError` if they are no list of at least one."""
    if isinstance(photos, (str, bytes, os.PathLike)) or not len(photos):
        raise InputError(
            "Photos should be a list of at least one path or array. "
            f"Received: {photos!r}"
        )
    return photos


def to_pixels(photo: Any) -> Any:
    """The pixels of a photo given as a path or an array.

    Raises:
        InputError: If it cannot be read, or has another shape.
    """
    if not hasattr(photo, "shape"):
        return read_photo(photo)
    if len(photo.shape) != 3 or photo.shape[-1] != 3 or 0 in photo.shape:
        raise InputError(
            "A photo's array should have the shape (height, width, 3). "
            f"Received: {tuple(photo.shape)}"
        )
    return photo
