import pathlib
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
from jaxtyping import Float, Int32
from keras import ops

from keras_caption.apps.objects.object_detector import (
    Detected,
    Images,
    ObjectDetector,
    with_nan,
)
from keras_caption.apps.objects.suppression import Suppression
from keras_caption.base.arguments import Tensor
from keras_caption.base.errors import InputError, hint, missing_extras
from keras_caption.features.hub_presets import is_preset, loading_preset
from keras_caption.features.keras_defaults import keras_defaults
from keras_caption.formats.coco_categories import COCO_IDS

if TYPE_CHECKING:
    import keras_hub


@keras.saving.register_keras_serializable("keras_caption")
class HubDetector(ObjectDetector):
    """Detects objects by an object detector of KerasHub that was trained on COCO.

    The detector's preprocessor decides the size of resized photos, and whether they
    keep their proportions. The classes are COCO's 80 categories, or COCO's ids up to
    90.

    Args:
        network: `keras_hub.models.ObjectDetector`.
        confidence, max_objects, name: As in `ObjectDetector`.

    Raises:
        InputError: If the network has another number of classes, or no preprocessor.
    """

    def __init__(
        self,
        network: Any,
        confidence: float = 0.3,
        max_objects: int = 36,
        name: str = "hub_detector",
        **kwargs: Any,
    ):
        if network.preprocessor is None:
            raise InputError(f"The detector {network.name} has no preprocessor.")
        classes = {len(COCO_IDS): range(len(COCO_IDS)), COCO_IDS[-1] + 1: COCO_IDS}
        if network.num_classes not in classes:
            raise InputError(
                f"A detector should have COCO's {' or '.join(map(str, classes))} "
                f"classes. Received: {network.num_classes}, of {network.name}"
            )
        converter = network.preprocessor.image_converter
        super().__init__(
            max(converter.image_size),
            converter.pad_to_aspect_ratio,
            confidence,
            max_objects,
            name,
            **kwargs,
        )
        self.network = network
        # The last entry is for the label -1, which stands for no object.
        self.categories = np.full(network.num_classes + 1, -1)
        self.categories[[*classes[network.num_classes]]] = range(len(COCO_IDS))
        decoder = network.prediction_decoder
        decoder.confidence_threshold = confidence
        if hasattr(decoder, "iou_threshold"):
            # It suppresses boxes that overlap by just as much, too.
            most = np.nextafter(np.float32(decoder.iou_threshold), np.float32(0))
            self.suppression = Suppression(float(most), by_category=False)
        self.trainable = False

    def detect(self, images: Images) -> Detected:
        boxes, scores, labels = detect_by(self.network, images)
        return boxes, scores, self._categories_of(labels)

    def candidates(self, images: Images) -> Detected:
        boxes, scores, labels = detect_by(AllBoxes(self.network), images)
        return boxes * self.image_size, scores, self._categories_of(labels)

    def _categories_of(self, labels):
        return ops.take(ops.cast(self.categories, "int32"), labels, axis=0)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        del config["image_size"]
        return {**config, "network": keras.saving.serialize_keras_object(self.network)}


class AllBoxes:
    """A detector of KerasHub that predicts all boxes, without suppression.

    Args:
        network: `keras_hub.models.ObjectDetector`, whose `prediction_decoder` is a
            layer `NonMaxSuppression`.
    """

    def __init__(self, network: Any):
        self.network = network
        self.prediction_decoder = EachBox(network.prediction_decoder)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.network, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.network(*args, **kwargs)

    def decode_predictions(self, predictions: Any, images: Any) -> dict[str, Any]:
        return type(self.network).decode_predictions(self, predictions, images)


class EachBox:
    """What a layer `NonMaxSuppression` of KerasHub returns, without suppression."""

    def __init__(self, layer: Any):
        self.bounding_box_format = layer.bounding_box_format
        self.from_logits = layer.from_logits

    def __call__(self, boxes: Any, classes: Any, images: Any = None) -> dict[str, Any]:
        scores = ops.sigmoid(classes) if self.from_logits else classes
        best, labels = ops.top_k(scores, 1)  # LiteRT lacks `argmax` of Keras
        return {"boxes": boxes, "confidence": best[..., 0], "labels": labels[..., 0]}


def detect_by(
    network: Any, images: Float[Tensor, "batch height width 3"]
) -> tuple[
    Float[Tensor, "batch N 4"], Float[Tensor, "batch N"], Int32[Tensor, "batch N"]
]:
    """Detects objects by a detector of KerasHub.

    Args:
        network: `keras_hub.models.ObjectDetector`.
        images: float `(batch, height, width, 3)`, 0 to 255, RGB.

    Returns:
        Boxes, float `(batch, N, 4)`, x1, y1, x2, y2 divided by width and height;
        scores, float `(batch, N)`, NaN if a prediction is; and classes, int32
        `(batch, N)`, -1 for padding.
    """
    images = network.preprocessor(images)
    predictions = network(images, training=False)
    detections = network.decode_predictions(predictions, images)
    boxes = keras.utils.bounding_boxes.convert_format(
        detections["boxes"],
        source=network.bounding_box_format,
        target="rel_xyxy",
        height=images.shape[1],
        width=images.shape[2],
    )
    scores = with_nan(detections["confidence"], predictions)
    return boxes, scores, ops.cast(detections["labels"], "int32")


@keras_defaults()
def load_hub_detector(
    preset: str, instead: str = ""
) -> "keras_hub.models.ObjectDetector":
    """Loads a KerasHub object detector, by name or from a folder.

    Args:
        preset: str, name, address or folder.
        instead: As in `loading_preset`.

    Raises:
        InputError: If there is no such preset, or it cannot be loaded.
    """
    with missing_extras():
        import keras_hub

    presets = keras_hub.models.ObjectDetector.presets
    if not is_preset(preset, presets):
        raise InputError(
            f"There is no object detector {preset!r}: no preset of KerasHub, no "
            f"address, no folder. {hint(preset, presets)}"
        )
    folder = pathlib.Path(preset)
    if folder.is_dir() and not (folder / "config.json").is_file():
        raise InputError(
            f"The folder {preset} is no preset of KerasHub: it has no config.json."
        )
    with loading_preset(preset, presets, instead):
        return keras_hub.models.ObjectDetector.from_preset(preset)
