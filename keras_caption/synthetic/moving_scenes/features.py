import numpy as np

from keras_caption.synthetic.scenes.rendering import crop_features

OBJECT_DIM = 128
FRAME_DIM = 4 * OBJECT_DIM
LEAST = 0.02  # width and height of what is visible of an object
SCALE = 25  # features of this scale have a standard deviation of about 1


def clip_features(frames: np.ndarray, tracks: np.ndarray) -> np.ndarray:
    """Computes a feature vector of each frame, from its pixels alone.

    The visible part of every object's box is cropped, reduced and projected as a
    region of `keras_caption.synthetic.Scenes`, followed by ReLU, and scaled by its
    side. These features are shared among the four corners of the frame, by bilinear
    weights of the object's place, and added up over the objects. So kinds, colours and
    places can be read off linearly, and no frame knows which comes before or after it.

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
        of_objects = crop_features(frame, boxes[visible, t], OBJECT_DIM).clip(0)
        side = np.sqrt((x2 - x1) * (y2 - y1))[visible]
        x, y = ((x1 + x2) / 2)[visible], ((y1 + y2) / 2)[visible]
        corners = np.stack([(1 - x) * (1 - y), x * (1 - y), (1 - x) * y, x * y])
        features[t] = ((SCALE * side * corners) @ of_objects).ravel()
    return features
