import keras
import numpy as np
from jaxtyping import Float

from keras_caption.base.arguments import Tensor
from keras_caption.inputs.input_kind import InputKind


class Grid(InputKind):
    """A grid of convolutional features of an image.

    | key | type and shape | meaning |
    |---|---|---|
    | `grid` | float `(batch, height, width, grid_dim)` | features, all of them valid |

    A memory of a grid holds its cells row by row.
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

    def areas(self, inputs: dict[str, Tensor]) -> Float[np.ndarray, "batch cells 4"]:
        """Returns the boxes of the cells, row by row."""
        batch, rows, columns = inputs["grid"].shape[:3]
        y, x = np.divmod(np.arange(rows * columns), columns)
        cells = np.stack([x, y, x + 1, y + 1], axis=1) / [columns, rows, columns, rows]
        return np.tile(cells, (batch, 1, 1))
