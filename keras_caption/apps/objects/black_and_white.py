import numpy as np
from jaxtyping import Float32

# Differences of red, green and blue that JPEG makes of grey, of 255, and the share of
# pixels that have none greater.
GREY, SHARE = 3, 0.99


def is_black_and_white(
    image: Float32[np.ndarray, "size size 3"], extent: Float32[np.ndarray, "2"]
) -> bool:
    """Whether a photo has no colours.

    Args:
        image, extent: As in `keras_caption.apps.objects.object_colours.pixel_shares`.
    """
    width, height = np.maximum(np.asarray(extent) * len(image), 1).astype(int)
    # By whole channels: over the short last axis, NumPy takes 19 times as long.
    red, green, blue = np.moveaxis(image[:height, :width], -1, 0)
    greatest = np.maximum(np.maximum(red, green), blue)
    least = np.minimum(np.minimum(red, green), blue)
    return bool((greatest - least <= GREY).mean() >= SHARE)
