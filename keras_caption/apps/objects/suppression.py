import dataclasses

import numpy as np
from jaxtyping import Float32, Int


@dataclasses.dataclass(frozen=True)
class Suppression:
    """Greedy non-maximum suppression: of overlapping boxes, the best one remains.

    Attributes:
        overlap: float, greatest intersection over union of two boxes that remain.
        by_category: bool, whether boxes of different categories may overlap more.
    """

    overlap: float
    by_category: bool

    def __call__(
        self,
        boxes: Float32[np.ndarray, "N 4"],
        scores: Float32[np.ndarray, " N"],
        categories: Int[np.ndarray, " N"],
        most: int,
    ) -> Int[np.ndarray, " kept"]:
        """Returns the indices of the remaining boxes, the best first.

        Args:
            boxes: float32 `(N, 4)`, x1, y1, x2, y2 in any unit.
            scores: float32 `(N,)`.
            categories: int `(N,)`.
            most: int, greatest number of remaining boxes.
        """
        low, high = boxes[:, :2], boxes[:, 2:]
        areas = np.prod(high - low, axis=1)
        kept: list[int] = []
        waiting = np.argsort(-scores, kind="stable")
        while len(waiting) and len(kept) < most:
            best, others = waiting[0], waiting[1:]
            kept.append(best)
            sides = np.minimum(high[best], high[others])
            sides = np.maximum(sides - np.maximum(low[best], low[others]), 0)
            common = np.prod(sides, axis=1)
            unions = areas[best] + areas[others] - common
            shares = common / np.maximum(unions, np.finfo("float32").tiny)
            overlaps = shares > self.overlap
            if self.by_category:
                overlaps &= categories[others] == categories[best]
            waiting = others[~overlaps]
        return np.array(kept, "int64")
