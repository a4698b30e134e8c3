from typing import Any

import numpy as np

from keras_caption.apps.convert.assignment import check_fixed
from keras_caption.apps.convert.luo import build, pair_words
from keras_caption.base.errors import InputError
from keras_caption.models import AoANet


def convert_aoanet(
    tensors: dict[str, np.ndarray], words: list[str], options: dict[str, Any]
) -> AoANet:
    """Converts a checkpoint of the authors' code to an AoANet.

    Index 0 of their vocabulary serves as BOS, EOS and PAD, and becomes these three
    tokens. Their word UNK becomes UNK, which is never generated, as in their beam
    search.

    Args:
        tensors: dict from name to NumPy array, the state dict of their `AoAModel`.
        words: List of str, their vocabulary from index 1 on.
        options: dict, the options `opt` of the training.

    Returns:
        `keras_caption.models.AoANet`.

    Raises:
        InputError: If a model with these options cannot be converted, or if tensors
            are missing, unknown, not finite or of another shape; the message names all
            of them.
    """
    sizes = _sizes(options)
    return build(AoANet, sizes, _shapes, _pair, tensors, words, name="aoanet")


def _sizes(options):
    """Returns the constructor arguments of a model with these options."""
    released = {
        "caption_model": "aoa",
        "use_multi_head": 2,
        "multi_head_scale": 1,
        "mean_feats": 1,
        "logit_layers": 1,
        "use_bn": 0,
        "out_res": 0,
        "refine": 1,
        "refine_aoa": 1,
        "use_ff": 0,
        "decoder_type": "AoA",
    }
    check_fixed(options, released, "models")
    try:
        return {
            "region_dim": options.get("att_feat_size", 2048),
            "model_dim": options["rnn_size"],
            "embedding_dim": options["input_encoding_size"],
            "num_heads": options["num_heads"],
            "decoder_heads": options["num_heads"],
            "dropout": options.get("drop_prob_lm", 0.5),
            "aoa_dropout": options.get("dropout_aoa", 0.3),
        }
    except KeyError as error:
        raise InputError(f"The options lack {error}.") from None


def _shapes(sizes, words):
    dim = sizes["model_dim"]
    return {
        "att_embed.0.weight": (dim, sizes["region_dim"]),
        "ctx2att.weight": (2 * dim, dim),
        "embed.0.weight": (words + 1, sizes["embedding_dim"]),
    }


def _pair(assignment, model, words):
    take, dense, norm = assignment.take, assignment.dense, assignment.norm
    dense(model.encoder.get_layer("region_embedding"), "att_embed.0")
    for i in range(model.num_layers):
        block, name = model.encoder.get_layer(f"refining_{i}"), f"refiner.layers.{i}"
        attention = block.attention
        for j, part in enumerate(("query", "key", "value")):
            dense(getattr(attention, f"{part}_dense"), f"{name}.self_attn.linears.{j}")
        dense(attention.gate.dense, f"{name}.self_attn.aoa_layer.0")
        norm(block.attention_norm, f"{name}.sublayer.0.norm")
    norm(model.encoder.get_layer("refined"), "refiner.norm")

    decoder, dim = model.decoder, model.model_dim
    attention = decoder.attention
    norm(decoder.query_norm, "core.attention.norm")
    dense(attention.query_dense, "core.attention.linears.0")
    dense(decoder.gate.dense, "core.att2ctx.0")
    # `ctx2att` of the checkpoint computes values (the first half) and keys.
    both = take("ctx2att.weight", (2 * dim, dim)), take("ctx2att.bias", (2 * dim,))
    for half, layer in enumerate((attention.value_dense, attention.key_dense)):
        part = slice(half * dim, (half + 1) * dim)
        assignment.add(layer.kernel, both[0][part].T)
        assignment.add(layer.bias, both[1][part])

    assignment.lstm(decoder.cell, "core.att_lstm")

    pair_words(
        assignment,
        words,
        model.vocabulary,
        (decoder.embedding, "embed.0"),
        (decoder.output_dense, "logit"),
        scale=model.embedding_dim**0.5,  # their code does not scale embeddings
    )
