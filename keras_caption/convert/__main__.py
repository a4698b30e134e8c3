r"""Converts checkpoints of the authors' code to Keras.

    python -m keras_caption.convert aoanet model-best.pth \
        --infos infos_aoanet-best.pkl --output aoanet.keras

writes a file for `keras.models.load_model`.
"""

import argparse
import sys

from keras_caption.convert import convert_aoanet, read_infos, read_tensors
from keras_caption.errors import InputError


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m keras_caption.convert",
        description="Converts a checkpoint of AoANet's authors to a Keras model.",
    )
    parser.add_argument("model", choices=["aoanet"])
    parser.add_argument("checkpoint", help=".pth, .npz or .safetensors")
    parser.add_argument(
        "--infos", required=True, help="infos_*.pkl, or its content as JSON"
    )
    parser.add_argument("--output", required=True, help="path that ends in .keras")
    args = parser.parse_args()
    try:
        if not args.output.endswith(".keras"):
            raise InputError(f"--output must end in .keras, not be {args.output}.")
        words, options = read_infos(args.infos)
        model = convert_aoanet(read_tensors(args.checkpoint), words, options)
        model.save(args.output)
    except (InputError, OSError) as error:
        sys.exit(f"error: {error}")
    print(
        f"Wrote {args.output}: {model.count_params():,} parameters, "
        f"{len(model.vocabulary):,} words"
    )


if __name__ == "__main__":
    main()
