from typing import Unpack

import keras

from keras_caption.base.arguments import Calibration, KerasOptions, Share, check
from keras_caption.decoding import Decoding
from keras_caption.features import Extractor
from keras_caption.models.photo_reader import PhotoReader
from keras_caption.models.seq2seq import Seq2Seq
from keras_caption.text import Vocabulary


class CaptionerOptions(KerasOptions, total=False):
    """Keywords of every captioner, which `Captioner` describes."""

    extractor: Extractor | None
    categories: list[str] | None
    threshold: Share
    calibration: list[list[float]] | None
    evidence_table: list[list[str]] | None
    decoding: Decoding | None


@keras.saving.register_keras_serializable("keras_caption")
class Captioner(PhotoReader, Seq2Seq):
    """Base of all captioning models: an encoder of images or videos, and a decoder.

    A captioner reads features or, if it has an `extractor`, photos.
    `keras_caption.models.create` makes compiled captioners.

    Args:
        encoder, decoder, vocabulary: As in `keras_caption.models.Seq2Seq`.
        extractor: `keras_caption.features.Extractor` that makes the encoder's inputs
            from photos, or `None`.
        categories: List of str, names of the values of a feature vector, if regions
            are objects that a detector finds in photos: the `dimensions` of
            `keras_caption.objects.ObjectDetector` or `ColouredObjects`.
        threshold: float in [0, 1], the confidence below which a caption should not be
            relied on. The command marks such captions, `generate` does not. Defaults
            to 0.
        calibration: List of pairs of floats in [0, 1], in rising order, of a captioner
            of detected objects. A pair holds the least detection score of the objects
            that a caption names, and the share of captions with that score that name
            only objects of the photo. The confidence of a caption is interpolated
            between the pairs. If `None`, the confidence is the geometric mean of the
            probabilities of the tokens.
        evidence_table: List of lists of seven str, the rows of a table of the words for
            `categories`, for the option `evidence`, see docs/photos.md. Defaults to the
            table of COCO's categories.
        decoding: As in `keras_caption.models.Seq2Seq`.
        name, trainable, dtype: Of any Keras model.

    Call arguments:
        inputs: dict of the encoder's inputs, see `keras_caption.inputs` (`regions` and
            `boxes`, `grid`, or `frames`; or, with an `extractor` of photos, `image`,
            `(batch, height, width, 3)`, 0 to 255), and `tokens`, see
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
        evidence_table: list[list[str]] | None = None,
        decoding: Decoding | None = None,
        **kwargs: Unpack[KerasOptions],
    ):
        check(Calibration | None, calibration=calibration)
        super().__init__(encoder, decoder, vocabulary, decoding=decoding, **kwargs)
        self.extractor = extractor
        self.categories = categories
        self.threshold = threshold
        self.calibration = calibration
        self.evidence_table = evidence_table
