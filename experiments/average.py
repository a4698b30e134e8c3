r"""Averages the weights of models that were trained from the same ones on.

    python experiments/average.py saved_models/before.keras saved_models/after \
        --output saved_models/average.keras

All but the weights is the first model's: its decoding, threshold and extractor.

Reference: Wortsman et al., "Model soups: averaging weights of multiple fine-tuned
models improves accuracy without increasing inference time", ICML 2022.
"""

import numpy as np

import keras_caption as kc
from keras_caption.commands.command_line import Parser, new_file, start


def main(arguments):
    parser = Parser("experiments/average.py", __doc__, imports=True)
    parser.add_argument("models", nargs="+", help="saved models, or folders of runs")
    parser.add_argument("--output", required=True, type=new_file)
    options = parser.parse_intermixed_args(arguments)
    first, *others = (kc.models.load(name) for name in options.models)
    weights = [[x.shape for x in model.weights] for model in (first, *others)]
    for name, shapes in zip(options.models, weights, strict=True):
        if shapes != weights[0]:
            raise kc.InputError(
                f"{name}: its weights have other shapes than those of "
                f"{options.models[0]}."
            )
    values = zip(*(model.get_weights() for model in (first, *others)), strict=True)
    first.set_weights([np.mean(of_one, axis=0) for of_one in values])
    first.save(options.output)
    print(f"Wrote {options.output}")


if __name__ == "__main__":
    start(main)
