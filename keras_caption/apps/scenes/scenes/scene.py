import dataclasses
import math

import numpy as np

from keras_caption.apps.scenes.choice import choose

KINDS = (
    "circle",
    "square",
    "triangle",
    "star",
    "heart",
    "cross",
    "ring",
    "diamond",
    "moon",
    "tree",
    "house",
    "arrow",
)
COLOURS = {
    "red": (214, 40, 40),
    "orange": (247, 140, 20),
    "yellow": (250, 220, 40),
    "green": (40, 150, 60),
    "blue": (40, 80, 210),
    "purple": (140, 50, 170),
    "brown": (120, 70, 30),
    "black": (25, 25, 30),
    "white": (252, 252, 252),
}
# Kinds that other objects may be inside of, or on top of.
CONTAINERS = ("circle", "square", "ring", "diamond", "house", "heart")
SUPPORTS = ("square", "house", "circle", "cross")


@dataclasses.dataclass(frozen=True)
class SceneObject:
    """An object of a scene.

    Attributes:
        kind: One of `KINDS`.
        colour: One of `COLOURS`.
        box: x1, y1, x2, y2 divided by the image's width and height.
    """

    kind: str
    colour: str
    box: tuple[float, float, float, float]

    @property
    def centre(self) -> tuple[float, float]:
        x1, y1, x2, y2 = self.box
        return (x1 + x2) / 2, (y1 + y2) / 2

    @property
    def width(self) -> float:
        return self.box[2] - self.box[0]

    @property
    def height(self) -> float:
        return self.box[3] - self.box[1]

    @property
    def area(self) -> float:
        return self.width * self.height


def overlap(a: SceneObject, b: SceneObject) -> float:
    """Area of the intersection of the boxes of two objects."""
    width = min(a.box[2], b.box[2]) - max(a.box[0], b.box[0])
    height = min(a.box[3], b.box[3]) - max(a.box[1], b.box[1])
    return max(width, 0.0) * max(height, 0.0)


def sample_scene(rng: np.random.Generator) -> tuple[SceneObject, ...]:
    """Samples the objects of a scene.

    There are three to eight objects, some of the same kind or colour. They are placed
    anywhere, or inside, on top of or beside earlier objects. Some occlude parts of
    others, never half of them.

    Args:
        rng: `numpy.random.Generator`.

    Returns:
        A tuple of `SceneObject` in the order of drawing, large ones first.
    """
    count = rng.integers(3, 9)
    kinds = list(rng.choice(KINDS, size=rng.integers(2, 6), replace=False))
    colours = list(rng.choice(list(COLOURS), size=rng.integers(2, 6), replace=False))
    objects: list[SceneObject] = []
    while len(objects) < count:
        kind, colour = str(rng.choice(kinds)), str(rng.choice(colours))
        for _ in range(20):
            new = SceneObject(kind, colour, _sample_box(rng, objects))
            if _fits(new, objects):
                objects.append(new)
                break
        else:
            count -= 1  # the scene is full
    return tuple(sorted(objects, key=lambda o: -o.area))


def _sample_box(rng, objects):
    height = math.exp(rng.uniform(math.log(0.1), math.log(0.48)))
    width = height * math.exp(rng.uniform(-0.25, 0.25))
    placement = rng.choice(
        ["anywhere", "inside", "on top", "beside"], p=[0.5, 0.1, 0.2, 0.2]
    )
    hosts = {
        "anywhere": [],
        "inside": [o for o in objects if o.kind in CONTAINERS and o.height > 0.22],
        "on top": [o for o in objects if o.kind in SUPPORTS],
        "beside": objects,
    }[placement]
    if not hosts:
        x, y = rng.uniform(0.02, 0.98 - width), rng.uniform(0.02, 0.98 - height)
        return (x, y, x + width, y + height)
    host = choose(rng, hosts)
    x1, y1, x2, _ = host.box
    if placement == "inside":
        scale = rng.uniform(0.35, 0.5)
        width, height = host.width * scale, host.height * scale
        x = host.centre[0] - width / 2 + rng.normal() * 0.01
        y = host.centre[1] - height / 2 + rng.normal() * 0.01
    elif placement == "on top":
        x = rng.uniform(x1, x2) - width / 2
        y = y1 - height + rng.uniform(-0.01, 0.01)
    else:
        gap = rng.uniform(0.0, 0.05)
        x = x2 + gap if rng.random() < 0.5 else x1 - gap - width
        y = host.centre[1] - height / 2 + rng.normal() * 0.02
    return (x, y, x + width, y + height)


def _fits(new, objects):
    """Whether a new object is within the image and leaves all objects visible."""
    x1, y1, x2, y2 = new.box
    if min(x1, y1) < 0.01 or max(x2, y2) > 0.99 or min(x2 - x1, y2 - y1) < 0.07:
        return False
    for other in objects:
        smaller, larger = sorted((new, other), key=lambda o: o.area)
        shared = overlap(new, other)
        if shared > 0.25 * larger.area:
            return False
        # A small object either stands inside a large container or beside it.
        inside = shared > 0.95 * smaller.area
        if inside and larger.kind not in CONTAINERS:
            return False
        if not inside and shared > 0.35 * smaller.area:
            return False
    return True
