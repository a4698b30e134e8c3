"""Uploads a saved model to Hugging Face or Kaggle.

    keras-caption push runs/ngsan hf://user/my_captioner
    keras-caption push ngsan_coco kaggle://user/captioners/keras/ngsan

The model becomes a preset with its card, `README.md`, which the commands take by that
address: --model hf://user/my_captioner. A preset is uploaded as it is, and a run with
its card, which you may have edited. Log in first, as `hf auth login` does.
"""

import pathlib
import shutil
import tempfile
from collections.abc import Sequence

import keras_caption as kc
from keras_caption.commands.command_line import Parser


def make_parser() -> Parser:
    parser = Parser("keras-caption push", __doc__, imports=True)
    parser.add_argument("model", help="saved model, run or preset")
    parser.add_argument(
        "address", help="hf://USER/NAME or kaggle://USER/MODEL/keras/VARIATION"
    )
    return parser


def main(arguments: Sequence[str]) -> None:
    from keras_caption.formats.preset_files import CARD, is_preset

    options = make_parser().parse_args(arguments)
    model = pathlib.Path(options.model)
    if is_preset(model):
        kc.models.upload_preset(options.address, model)
    else:
        with tempfile.TemporaryDirectory() as folder:
            preset = pathlib.Path(folder) / "preset"
            kc.models.load(options.model).save_to_preset(preset)
            if (model / CARD).is_file():  # of a run, with its data and scores
                shutil.copy(model / CARD, preset / CARD)
            kc.models.upload_preset(options.address, preset)
    print(f"Uploaded {options.model} to {options.address}")
