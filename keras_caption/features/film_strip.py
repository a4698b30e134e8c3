import numpy as np
from jaxtyping import UInt8

from keras_caption.features.clips import Clip
from keras_caption.features.photos import resize

HEIGHT = 96  # pixels
MAX_WIDTH = 65_500  # greatest width of a JPEG


def film_strip(clip: Clip) -> UInt8[np.ndarray, "height width 3"]:
    """Puts the frames of a clip side by side, in order of time, for figures.

    Args:
        clip: `Clip`.

    Returns:
        uint8 `(height, T * width, 3)`. Frames have the proportions of the clip, and are
        smaller if there are many.
    """
    count, proportion = len(clip.frames), clip.width / clip.height
    width = max(1, min(round(HEIGHT * proportion), MAX_WIDTH // count))
    height = max(1, round(width / proportion))
    frames = np.round(resize(clip.frames, height, width))
    frames = np.clip(frames, 0, 255).astype("uint8")
    return np.concatenate(list(frames), axis=1)
