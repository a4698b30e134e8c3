r"""Converts checkpoints of the authors' code to Keras.

    keras-caption convert aoanet model-best.pth \
        --infos infos_aoanet-best.pkl --output aoanet.keras

writes a model for `keras.models.load_model`.
"""

from collections.abc import Sequence

from keras_caption.commands.command_line import Parser
from keras_caption.convert import convert_aoanet, read_infos, read_tensors
from keras_caption.errors import InputError


def main(arguments: Sequence[str]) -> None:
    parser = Parser("keras-caption convert", __doc__)
    parser.add_argument("model", choices=["aoanet"])
    parser.add_argument("checkpoint", help=".pth, .npz or .safetensors")
    parser.add_argument("--infos", required=True, help="infos_*.pkl, or JSON of it")
    parser.add_argument("--output", required=True, help="file that ends in .keras")
    options = parser.parse_args(arguments)
    if not options.output.endswith(".keras"):
        raise InputError(f"--output must end in .keras, not be {options.output}.")
    words, values = read_infos(options.infos)
    model = convert_aoanet(read_tensors(options.checkpoint), words, values)
    model.save(options.output)
    print(
        f"Wrote {options.output}: {model.count_params():,} parameters, "
        f"{len(model.vocabulary):,} words"
    )
