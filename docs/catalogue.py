"""Writes the catalogue of the built-in experiments: `make format`.

`run --help` reads it, since declarations of models need Keras, which takes seconds to
import, see `keras_caption.settings.catalogue`. It is JSON, a list of kinds of models,
whose experiments have the same names. A model is described by the values that differ
from those of the first one.
"""

import json

import keras_caption as kc
from keras_caption.commands.configuration import describe, make_config
from keras_caption.settings.catalogue import FILE


def main():
    FILE.write_text(catalogue())


def catalogue():
    """The content of the file."""
    kinds = {}
    for name in kc.models.presets():
        described = describe(*make_config(None, {"model.name": name}))
        values = {value: (str(x), text) for value, (x, text) in described.items()}
        kind = kinds.setdefault(tuple(values), {"values": values, "models": {}})
        kind["models"][name] = {
            value: entry
            for value, entry in values.items()
            if entry != kind["values"][value]
        }
    return json.dumps([*kinds.values()], indent=1) + "\n"


if __name__ == "__main__":
    main()
