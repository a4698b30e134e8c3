import collections.abc
import os
from typing import Any

import keras
import numpy as np

from keras_caption.arguments import Tensor
from keras_caption.compilation import compile_from_second_call
from keras_caption.errors import InputError
from keras_caption.features import Clip, Extractor, resize_photo
from keras_caption.inputs import missing_inputs
from keras_caption.models.input_reader import InputReader
from keras_caption.objects.categories import CATEGORIES


class PhotoReader(InputReader):
    """Mixin of models and ensembles that reads photos or clips by an `extractor`.

    Attributes:
        extractor: `keras_caption.features.Extractor`, or `None`. A subclass has it.
        categories: List of str, categories of the objects that are read as regions, or
            `None`.
    """

    categories: list[str] | None = None
    extractor: keras.Model | None

    def to_batch(self, raw: Any) -> Any:
        """Turns photos or clips into a batch of features.

        Args:
            raw: List of files, as in `extract`; or a dict, which may hold the list as
                `photos`, or a tensor `image`, `(batch, height, width, 3)`, 0 to 255, in
                place of features.

        Returns:
            dict of arrays or tensors.

        Raises:
            InputError: If a file cannot be read, or the model has no extractor.
        """
        if not isinstance(raw, collections.abc.Mapping):
            return self.extract(raw)
        if raw.get("photos") is not None:
            return {**raw, **self.extract(raw["photos"])}
        image, extractor = raw.get("image"), self.extractor
        if image is None or not isinstance(extractor, Extractor):
            return raw
        if not missing_inputs(self.kinds, raw):
            return raw
        return {**raw, **extractor(resize_photo(image, extractor.image_size))}

    def extract(
        self, files: list[str | os.PathLike | np.ndarray | Clip]
    ) -> dict[str, Tensor]:
        """Extracts features of photos or clips, as for the training data.

        Args:
            files: List of paths. A photo may also be a uint8 array `(height, width, 3)`
                and a clip a result of `keras_caption.features.ClipExtractor.read`.

        Returns:
            dict of tensors, see `keras_caption.features.Extractor` and
            `ClipExtractor`.

        Raises:
            InputError: If a file cannot be read, or the model has no extractor.
        """
        if self.extractor is None:
            required = ", ".join(name for kind in self.kinds for name in kind.required)
            raise InputError(
                f"The model '{self.name}' needs a dict of {required}: it has no "
                f"`extractor` for photos or clips. Received: {type(files).__name__}"
            )
        return self.extract_pixels(self.extractor.to_pixels(files))

    def extract_pixels(self, pixels: Any) -> dict[str, Tensor]:
        """Extracts features of pixels, a result of the extractor's `to_pixels`."""
        extracted = self._extract(pixels)
        if refuse_nan := getattr(self.extractor, "refuse_nan", None):  # of a detector
            refuse_nan(extracted)
        return extracted

    def _extract(self, pixels):
        if not getattr(self.extractor, "in_graphs", True):
            return self.extractor(pixels)
        if self.extractor not in self._compiled_functions:
            self._compiled_functions[self.extractor] = compile_from_second_call(
                self.extractor, self.extractor.variables
            )
        return self._compiled_functions[self.extractor](pixels)

    def region_names(self, regions: Tensor) -> list[str]:
        """Categories of the regions of one image, if regions are detected objects.

        Args:
            regions: float `(N, region_dim)`.

        Returns:
            List of str, "" for padding and for regions without an object. The list is
            empty if the model's regions are not objects.
        """
        if not self.categories:
            return []
        names = tuple(self.categories)
        # Values of colours may follow those of categories.
        if names[: len(CATEGORIES)] == CATEGORIES:
            names = CATEGORIES
        scores = np.asarray(regions)[:, : len(names)]  # (N, categories)
        return [names[row.argmax()] if row.any() else "" for row in scores]
