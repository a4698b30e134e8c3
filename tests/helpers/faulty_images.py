"""Images of regions that are padded, and some that nothing can be predicted from."""

import numpy as np

PADDINGS = ("zeros", "first_element")
# Problem, input, and the value that a region of the image has of it.
FAULTS = (
    ("regions that are not finite", "regions", np.nan),
    ("regions that are not finite", "regions", -np.inf),
    ("divided by width and height", "boxes", [10.0, 20.0, 300.0, 400.0]),
    ("divided by width and height", "boxes", [0.1, 0.1, np.nan, 0.2]),
    ("divided by width and height", "boxes", np.inf),
    ("corners are not in order", "boxes", [0.5, 0.1, 0.3, 0.2]),
)


def pad(arrays, padding):
    """A batch, padded with zeros or as TensorFlow Serving pads."""
    size = max(map(len, arrays))
    value = {"zeros": lambda x: 0.0, "first_element": lambda x: x.flat[0]}[padding]
    return np.stack(
        [
            np.pad(x, [(0, size - len(x)), (0, 0)], constant_values=value(x))
            for x in arrays
        ]
    )


def pad_images(images, padding):
    """A batch of images of different numbers of regions."""
    return {
        name: pad([image[name][0] for image in images], padding)
        for name in ("regions", "boxes")
    }


def spoil(images):
    """A copy of images; the first ones have a fault each, in one region of several."""
    images = {name: values.copy() for name, values in images.items()}
    for index, (_, name, value) in enumerate(FAULTS):
        images[name][index, 1] = value
    images["boxes"][len(FAULTS)] = 0.0
    return images
