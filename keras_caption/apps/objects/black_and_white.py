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
    return bool((np.ptp(image[:height, :width], axis=-1) <= GREY).mean() >= SHARE)
