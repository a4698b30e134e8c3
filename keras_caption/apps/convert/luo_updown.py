from typing import Any

import numpy as np

from keras_caption.apps.convert.luo import build, check_options, decoding_of, pair_words
from keras_caption.base.errors import InputError
from keras_caption.models import UpDown


def convert_luo_updown(
    tensors: dict[str, np.ndarray], words: list[str], options: dict[str, Any]
) -> UpDown:
    """Converts a bottom-up and top-down captioner of Luo's toolkit to an UpDown.

    If `fc` features have the size of regions, they are assumed to be the mean of the
    regions, as the toolkit's scripts compute them. Otherwise the model reads them as
    `image_vector`.

    Args:
        tensors: dict from name to NumPy array, the state dict of `UpDownModel`.
        words: List of str, their vocabulary from index 1 on.
        options: dict, the options `opt` of the training.

    Returns:
        `keras_caption.models.UpDown`.

    Raises:
        InputError: If a model with these options cannot be converted, or if tensors
            are missing, unknown, not finite or of another shape; the message names all
            of them.
    """
    check_options(options, ("updown", "topdown"))
    return build(
        UpDown,
        _sizes(options),
        _shapes,
        _pair,
        tensors,
        words,
        decoding=decoding_of(options),
        name="luo_updown",
    )


def _sizes(options):
    """Returns the constructor arguments of a model with these options."""
    region_dim = options.get("att_feat_size", 2048)
    vector_dim = options.get("fc_feat_size", 2048)
    for name in ("rnn_size", "input_encoding_size", "att_hid_size"):
        if name not in options:
            raise InputError(f"The options lack {name!r}.")
    return {
        "region_dim": region_dim,
        "image_vector_dim": None if vector_dim == region_dim else vector_dim,
        "model_dim": options["rnn_size"],
        "embedding_dim": options["input_encoding_size"],
        "attention_dim": options["att_hid_size"],
        "dropout": options.get("drop_prob_lm", 0.5),
    }


def _shapes(sizes, words):
    dim, region_dim = sizes["model_dim"], sizes["region_dim"]
    return {
        "att_embed.0.weight": (dim, region_dim),
        "fc_embed.0.weight": (dim, sizes["image_vector_dim"] or region_dim),
        "ctx2att.weight": (sizes["attention_dim"], dim),
        "embed.0.weight": (words + 1, sizes["embedding_dim"]),
    }


def _pair(assignment, model, words):
    dense, decoder = assignment.dense, model.decoder
    dense(model.encoder.get_layer("region_embedding"), "att_embed.0")
    dense(model.encoder.get_layer("image_embedding"), "fc_embed.0")
    attention, name = decoder.attention, "core.attention"
    dense(attention.key_dense, "ctx2att")
    dense(attention.query_dense, f"{name}.h2att")
    weight = f"{name}.alpha_net.weight"
    vectors = attention.score.vectors
    assignment.add(vectors, assignment.take(weight, vectors.shape))
    assignment.take(f"{name}.alpha_net.bias", (1,))  # a constant, which softmax cancels
    # The toolkit's cell reads context, image and word; ours reads the word first.
    dim, width = model.model_dim, model.embedding_dim
    word_first = np.roll(np.arange(2 * dim + width), width)
    assignment.lstm(decoder.cell, "core.att_lstm", rows=word_first)
    assignment.lstm(decoder.context_cell, "core.lang_lstm")
    pair_words(
        assignment,
        words,
        model.vocabulary,
        (decoder.embedding, "embed.0"),
        (decoder.output_dense, "logit"),
        scale=model.embedding_dim**0.5,  # their code does not scale embeddings
    )
