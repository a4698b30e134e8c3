import base64
import dataclasses
import re

import numpy as np

from keras_caption.apps.convert.assignment import Assignment, check_fixed, check_shapes
from keras_caption.apps.convert.luo import MISSING_LOGIT
from keras_caption.base.errors import InputError
from keras_caption.formats.marian import MarianFolder
from keras_caption.formats.sentencepiece_models import (
    CONTROL,
    NORMAL,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    parse_model,
)
from keras_caption.models import TransformerTranslator
from keras_caption.models.constructors import check_arguments, parameters_of
from keras_caption.text import BOS, EOS, PAD, UNK, SubwordTokenizer
from keras_caption.text.tokenizer import SPECIAL_TOKENS

# Options that change what a model computes, with the only value that is supported.
FIXED = {
    "scale_embedding": True,
    "share_encoder_decoder_embeddings": True,
    "tie_word_embeddings": True,
    "normalize_before": False,
    "normalize_embedding": False,
    "add_final_layer_norm": False,
}
ACTIVATIONS = {"relu": "relu", "swish": "swish", "silu": "swish", "gelu": "gelu"}
# Copies of the shared table, and tables of sinusoids, in older files.
COPIES = (
    "model.encoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
    "lm_head.weight",
)
SINUSOIDS = "embed_positions.weight"
# A target language, with which a sentence starts in multilingual models.
LANGUAGE = re.compile(">>.+<<")
SPACE = "\u2581"  # SentencePiece puts one in front of a text


def convert_marian(folder: MarianFolder) -> TransformerTranslator:
    """Converts a MarianMT to a TransformerTranslator.

    Marian's `</s>` becomes EOS, its `<unk>` UNK, and its `<pad>`, with which decoding
    starts, BOS. The logit of `<pad>` is kept, as in Marian's `forward`; its `generate`
    removes it. Marian's position encodings have all sines before all cosines, ours
    alternate, so that the channels of the model are reordered.

    Args:
        folder: `keras_caption.formats.marian.MarianFolder`.

    Returns:
        `keras_caption.models.TransformerTranslator`.

    Raises:
        InputError: If a model with this configuration cannot be converted, or if
            tensors are missing, unknown, not finite or of another shape; the message
            names all of them.
    """
    config = folder.config
    check_fixed(config, FIXED, "a Marian")
    tensors = _distinct_tensors(folder.tensors)
    rows = _their_rows(folder.ids, config)
    sizes = _sizes(config)
    try:
        check_arguments(parameters_of(TransformerTranslator), sizes)
    except InputError as error:
        raise InputError(f"The configuration describes no model: {error}") from None
    dim = sizes["model_dim"]
    expected = {
        "model.shared.weight": (len(folder.ids), dim),
        "model.encoder.layers.0.fc1.weight": (sizes["feedforward_dim"], dim),
        "model.decoder.layers.0.fc1.weight": (sizes["decoder_feedforward_dim"], dim),
    }
    for stack, key in (("encoder", "num_layers"), ("decoder", "decoder_layers")):
        last = f"model.{stack}.layers.{sizes[key] - 1}.self_attn.q_proj.weight"
        expected[last] = (dim, dim)
    check_shapes(tensors, expected)
    names = [name for name, _ in sorted(folder.ids.items(), key=lambda item: item[1])]
    pieces = [names[i] for i in rows[len(SPECIAL_TOKENS) :]]
    model = TransformerTranslator(
        make_tokenizer(folder.source, pieces),
        make_tokenizer(folder.target, pieces),
        decoding=dataclasses.replace(
            TransformerTranslator.default_decoding(),
            length_penalty=1.0,
            length_offset=0.0,
            allow_unk=True,
            renormalize=True,
        ),
        name="marian",
        **sizes,
    )
    assignment = Assignment(tensors)
    _pair(assignment, model, rows)
    assignment.run("its configuration")
    return model


def _distinct_tensors(tensors):
    """Returns the tensors that are neither copies of another tensor nor constants."""
    shared = tensors.get("model.shared.weight")
    for name in COPIES:
        if name in tensors and not np.array_equal(tensors[name], shared):
            raise InputError(
                f"The checkpoint's {name} should equal model.shared.weight: only tied "
                "embeddings can be converted."
            )
    return {
        name: x
        for name, x in tensors.items()
        if name not in COPIES and not name.endswith(SINUSOIDS)
    }


def _their_rows(ids, config):
    """Returns Marian's id of each of our tokens; PAD takes that of `<pad>`."""
    pad, eos = config["pad_token_id"], config["eos_token_id"]
    unk = ids.get("<unk>")
    if sorted(ids.values()) != list(range(len(ids))):
        raise InputError(
            f"The {len(ids):,} ids of vocab.json should be 0 to {len(ids) - 1:,}."
        )
    if unk is None or ids.get("<pad>") != pad or ids.get("</s>") != eos:
        raise InputError(
            f"vocab.json should hold <unk>, <pad> at pad_token_id={pad} and </s> at "
            f"eos_token_id={eos}."
        )
    if config["decoder_start_token_id"] != pad:
        raise InputError(
            "Only a Marian whose decoder starts with <pad> can be converted; "
            f"decoder_start_token_id={config['decoder_start_token_id']}."
        )
    special = {PAD: pad, BOS: pad, EOS: eos, UNK: unk}
    rest = [i for i in range(len(ids)) if i not in special.values()]
    return np.array([special[i] for i in range(len(special))] + rest)


def _sizes(config):
    """Returns the constructor arguments of a model with this configuration."""
    activation = config["activation_function"]
    if activation not in ACTIVATIONS:
        raise InputError(
            f"activation_function={activation!r:.60} is none of "
            f"{', '.join(ACTIVATIONS)}: it cannot be converted."
        )
    return {
        "num_layers": config["encoder_layers"],
        "decoder_layers": config["decoder_layers"],
        "model_dim": config["d_model"],
        "num_heads": config["encoder_attention_heads"],
        "decoder_heads": config["decoder_attention_heads"],
        "feedforward_dim": config["encoder_ffn_dim"],
        "decoder_feedforward_dim": config["decoder_ffn_dim"],
        "activation": ACTIVATIONS[activation],
        "dropout": config["dropout"],
        "attention_dropout": config["attention_dropout"],
        "activation_dropout": config["activation_dropout"],
        "norm_epsilon": 1e-5,
        "shared_embeddings": True,
        "logit_bias": True,
    }


def make_tokenizer(model: bytes, pieces: list[str]) -> SubwordTokenizer:
    """Makes a tokenizer that splits like a SentencePiece model, with other ids.

    Args:
        model: bytes, the SentencePiece model.
        pieces: List of str, the pieces by id, from id 4 on. Pieces that the model lacks
            never result from splitting, except for target languages such as
            `">>fra<<"`; other pieces of the model become UNK.
    """
    proto = parse_model(model)
    known = {
        piece.piece: (piece.piece, piece.score, piece.type)
        for piece in proto.pieces
        if piece.type in (NORMAL, USER_DEFINED)
    }
    # Marian's tokenizer reads a language at the beginning of a text only.
    known |= {
        piece: (f"{SPACE}{piece}", 0.0, USER_DEFINED)
        for piece in pieces
        if LANGUAGE.fullmatch(piece)
    }
    special = [
        (piece, 0.0, UNKNOWN if i == UNK else CONTROL)
        for i, piece in enumerate(SPECIAL_TOKENS)
    ]
    listed = [known.pop(piece, (piece, 0.0, UNUSED)) for piece in pieces]
    reordered = [*special, *listed, *known.values()]
    del proto.pieces[:]
    for piece, score, kind in reordered:
        proto.pieces.add(piece=piece, score=score, type=kind)
    spec = proto.trainer_spec
    spec.pad_id, spec.bos_id, spec.eos_id, spec.unk_id = PAD, BOS, EOS, UNK
    spec.pad_piece, spec.bos_piece, spec.eos_piece, spec.unk_piece = SPECIAL_TOKENS
    spec.vocab_size = len(reordered)
    return SubwordTokenizer(
        base64.b64encode(proto.SerializeToString()).decode(),
        size=len(special) + len(listed),
    )


def _pair(assignment, model, rows):
    """Pairs the variables of the model with the tensors."""
    dim = model.model_dim
    # Marian's channel for each of ours: sine i moves to 2 i, cosine i to 2 i + 1.
    channels = np.arange(dim).reshape(2, -1).T.ravel()
    take, add = assignment.take, assignment.add

    def dense(layer, name, reads=False, writes=False):
        """Pairs a dense layer that reads or writes the model's channels."""
        units_in, units_out = layer.kernel.shape
        kernel = take(f"{name}.weight", (units_out, units_in)).T
        bias = take(f"{name}.bias", (units_out,))
        if reads:
            kernel = kernel[channels]
        if writes:
            kernel, bias = kernel[:, channels], bias[channels]
        add(layer.kernel, kernel)
        add(layer.bias, bias)

    def norm(layer, name):
        add(layer.gamma, take(f"{name}.weight", (dim,))[channels])
        add(layer.beta, take(f"{name}.bias", (dim,))[channels])

    def attention(layer, norm_layer, name):
        for part in "query", "key", "value":
            dense(getattr(layer, f"{part}_dense"), f"{name}.{part[0]}_proj", reads=True)
        dense(layer.output_dense, f"{name}.out_proj", writes=True)
        norm(norm_layer, f"{name}_layer_norm")

    def feedforward(layer, name):
        dense(layer.hidden_dense, f"{name}.fc1", reads=True)
        dense(layer.output_dense, f"{name}.fc2", writes=True)
        norm(layer.norm, f"{name}.final_layer_norm")

    count = len(rows) - 1  # Marian has no row for PAD
    table = take("model.shared.weight", (count, dim))[rows][:, channels]
    table[PAD] = 0.0
    bias = take("final_logits_bias", (1, count))[0, rows]
    bias[PAD] = MISSING_LOGIT
    add(model.decoder.embedding.embeddings, table)
    add(model.decoder.bias, bias)
    for i in range(model.num_layers):
        block, name = (
            model.encoder.get_layer(f"encoder_{i}"),
            f"model.encoder.layers.{i}",
        )
        attention(block.attention, block.attention_norm, f"{name}.self_attn")
        feedforward(block.feedforward, name)
    for i, block in enumerate(model.decoder.blocks):
        name = f"model.decoder.layers.{i}"
        attention(block.self_attention, block.self_norm, f"{name}.self_attn")
        attention(block.cross_attention, block.cross_norm, f"{name}.encoder_attn")
        feedforward(block.feedforward, name)
