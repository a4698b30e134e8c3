"""Beam search of a translator, against CTranslate2 with the same weights.

    pip install ctranslate2
    python experiments/benchmarks/against_ctranslate2.py

CTranslate2 runs what `keras-caption export --format ctranslate2` writes, in float32 and
in int8; see `forced_translation.py`.
"""

import functools
import tempfile

from experiments.benchmarks.forced_translation import (
    BEAM_SIZE,
    LENGTH,
    compare,
    cores,
    make_model,
)
from keras_caption.serving import export_ctranslate2


def ctranslate2(work, precision="float32"):
    import ctranslate2

    with tempfile.TemporaryDirectory() as folder:
        export_ctranslate2(make_model(work), folder, precision)
        engine = ctranslate2.Translator(folder, intra_threads=cores())
    return functools.partial(
        engine.translate_batch,
        [[str(token) for token in row[:-1]] for row in work.sources],  # it appends EOS
        beam_size=BEAM_SIZE,
        length_penalty=0,
        min_decoding_length=LENGTH,
        max_decoding_length=LENGTH,
        suppress_sequences=[["<pad>"], ["<bos>"]],
        disable_unk=True,
    )


if __name__ == "__main__":
    compare(
        {
            "CTranslate2": ctranslate2,
            "CTranslate2, int8": functools.partial(ctranslate2, precision="int8"),
        }
    )
