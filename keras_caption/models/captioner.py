from typing import Unpack

import keras
import numpy as np

from keras_caption.arguments import KerasOptions, Share
from keras_caption.decoding import Decoding
from keras_caption.errors import InputError
from keras_caption.features import Extractor
from keras_caption.models.photo_reader import PhotoReader
from keras_caption.models.seq2seq import Seq2Seq
from keras_caption.text import Vocabulary


@keras.saving.register_keras_serializable("keras_caption")
class Captioner(PhotoReader, Seq2Seq):
    """Base of all captioning models: an encoder of images or videos, and a decoder.

    It reads features, as its encoder does, or photos, if it has an `extractor`.
    `keras_caption.models.create` makes compiled ones.

    Args:
        encoder, decoder, vocabulary: Of `keras_caption.models.Seq2Seq`.
        extractor: `keras_caption.features.Extractor` that makes the encoder's inputs
            out of photos, or `None`.
        categories: List of str, if regions are objects that a detector finds in
            photos: what the values of their features stand for, the `dimensions` of
            `keras_caption.features.ObjectDetector` or `ColouredObjects`.
        threshold: float in [0, 1], the confidence below which a caption should not be
            relied on; `generate` does not heed it, the command does. Defaults to 0.
        calibration: List of pairs of floats in [0, 1], rising, of a captioner of
            detected objects: least scores of the objects that captions name, and the
            shares of captions that name only what is there, between which the
            confidence of a caption of a photo is interpolated. `None` if it is the
            geometric mean of the probabilities of its tokens.
        decoding: Of `keras_caption.models.Seq2Seq`.
        name, trainable, dtype: Of any Keras model.

    Call arguments:
        inputs: dict of what the encoder reads, see `keras_caption.inputs` (`regions`
            and `boxes`, `grid`, or `frames`; or, with an `extractor` of photos,
            `image`, `(batch, height, width, 3)`, 0 to 255), and `tokens`, see
            `keras_caption.models.Seq2Seq`.

    Returns:
        Logits, float32, of the shape of `tokens` plus `(vocabulary_size,)`.

    Example:

    ```python
    model = keras_caption.models.Captioner(encoder, decoder, vocabulary)
    captions = model.generate({"regions": regions, "boxes": boxes})
    ```
    """

    hub_task = "image-to-text", "image-captioning"

    def __init__(
        self,
        encoder: keras.Model,
        decoder: keras.layers.Layer,
        vocabulary: Vocabulary | None = None,
        *,
        extractor: Extractor | None = None,
        categories: list[str] | None = None,
        threshold: Share = 0.0,
        calibration: list[list[float]] | None = None,
        decoding: Decoding | None = None,
        **kwargs: Unpack[KerasOptions],
    ):
        super().__init__(encoder, decoder, vocabulary, decoding=decoding, **kwargs)
        points = np.array(calibration or [[0.0, 0.0]])
        if (
            points.ndim != 2
            or points.shape[1] != 2
            or not ((points >= 0) & (points <= 1)).all()
            or (np.diff(points, axis=0) < 0).any()
        ):
            raise InputError(
                "`calibration` should be pairs of numbers from 0 to 1 that rise. "
                f"Received: {calibration!r:.100}"
            )
