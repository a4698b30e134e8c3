"""What every captioning dataset holds, however it was made."""

import numpy as np
import tensorflow_datasets as tfds

from keras_caption.errors import InputError
from keras_caption.text import split_words


def region_features(region_dim, dtype=np.float32, **more):
    """TFDS features of a dataset of images given as regions.

    An example has an `image_id`; `regions`, float `(N, region_dim)`; `boxes`,
    float32 `(N, 4)`, x1, y1, x2, y2 divided by the image's width and height; the
    `captions` as people wrote them; and their `words`, normalized and separated
    by blanks.

    Args:
        region_dim: Size of a region's feature vector.
        dtype: Of `regions`, in storage.
        **more: Further features of the dataset.
    """
    return tfds.features.FeaturesDict(
        {
            "image_id": np.int64,
            "regions": tfds.features.Tensor(
                shape=(None, region_dim),
                dtype=dtype,
                encoding="none" if dtype == np.float32 else "bytes",
            ),
            "boxes": tfds.features.Tensor(shape=(None, 4), dtype=np.float32),
            "captions": tfds.features.Sequence(tfds.features.Text()),
            "words": tfds.features.Sequence(tfds.features.Text()),
            **more,
        }
    )


def in_half_precision(features, name):
    """Converts features to the precision that prepared datasets keep them in.

    Args:
        features: float array.
        name: What to call the record in messages.

    Returns:
        float16 NumPy array.

    Raises:
        InputError: If a feature is not finite, or is not in half precision.
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


def captions_and_words(captions):
    """The `captions` and `words` of an example, from what people wrote."""
    words = [" ".join(split_words(caption)) for caption in captions]
    return {"captions": captions, "words": words}


def references(examples):
    """The captions of every image, for scoring.

    Args:
        examples: tf.data dataset of examples.

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
    for image_id, of_image in captions.items():
        if not of_image:
            raise InputError(f"Image {image_id} has no captions.")
    return captions
