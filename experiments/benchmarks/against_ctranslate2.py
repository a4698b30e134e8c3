"""Beam search of a translator, against CTranslate2 and LiteRT with the same weights.

    pip install ctranslate2 ai-edge-litert
    python experiments/benchmarks/against_ctranslate2.py

CTranslate2 and LiteRT run what `keras-caption export` writes for them, in float32 and
in int8; see `forced_translation.py`.
"""

import functools
import pathlib
import tempfile

from keras_caption.serving import export_ctranslate2, export_engine

import keras_caption as kc
from experiments.benchmarks.forced_translation import (
    BEAM_SIZE,
    LENGTH,
    compare,
    cores,
    make_model,
)


def ctranslate2(work, precision="float32"):
    return ctranslate2_search(
        make_model(work),
        [row[:-1] for row in work.sources],  # CTranslate2 appends EOS
        precision,
        beam_size=BEAM_SIZE,
        min_decoding_length=LENGTH,
        max_decoding_length=LENGTH,
    )


def ctranslate2_search(model, sources, precision, **options):
    """A search of a translator's export, as a function without arguments.

    Args:
        model: Translator.
        sources: Token ids of sentences, without EOS.
        precision: As in `export_ctranslate2`.
        **options: Of CTranslate2: the beam and the lengths.
    """
    import ctranslate2

    with tempfile.TemporaryDirectory() as folder:
        export_ctranslate2(model, folder, precision)
        engine = ctranslate2.Translator(folder, intra_threads=cores())
    return functools.partial(
        engine.translate_batch,
        [[str(token) for token in row] for row in sources],
        length_penalty=0,
        suppress_sequences=[["<pad>"], ["<bos>"]],
        disable_unk=True,
        **options,
    )


def litert(work, precision="float32"):
    from ai_edge_litert.interpreter import Interpreter

    model = make_model(work)
    model.decoding = kc.decoding.Decoding(
        beam_size=BEAM_SIZE, max_length=LENGTH, min_length=LENGTH
    )
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "translator"
        export_engine(model, path, "litert", precision)
        content = (path / "model.tflite").read_bytes()
    engine = Interpreter(model_content=content, num_threads=cores())
    return functools.partial(engine.get_signature_runner(), source=work.sources)


if __name__ == "__main__":
    compare(
        {
            "CTranslate2": ctranslate2,
            "CTranslate2, int8": functools.partial(ctranslate2, precision="int8"),
            "LiteRT": litert,
            "LiteRT, int8": functools.partial(litert, precision="int8"),
        }
    )
