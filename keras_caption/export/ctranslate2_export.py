"""Translators as models of CTranslate2, an engine of translation on CPUs and GPUs."""

import os
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_caption.base.arguments import Precision, check
from keras_caption.base.atomic import replacing
from keras_caption.base.errors import InputError, missing_extras
from keras_caption.layers import MultiHeadAttention
from keras_caption.models import TransformerTranslator
from keras_caption.text import BOS, EOS, UNK
from keras_caption.text.tokenizer import SPECIAL_TOKENS

EXPORTED = (
    "model.bin",
    "config.json",
    *(f"{name}_vocabulary.json" for name in ("source", "target", "shared")),
)
POSITIONS = 4096  # greatest number of tokens of a sentence
SOCKETS = ("query_norm", "key_norm", "score", "bias", "memory", "temperature", "gate")


def export_ctranslate2(
    model: TransformerTranslator,
    path: str | os.PathLike,
    precision: Precision = "float32",
) -> None:
    """Writes a translator as a folder that `ctranslate2.Translator` loads.

    CTranslate2 reads and writes token ids as strings, special tokens as `"<bos>"` and
    `"<eos>"`, and appends EOS itself; the model's tokenizers make the ids. The model
    never generates padding, BOS or UNK: CTranslate2 has to be told to suppress these
    tokens, as in the example. It then gives their probability to other tokens, so
    scores differ from those of the model. The folder appears whole or not at all.

    Args:
        model: `keras_caption.models.TransformerTranslator` with plain attention.
        path: Path of the folder.
        precision: str, `"float32"`; or `"int8"`, which stores matrices in a quarter of
            the size and changes some translations.

    Raises:
        InputError: If the model has other attention or is no Transformer, or
            CTranslate2 is missing.

    Example:

    ```python
    keras_caption.serving.export_ctranslate2(model, "translator")
    engine = ctranslate2.Translator("translator")
    ids = model.source.to_ids("The red star is small.")
    [result] = engine.translate_batch(
        [[str(i) for i in ids]],
        beam_size=4,
        length_penalty=0,
        min_decoding_length=0,
        suppress_sequences=[["<pad>"], ["<bos>"]],
        disable_unk=True,
    )
    text = model.target.to_text([int(token) for token in result.hypotheses[0]])
    ```
    """
    check(Precision, precision=precision)
    check_plain(model)
    with missing_extras():
        from ctranslate2.specs import TransformerSpec

    encoder_blocks = [x for x in model.encoder.layers if hasattr(x, "feedforward")]
    decoder = model.decoder
    spec = TransformerSpec.from_config(
        (len(encoder_blocks), len(decoder.blocks)),
        decoder.blocks[0].self_attention.num_heads,
        pre_norm=False,
    )
    embedding = decoder.embedding
    if not model.shared_embeddings:
        embedding = model.encoder.get_layer("source_embedding")
    for part, blocks, table in (
        (spec.encoder, encoder_blocks, embedding),
        (spec.decoder, decoder.blocks, decoder.embedding),
    ):
        # An encoder of CTranslate2 may have several inputs, each with a table.
        embeddings = part.embeddings
        embeddings = embeddings[0] if isinstance(embeddings, list) else embeddings
        embeddings.weight = numbers(table.embeddings)
        part.position_encodings.encodings = positions(decoder)
        for layer, block in zip(part.layer, blocks, strict=True):
            set_block(layer, block)
    if decoder.shared:
        spec.decoder.projection.weight = numbers(decoder.embedding.embeddings)
    else:
        set_linear(spec.decoder.projection, decoder.output_dense)
    for register, size in (
        (spec.register_source_vocabulary, model.source_size),
        (spec.register_target_vocabulary, model.target_size),
    ):
        others = map(str, range(len(SPECIAL_TOKENS), size))  # ids stand for the words
        register([*SPECIAL_TOKENS, *others])
    config = spec.config
    config.bos_token, config.eos_token, config.unk_token = (
        SPECIAL_TOKENS[token] for token in (BOS, EOS, UNK)
    )
    config.decoder_start_token = SPECIAL_TOKENS[BOS]
    config.add_source_eos = True
    config.layer_norm_epsilon = decoder.blocks[0].self_norm.epsilon
    spec.validate()
    spec.optimize(quantization=None if precision == "float32" else precision)
    with replacing(path, EXPORTED) as partial:
        os.makedirs(partial, exist_ok=True)
        spec.save(str(partial))


def check_plain(model: Any) -> None:
    """Raises `InputError` unless a model is a Transformer with plain attention."""
    if not isinstance(model, TransformerTranslator):
        raise InputError(
            f"CTranslate2 runs Transformers that translate, and '{model.name}' is a "
            f"{type(model).__name__}."
        )
    for layer in model._flatten_layers():
        if isinstance(layer, MultiHeadAttention):
            for socket in SOCKETS:
                if getattr(layer, socket) is not None:
                    raise InputError(
                        "CTranslate2 runs plain attention only, and that of "
                        f"'{model.name}' has a {socket.replace('_', ' ')}, "
                        f"{type(getattr(layer, socket)).__name__}."
                    )


def numbers(values: Any) -> np.ndarray:
    return ops.convert_to_numpy(values).astype("float32")


def positions(decoder: Any) -> np.ndarray:
    """Encodings of all positions, float32 `(POSITIONS, model_dim)`."""
    return numbers(decoder.positions(ops.zeros((1, POSITIONS, decoder.model_dim))))[0]


def set_block(layer: Any, block: keras.layers.Layer) -> None:
    """Copies the weights of a block of the encoder or decoder."""
    is_decoder = hasattr(block, "cross_attention")
    attention = block.self_attention if is_decoder else block.attention
    norm = block.self_norm if is_decoder else block.attention_norm
    # CTranslate2 has one matrix for the projections of self-attention, and one for the
    # keys and values of cross-attention.
    projections = attention.query_dense, attention.key_dense, attention.value_dense
    set_linear(layer.self_attention.linear[0], *projections)
    set_linear(layer.self_attention.linear[1], attention.output_dense)
    set_norm(layer.self_attention.layer_norm, norm)
    if is_decoder:
        cross, target = block.cross_attention, layer.attention
        set_linear(target.linear[0], cross.query_dense)
        set_linear(target.linear[1], cross.key_dense, cross.value_dense)
        set_linear(target.linear[2], cross.output_dense)
        set_norm(target.layer_norm, block.cross_norm)
    set_linear(layer.ffn.linear_0, block.feedforward.hidden_dense)
    set_linear(layer.ffn.linear_1, block.feedforward.output_dense)
    set_norm(layer.ffn.layer_norm, block.feedforward.norm)


def set_linear(spec: Any, *layers: keras.layers.Dense) -> None:
    """Copies dense layers, stacked along the outputs, which are rows in CTranslate2."""
    spec.weight = np.concatenate([numbers(x.kernel).T for x in layers])
    spec.bias = np.concatenate([numbers(x.bias) for x in layers])


def set_norm(spec: Any, layer: keras.layers.LayerNormalization) -> None:
    spec.gamma, spec.beta = numbers(layer.gamma), numbers(layer.beta)
