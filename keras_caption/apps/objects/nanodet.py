import keras
import numpy as np
from jaxtyping import Float32
from keras import ops

from keras_caption.apps.objects.object_detector import Images
from keras_caption.apps.objects.yolox import Decoded, Yolox
from keras_caption.base.arguments import Tensor
from keras_caption.formats.coco_categories import COCO_IDS

BINS = 8  # distances to a side, in strides


@keras.saving.register_keras_serializable("keras_caption")
class NanoDet(Yolox):
    """Detects objects by a NanoDet-Plus network.

    The network reads photos that fill the square, normalized by the colours of
    ImageNet. Each cell of its grids, of strides 8 to 64 pixels, row by row, predicts
    the scores of the 80 categories; and of each side of a box the distance from the
    cell's left upper corner, an expectation over 0 to 7 strides by a softmax. Of boxes
    of one category that overlap by more than 0.6, the best remains.

    Args:
        network: `keras.Model` from float `(batch, height, width, 3)`, blue first, to
            float `(batch, cells, 112)`, as `keras_caption.convert.convert_nanodet`
            makes it.
        image_size: int, a multiple of 32. Defaults to 416.
        confidence, max_objects, name: Of `ObjectDetector`.

    Raises:
        InputError: If the network has another input or output.

    Reference:
        Lyu, NanoDet-Plus, github.com/RangiLyu/nanodet; Li et al., "Generalized Focal
        Loss", NeurIPS 2020 (the expectation of distances).
    """

    kind = "NanoDet-Plus"
    strides_of_grids = (8, 16, 32, 64)
    values = len(COCO_IDS) + 4 * BINS
    proportions = False
    overlap = 0.6

    def predict_cells(self, images: Images) -> Decoded:
        images = ops.flip(images, axis=-1)
        predictions = ops.cast(self.network(images, training=False), "float32")
        return decode_nanodet(predictions, self.cells, self.strides)


def decode_nanodet(
    predictions: Float32[Tensor, "batch cells 112"],
    cells: Float32[np.ndarray, "cells 2"],
    strides: Float32[np.ndarray, "cells 1"],
) -> Decoded:
    """Decodes the values of NanoDet-Plus's cells to boxes in pixels and scores.

    The distance of a side is the expectation over `BINS` strides.
    """
    logits = predictions[..., len(COCO_IDS) :]
    shares = ops.softmax(ops.reshape(logits, (-1, len(cells), 4, BINS)))
    bins = ops.arange(BINS, dtype="float32")
    distances = ops.sum(shares * bins, axis=-1) * strides
    centres = cells * strides
    boxes = [centres - distances[..., :2], centres + distances[..., 2:]]
    return ops.concatenate(boxes, axis=-1), predictions[..., : len(COCO_IDS)]
