r"""Converts checkpoints of other code to Keras.

    keras-caption convert aoanet model-best.pth \
        --infos infos_aoanet-best.pkl --output aoanet.keras
    keras-caption convert mcan epoch13.pkl \
        --tokens token_to_ix.json --answers answer_dict.json --output mcan.keras
    keras-caption convert transformer model-best.pth \
        --infos infos_transformer-best.pkl --output transformer.keras
    keras-caption convert updown model-best.pth \
        --infos infos_updown-best.pkl --output updown.keras
    keras-caption convert marian opus-mt-en-de --output en_de.keras
    keras-caption convert joeynmt models/en_de --output en_de.keras
    keras-caption convert nanodet nanodet-plus-m-1.5x_416_int8.param \
        --output nanodet.keras
    keras-caption convert yolox yolox_nano.onnx --output yolox_nano.keras

writes a model for `keras.models.load_model`. MCAN's code builds `token_to_ix` in every
run: save it in the run of the training, with `json.dump`. `transformer` and `updown`
are models of Luo's ImageCaptioning.pytorch; `marian` is a folder of Hugging Face's
MarianMT, and `joeynmt` the folder of a training by JoeyNMT. `nanodet` and `yolox` are
detectors for --detector, in ncnn's files, float or int8, and in a file of ONNX as
YOLOX's `export_onnx.py` writes it.
"""

import argparse
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import keras_caption as kc
from keras_caption.commands.command_line import Parser, count, new_file


def make_parser() -> Parser:
    parser = Parser("keras-caption convert", __doc__)
    parser.add_argument("model", choices=[*CONVERTERS])
    parser.add_argument(
        "checkpoint",
        help=".pth, .pt or .pkl of PyTorch, .npz or .safetensors; .param of ncnn; "
        ".onnx; or a folder",
    )
    parser.add_argument(
        "--infos", help="aoanet, transformer, updown: infos_*.pkl, or JSON of it"
    )
    parser.add_argument("--tokens", help="mcan: JSON of token_to_ix")
    parser.add_argument("--answers", help="mcan: answer_dict.json")
    parser.add_argument(
        "--num_heads", type=count, help="mcan: MULTI_HEAD, defaults to 8"
    )
    parser.add_argument(
        "--output", required=True, type=new_file, help="new file that ends in .keras"
    )
    return parser


def main(arguments: Sequence[str]) -> None:
    parser = make_parser()
    options = parser.parse_args(arguments)
    if not options.output.endswith(".keras"):
        raise kc.InputError(f"--output must end in .keras, not be {options.output}.")
    convert, required, optional = CONVERTERS[options.model]
    for name in ("infos", "tokens", "answers", "num_heads"):
        is_set = getattr(options, name) is not None
        if name in required and not is_set:
            parser.error(f"{options.model} needs --{name}")
        if is_set and name not in (*required, *optional):
            parser.error(f"{options.model} has no --{name}")
    model, contents = convert(options)
    model.save(options.output, overwrite=False)
    print(f"Wrote {options.output}: {model.count_params():,} parameters, {contents}")


def aoanet(options: argparse.Namespace) -> tuple["kc.models.Captioner", str]:
    """Converts an AoANet; returns it, and a description of its vocabulary."""
    words, values = kc.convert.read_infos(options.infos)
    model = kc.convert.convert_aoanet(
        kc.convert.read_tensors(options.checkpoint), words, values
    )
    return model, f"{number_of(model.vocabulary)} words"


def transformer(options: argparse.Namespace) -> tuple["kc.models.Captioner", str]:
    """Converts a Transformer of Luo's toolkit."""
    return luo(kc.convert.convert_luo_transformer, options)


def updown(options: argparse.Namespace) -> tuple["kc.models.Captioner", str]:
    """Converts a model of two LSTMs of Luo's toolkit."""
    return luo(kc.convert.convert_luo_updown, options)


def luo(
    convert: Callable[..., "kc.models.Captioner"], options: argparse.Namespace
) -> tuple["kc.models.Captioner", str]:
    """Converts a captioner of Luo's toolkit; prints how it was trained."""
    words, values = kc.convert.read_infos(options.infos)
    model = convert(kc.convert.read_tensors(options.checkpoint), words, values)
    trained = kc.convert.training_options(values).items()
    print("Trained with", ", ".join(f"{name}={value}" for name, value in trained))
    return model, f"{number_of(model.vocabulary)} words"


def marian(
    options: argparse.Namespace,
) -> tuple["kc.models.TransformerTranslator", str]:
    """Converts a folder of a MarianMT."""
    model = kc.convert.convert_marian(kc.convert.read_marian(options.checkpoint))
    return model, f"{number_of(model.target)} subwords"


def joeynmt(
    options: argparse.Namespace,
) -> tuple["kc.models.TransformerTranslator", str]:
    """Converts a folder of JoeyNMT."""
    model = kc.convert.convert_joeynmt(kc.convert.read_joeynmt(options.checkpoint))
    return model, f"{number_of(model.source)} and {number_of(model.target)} words"


def mcan(options: argparse.Namespace) -> tuple["kc.models.MCAN", str]:
    """Converts an MCAN; returns it, and a description of its vocabularies."""
    from keras_caption.formats.dictionaries import read_answers, read_token_ids

    model = kc.convert.convert_mcan(
        kc.convert.read_tensors(options.checkpoint),
        read_token_ids(options.tokens),
        read_answers(options.answers),
        options.num_heads or 8,
    )
    return model, f"{number_of(model.question)} words, {len(model.answers):,} answers"


def number_of(tokenizer: "kc.text.Tokenizer | None") -> str:
    """The number of tokens of a converted model, for its description."""
    assert tokenizer is not None  # all files have words
    return f"{len(tokenizer):,}"


def nanodet(options: argparse.Namespace) -> tuple[Any, str]:
    """Converts a NanoDet-Plus in ncnn's files."""
    layers = kc.convert.read_ncnn(pathlib.Path(options.checkpoint))
    model = kc.convert.convert_nanodet(layers)
    return model, f"{model.output_shape[1]:,} cells"


def yolox(options: argparse.Namespace) -> tuple[Any, str]:
    """Converts a YOLOX in a file of ONNX."""
    model = kc.convert.convert_yolox(pathlib.Path(options.checkpoint))
    return model, f"{model.output_shape[1]:,} cells"


# From a name to a function, its required options and its optional ones.
CONVERTERS = {
    "aoanet": (aoanet, ["infos"], []),
    "transformer": (transformer, ["infos"], []),
    "updown": (updown, ["infos"], []),
    "marian": (marian, [], []),
    "joeynmt": (joeynmt, [], []),
    "mcan": (mcan, ["tokens", "answers"], ["num_heads"]),
    "nanodet": (nanodet, [], []),
    "yolox": (yolox, [], []),
}
