import numpy as np

from keras_caption.apps.scenes.scenes.rendering import crop_features

OBJECT_DIM = 128
FRAME_DIM = 4 * OBJECT_DIM
LEAST = 0.02  # smallest side of the visible part of an object
SCALE = 25  # brings the standard deviation of features to about 1


def clip_features(frames: np.ndarray, tracks: np.ndarray) -> np.ndarray:
    """Computes a feature vector of each frame, from its pixels alone.

    The visible part of every object's box is cropped, reduced and projected like a
    region of `keras_caption.synthetic.Scenes`, followed by ReLU, and scaled by its
    side. These features are distributed to the four corners of the frame, by bilinear
    weights of the object's position, and summed over objects. Kinds, colours and
    positions are therefore linear in the features, and a frame contains no information
    about the order of frames.

    Args:
        frames: uint8 `(T, height, width, 3)`.
        tracks: float `(objects, T, 4)`, see `MovingScene`.

    Returns:
        float32 `(T, FRAME_DIM)`.
    """
    half = tracks[..., 2:3] / 2
    centres = tracks[..., :2]
    boxes = np.concatenate([centres - half, centres + half], axis=-1).clip(0, 1)
    features = np.zeros((len(frames), FRAME_DIM), "float32")
    for t, frame in enumerate(frames):
        x1, y1, x2, y2 = boxes[:, t].T
        visible = np.minimum(x2 - x1, y2 - y1) > LEAST
        if not visible.any():
            continue
        object_features = crop_features(frame, boxes[visible, t], OBJECT_DIM).clip(0)
        side = np.sqrt((x2 - x1) * (y2 - y1))[visible]
        x, y = ((x1 + x2) / 2)[visible], ((y1 + y2) / 2)[visible]
        corners = np.stack([(1 - x) * (1 - y), x * (1 - y), (1 - x) * y, x * y])
        features[t] = ((SCALE * side * corners) @ object_features).ravel()
    return features
