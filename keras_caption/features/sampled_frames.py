import numpy as np


def sampled_frames(total: int, num_frames: int) -> np.ndarray:
    """Chooses frames of a video at uniform distances.

    The video is cut into `num_frames` equal parts, and the middle frame of each part is
    chosen: `floor((i + 0.5) * total / num_frames)`. All frames of a video of at most
    `num_frames` frames are chosen.

    Args:
        total: int, number of frames of the video.
        num_frames: int, greatest number of chosen frames.

    Returns:
        int64 `(min(total, num_frames),)`, distinct numbers of frames in ascending
        order.
    """
    if total <= num_frames:
        return np.arange(total)
    # In integers, so that no quotient is rounded up to the next frame.
    return (2 * np.arange(num_frames) + 1) * total // (2 * num_frames)
