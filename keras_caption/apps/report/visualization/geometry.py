from typing import Any

import numpy as np
from jaxtyping import Float, Float32
from keras import ops
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from keras_caption.base.errors import InputError
from keras_caption.layers import GeometryBias
from keras_caption.layers.geometry_bias import MIN_DISTANCE

CONTENT_INDEPENDENT = "content_independent"
FIXED = (0.5, 1.0, 2.0)  # values of the fixed pair, one for each panel
MOST, POINTS = 3.0, 60  # greatest value and number of points of an axis
LEVELS = 6  # contours
SIZE = 6.9, 2.35  # inches: a page of two columns
STYLE: dict[Any, float] = {"font.size": 8, "axes.titlesize": 8, "axes.linewidth": 0.6}
AXES = {
    "position": (r"$\Delta x$", r"$\Delta y$", r"$\Delta w = \Delta h = {}$"),
    "size": (r"$\Delta w$", r"$\Delta h$", r"$\Delta x = \Delta y = {}$"),
}


def geometric_weight(
    model: Any,
    position: Float[np.ndarray, "*points 2"],
    size: Float[np.ndarray, "*points 2"],
) -> Float32[np.ndarray, "*points"]:
    """Computes the geometric weight of two boxes that a GSA model has learned.

    It is phi_1 (NG-SAN, Eq. 11) of the relative geometry (Eq. 15)

        f = (log(dx), log(dy), log(dw), log(dh)),
        dx = |x_i - x_j| / w_i,  dy = |y_i - y_j| / h_i,
        dw = w_i / w_j,          dh = h_i / h_j

    of the first layer that has one, averaged over its heads. Values below 1e-3 are
    read as 1e-3, as `keras_caption.layers.relative_geometry` reads distances.

    Appendix A.1 of the paper plots "the content-dependent version (phi^1)"; but phi^1
    is its content-independent bias. We trust the symbol, not the word, since the other
    two biases depend on more than f. The paper's model has one layer, and its equations
    one head; taking the first layer and the mean over heads is ours.

    Args:
        model: Model with `geometry="content_independent"`, alone or among others.
        position: float `(..., 2)`, dx and dy.
        size: float `(..., 2)`, dw and dh.

    Returns:
        float32 `(...)`.

    Raises:
        InputError: If the model has no such bias, or one of a signed geometry.
    """
    bias = bias_of(model)
    geometry = np.concatenate(np.broadcast_arrays(position, size), axis=-1)
    geometry = np.log(np.maximum(geometry, MIN_DISTANCE)).astype("float32")
    flat = ops.convert_to_tensor(geometry.reshape(1, 1, -1, 4))
    weights = ops.convert_to_numpy(bias.content_independent(flat))
    return weights.mean(axis=1).reshape(geometry.shape[:-1])


def bias_of(model: Any) -> GeometryBias:
    """Finds the first content-independent bias of an encoder.

    Raises:
        InputError: See `geometric_weight`.
    """
    layers = getattr(getattr(model, "encoder", None), "layers", [])
    biases = (getattr(getattr(x, "attention", None), "bias", None) for x in layers)
    for bias in biases:
        if isinstance(bias, GeometryBias) and CONTENT_INDEPENDENT in bias.kind:
            if bias.signed:
                raise InputError(
                    f"The model '{model.name}' has a signed geometry: its weights "
                    "depend on directions too, and have no plot over distances."
                )
            return bias
    raise InputError(
        f"The model '{model.name}' has no geometric weight of its own: one with "
        f'geometry="{CONTENT_INDEPENDENT}" is expected.'
    )


def geometric_weight_figure(model: Any, over: str) -> Figure:
    """Plots the geometric weight over positions or over sizes (NG-SAN, Fig. 3 and 4).

    In a panel, one of position and size is fixed at 0.5, 1 or 2 in both directions; the
    other varies from 0 to 3. A cell of 0.05 shows the weight at its centre, as the
    logarithm of 0 is undefined. All panels share one colour scale and its contours.

    Args:
        model: See `geometric_weight`.
        over: str, `"position"` (Fig. 3) or `"size"` (Fig. 4).

    Returns:
        The figure; `figure.savefig(path)` writes it.

    Raises:
        InputError: See `geometric_weight`.
    """
    import matplotlib

    axis = (np.arange(POINTS) + 0.5) * MOST / POINTS
    changing = np.stack(np.meshgrid(axis, axis), axis=-1)
    weights = []
    for value in FIXED:
        fixed = np.full(2, value)
        pair = (changing, fixed) if over == "position" else (fixed, changing)
        weights.append(geometric_weight(model, *pair))
    low, high = np.min(weights), np.max(weights)
    levels = MaxNLocator(LEVELS).tick_values(low, high)
    x, y, title = AXES[over]
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=SIZE, layout="constrained")
        panels = figure.subplots(1, len(FIXED), sharey=True)
        for panel, value, panel_weights in zip(panels, FIXED, weights, strict=True):
            drawn = panel.pcolormesh(
                *(axis, axis, panel_weights),
                **{"vmin": low, "vmax": high, "cmap": "viridis", "rasterized": True},
            )
            inside = (panel_weights.min() < levels) & (levels < panel_weights.max())
            if inside.any():
                lines = panel.contour(
                    *(axis, axis, panel_weights, levels[inside]),
                    **{"colors": "white", "linewidths": 0.5},
                )
                panel.clabel(lines, fontsize=5)
            panel.set(aspect="equal", xticks=range(4), yticks=range(4))
            panel.set(xlabel=x, title=title.format(f"{value:g}"))
        panels[0].set_ylabel(y)
        figure.colorbar(drawn, ax=panels, label=r"$\phi^1$", shrink=0.9)
        figure.canvas.draw()  # with these settings
    return figure
