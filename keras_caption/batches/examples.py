"""Examples of captioning datasets: their TFDS features and references."""

from typing import Any

import numpy as np
import tensorflow_datasets as tfds

from keras_caption.base.errors import InputError
from keras_caption.text import split_words


def region_features(
    region_dim: int, dtype: Any = np.float32, has_boxes: bool = True, **more: Any
) -> Any:
    """Makes the TFDS features of a dataset of images given as regions.

    An example has an `image_id`; `regions`, float `(N, region_dim)`; `boxes`,
    float32 `(N, 4)`, x1, y1, x2, y2 divided by the image's width and height, unless
    they are unknown; the `captions` as written by people; and their `words`, normalized
    and separated by spaces.

    Args:
        region_dim: int, size of a region's feature vector.
        dtype: NumPy type in which `regions` are stored. Defaults to float32.
        has_boxes: bool, whether regions have boxes. Defaults to `True`.
        **more: Further TFDS features of the dataset, by name.

    Returns:
        `tfds.features.FeaturesDict`.
    """
    if has_boxes:
        more["boxes"] = tfds.features.Tensor(shape=(None, 4), dtype=np.float32)
    return caption_features({"regions": _vectors(region_dim, dtype), **more})


def frame_features(
    frame_dim: int, dtype: Any = np.float32, has_times: bool = True, **more: Any
) -> Any:
    """Makes the TFDS features of a dataset of videos given as frames.

    An example has an `image_id`, the video's; its `name`; `frames`, float
    `(T, frame_dim)`, in order of time; their `times`, float32 `(T,)`, in seconds from
    the start of the video, if known; and `captions` and `words`, see
    `region_features`. It may have an `image`, a film strip for figures: T equal
    columns, frame t in the t-th.

    Args:
        frame_dim: int, size of a frame's feature vector.
        dtype: NumPy type in which `frames` are stored. Defaults to float32.
        has_times: bool, whether the times of frames are known. Defaults to `True`.
        **more: Further TFDS features of the dataset, by name.

    Returns:
        `tfds.features.FeaturesDict`.
    """
    if has_times:
        more["times"] = tfds.features.Tensor(shape=(None,), dtype=np.float32)
    frames = _vectors(frame_dim, dtype)
    return caption_features({"name": tfds.features.Text(), "frames": frames, **more})


def caption_features(features: dict[str, Any]) -> Any:
    """Adds the id and the captions to the TFDS features of a dataset."""
    return tfds.features.FeaturesDict(
        {
            "image_id": np.int64,
            "captions": tfds.features.Sequence(tfds.features.Text()),
            "words": tfds.features.Sequence(tfds.features.Text()),
            **features,
        }
    )


def _vectors(dim, dtype):
    """Makes the TFDS feature of vectors, `(N, dim)`."""
    # `tf.train.Example` holds floats of 32 bits; other types are stored as bytes.
    encoding = "none" if dtype == np.float32 else "bytes"
    return tfds.features.Tensor(shape=(None, dim), dtype=dtype, encoding=encoding)


def in_half_precision(features: Any, name: str) -> np.ndarray:
    """Converts features to half precision, the type of prepared datasets.

    Args:
        features: float array.
        name: str, name of the record in messages.

    Returns:
        float16 NumPy array.

    Raises:
        InputError: If a feature is not finite in half precision.
    """
    features = np.asarray(features)
    with np.errstate(over="ignore"):
        half = features.astype("float16")
    if not np.isfinite(half).all():
        value = features[~np.isfinite(half)][0]
        raise InputError(
            f"{name} has a feature of {value:,.6g}; features are kept in half "
            "precision, which ends at 65,504."
        )
    return half


def captions_and_words(captions: list[str]) -> dict[str, list[str]]:
    """Makes the `captions` and `words` of an example."""
    words = [" ".join(split_words(caption)) for caption in captions]
    return {"captions": captions, "words": words}


def references(examples: Any) -> dict[int, list[str]]:
    """Collects the captions of every image, the references of an evaluation.

    Args:
        examples: `tf.data.Dataset` of examples.

    Returns:
        dict from image id to a list of str.

    Raises:
        InputError: If an image has no caption.
    """
    small = examples.map(lambda e: {k: e[k] for k in ("image_id", "captions")})
    captions = {
        int(e["image_id"]): [c.decode() for c in e["captions"]]
        for e in small.as_numpy_iterator()
    }
    for image_id, texts in captions.items():
        if not texts:
            raise InputError(f"Image {image_id} has no captions.")
    return captions
