import numpy as np


def sampled_frames(total: int, num_frames: int) -> np.ndarray:
    """Chooses frames of a video at uniform distances.

    The video is cut into `num_frames` equal parts, and the frame in the middle of each
    is taken: `floor((i + 0.5) * total / num_frames)`. Of a video that has no more
    frames than that, all are taken.

    Args:
        total: int, number of the video's frames.
        num_frames: int, greatest number of frames to take.

    Returns:
        int64 `(min(total, num_frames),)`, distinct numbers of frames in ascending
        order.
    """
    if total <= num_frames:
        return np.arange(total)
    return (2 * np.arange(num_frames) + 1) * total // (2 * num_frames)
