"""Numbers among the arguments of the models."""

from keras_caption.arguments import Count, CountOrZero, ShareBelowOne, check

SIZES = {
    **dict.fromkeys(
        (
            "region_dim",
            "grid_height",
            "grid_width",
            "grid_dim",
            "num_layers",
            "model_dim",
            "embedding_dim",
            "num_heads",
            "decoder_heads",
            "feedforward_dim",
            "geometry_dim",
            "image_area",
            "caption_area",
        ),
        Count,
    ),
    "vocabulary_size": Count | None,
    "decoder_layers": Count | None,
    "caption_length": Count | None,
    "area_layers": CountOrZero,
    "dropout": ShareBelowOne,
    "branch_dropout": ShareBelowOne | None,
    "refining_dropout": ShareBelowOne,
    "aoa_dropout": ShareBelowOne,
}


def check_sizes(arguments):
    """Checks the numbers among a constructor's arguments.

    Args:
        arguments: dict from name to value; names that are not in `SIZES` are ignored.

    Raises:
        InputError: If a number is out of range. The message names the argument.
    """
    for name, kind in SIZES.items():
        if name in arguments:
            check(kind, **{name: arguments[name]})
