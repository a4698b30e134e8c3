import numpy as np
from PIL import Image, ImageDraw

from keras_caption.apps.scenes.moving_scenes.clip import FRAMES, MovingScene
from keras_caption.apps.scenes.scenes.rendering import SCALE, draw_object, sample_shade

SIDE = 64


def render(clip: MovingScene, rng: np.random.Generator) -> np.ndarray:
    """Renders the frames of a clip.

    Args:
        clip: `MovingScene`.
        rng: `numpy.random.Generator`, for the background and shades of colours.

    Returns:
        uint8 `(FRAMES, 64, 64, 3)`.
    """
    size = SIDE * SCALE
    background = (int(rng.uniform(165, 225)),) * 3
    shades = [sample_shade(o.colour, rng) for o in clip.objects]
    frames = []
    for frame in range(FRAMES):
        image = Image.new("RGB", (size, size), background)
        draw = ImageDraw.Draw(image)
        for o, shade, track in zip(clip.objects, shades, clip.tracks, strict=True):
            x, y, side, angle = (float(value) for value in track[frame])
            box = (x - side / 2, y - side / 2, x + side / 2, y + side / 2)
            x1, y1, x2, y2 = (c * size for c in box)
            draw_object(draw, o.kind, shade, (x1, y1, x2, y2), angle)
        frames.append(np.asarray(image.reduce(SCALE)))
    return np.stack(frames)
