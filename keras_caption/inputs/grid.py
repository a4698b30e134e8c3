from typing import Any

import keras
import numpy as np
from jaxtyping import Float
from keras import ops

from keras_caption.inputs.input_kind import InputKind


class Grid(InputKind):
    """A grid of convolutional features of an image.

    | key | type and shape | meaning |
    |---|---|---|
    | `grid` | float `(batch, height, width, grid_dim)` | features, all of them valid |

    A memory of it holds its cells row by row.
    """

    keys = ("grid",)
    sizes = ("grid_height", "grid_width", "grid_dim")
    noun = "image"

    @staticmethod
    def symbolic(
        grid_height: int, grid_width: int, grid_dim: int
    ) -> dict[str, keras.KerasTensor]:
        """Symbolic inputs of an encoder of a grid.

        Args:
            grid_height, grid_width: int, rows and columns of the grid.
            grid_dim: int, size of a cell's feature vector.
        """
        return {"grid": keras.Input((grid_height, grid_width, grid_dim), name="grid")}

    def draw(
        self,
        panel: Any,
        inputs: dict[str, Any],
        weights: Float[np.ndarray, " cells"],
        size: tuple[int, int],
    ) -> Float[np.ndarray, "height width 1"]:
        """Lights every cell by its weight, with smooth transitions."""
        cells = np.reshape(weights, (*inputs["grid"].shape[1:3], 1))
        return np.array(ops.image.resize(cells, size))
