from typing import Any

import numpy as np

from keras_caption.apps.convert.luo import build, check_options, decoding_of, pair_words
from keras_caption.base.errors import InputError
from keras_caption.models import NGSAN


def convert_luo_transformer(
    tensors: dict[str, np.ndarray], words: list[str], options: dict[str, Any]
) -> NGSAN:
    """Converts a Transformer of Luo's toolkit to an NGSAN without NSA and GSA.

    Args:
        tensors: dict from name to NumPy array, the state dict of `TransformerModel`.
        words: List of str, their vocabulary from index 1 on.
        options: dict, the options `opt` of the training.

    Returns:
        `keras_caption.models.NGSAN`, pre-norm.

    Raises:
        InputError: If a model with these options cannot be converted, or if tensors
            are missing, unknown, not finite or of another shape; the message names all
            of them.
    """
    check_options(options, ("transformer",))
    # A constant table of sinusoids.
    tensors = {n: x for n, x in tensors.items() if n != "model.tgt_embed.1.pe"}
    return build(
        NGSAN,
        _sizes(options),
        _shapes,
        _pair,
        tensors,
        words,
        decoding=decoding_of(options),
        name="luo_transformer",
    )


def _sizes(options):
    """Returns the constructor arguments of a model with these options."""

    def get(name, older, default=None):
        """Returns an option, or its predecessor in versions before `N_enc`."""
        if name in options:
            return options[name]
        if older is None:
            return default
        if older not in options:
            raise InputError(f"The options lack {name!r}.")
        return options[older]

    return {
        "region_dim": options.get("att_feat_size", 2048),
        "num_layers": get("N_enc", "num_layers"),
        "decoder_layers": get("N_dec", "num_layers"),
        "model_dim": get("d_model", "input_encoding_size"),
        "feedforward_dim": get("d_ff", "rnn_size"),
        "num_heads": get("num_att_heads", None, 8),
        "dropout": get("dropout", None, 0.1),
        "activation_dropout": get("dropout", None, 0.1),
        "region_dropout": options.get("drop_prob_lm", 0.5),
        "norm_position": "pre",
        "norm": "unbiased",
    }


def _shapes(sizes, words):
    dim = sizes["model_dim"]
    hidden = "model.encoder.layers.0.feed_forward.w_1.weight"
    shapes = {
        "att_embed.0.weight": (dim, sizes["region_dim"]),
        "model.tgt_embed.0.lut.weight": (words + 1, dim),
        hidden: (sizes["feedforward_dim"], dim),
    }
    for stack, count in (("encoder", "num_layers"), ("decoder", "decoder_layers")):
        last = f"model.{stack}.layers.{sizes[count] - 1}"
        shapes[f"{last}.self_attn.linears.0.weight"] = (dim, dim)
    return shapes


def _pair(assignment, model, words):
    dense, norm = assignment.dense, assignment.norm
    dense(model.encoder.get_layer("region_embedding"), "att_embed.0")

    def attention(layer, name):
        for i, part in enumerate(("query", "key", "value", "output")):
            dense(getattr(layer, f"{part}_dense"), f"{name}.linears.{i}")

    def feedforward(layer, name, norm_name):
        dense(layer.hidden_dense, f"{name}.feed_forward.w_1")
        dense(layer.output_dense, f"{name}.feed_forward.w_2")
        norm(layer.norm, norm_name)

    for i in range(model.num_layers):
        block, name = (
            model.encoder.get_layer(f"encoder_{i}"),
            f"model.encoder.layers.{i}",
        )
        attention(block.attention, f"{name}.self_attn")
        norm(block.attention_norm, f"{name}.sublayer.0.norm")
        feedforward(block.feedforward, name, f"{name}.sublayer.1.norm")
    norm(model.encoder.get_layer("encoded"), "model.encoder.norm")
    for i, block in enumerate(model.decoder.blocks):
        name = f"model.decoder.layers.{i}"
        attention(block.self_attention, f"{name}.self_attn")
        attention(block.cross_attention, f"{name}.src_attn")
        norm(block.self_norm, f"{name}.sublayer.0.norm")
        norm(block.cross_norm, f"{name}.sublayer.1.norm")
        feedforward(block.feedforward, name, f"{name}.sublayer.2.norm")
    norm(model.decoder.final_norm, "model.decoder.norm")
    pair_words(
        assignment,
        words,
        model.vocabulary,
        (model.decoder.embedding, "model.tgt_embed.0.lut"),
        (model.decoder.output_dense, "model.generator.proj"),
    )
