import dataclasses

import numpy as np

from keras_caption.apps.convert.assignment import Assignment, check_shapes
from keras_caption.base.errors import InputError
from keras_caption.formats.joeynmt import JoeyFolder
from keras_caption.models import TransformerTranslator
from keras_caption.models.constructors import check_arguments, parameters_of
from keras_caption.text import BOS, EOS, PAD, UNK, Vocabulary

SPECIAL = {"<unk>": UNK, "<pad>": PAD, "<s>": BOS, "</s>": EOS}
SINUSOIDS = "encoder.pe.pe", "decoder.pe.pe"


def convert_joeynmt(folder: JoeyFolder) -> TransformerTranslator:
    """Converts a JoeyNMT Transformer to a TransformerTranslator.

    Args:
        folder: `keras_caption.formats.joeynmt.JoeyFolder`, with word vocabularies.

    Returns:
        `keras_caption.models.TransformerTranslator`. Texts are split as
        `keras_caption.text.Vocabulary` does it.

    Raises:
        InputError: If a model with this configuration cannot be converted, or if
            tensors are missing, unknown, not finite or of another shape; the message
            names all of them.
    """
    sizes = _sizes(folder.model)
    try:
        check_arguments(parameters_of(TransformerTranslator), sizes)
    except InputError as error:
        raise InputError(f"The configuration describes no model: {error}") from None
    tensors = {n: x for n, x in folder.tensors.items() if n not in SINUSOIDS}
    tied = "decoder.output_layer.weight"
    if sizes["tied_softmax"]:
        missing = np.zeros(0)
        embedding = tensors.get("trg_embed.lut.weight", missing)
        if not np.array_equal(tensors.pop(tied, missing), embedding):
            raise InputError(
                f"The checkpoint's {tied} should equal trg_embed.lut.weight, as "
                "tied_softmax says."
            )
    dim = sizes["model_dim"]
    feedforward = "layers.0.feed_forward.pwff_layer.0.weight"
    expected = {
        "src_embed.lut.weight": (len(folder.source), dim),
        "trg_embed.lut.weight": (len(folder.target), dim),
        f"encoder.{feedforward}": (sizes["feedforward_dim"], dim),
        f"decoder.{feedforward}": (sizes["decoder_feedforward_dim"], dim),
    }
    check_shapes(tensors, expected)
    vocabularies = []
    rows = []
    for tokens in (folder.source, folder.target):
        words = [token for token in tokens if token not in SPECIAL]
        vocabularies.append(Vocabulary(words))
        theirs = {token: i for i, token in enumerate(tokens)}
        special = sorted(SPECIAL, key=lambda token: SPECIAL[token])
        rows.append(np.array([theirs[token] for token in [*special, *words]]))
    decoding = dataclasses.replace(
        TransformerTranslator.default_decoding(), allow_unk=True
    )
    source, target = vocabularies
    model = TransformerTranslator(
        source, target, decoding=decoding, name="joeynmt", **sizes
    )
    assignment = Assignment(tensors)
    _pair(assignment, model, rows)
    assignment.run("its configuration")
    return model


def _sizes(model):
    """Returns the constructor arguments of a model with this configuration."""
    encoder, decoder = model["encoder"], model["decoder"]
    sides = {"encoder": encoder, "decoder": decoder}
    for name, side in sides.items():
        for option, value in (("type", "transformer"), ("alpha", 1.0)):
            if side.get(option, value) != value:
                raise InputError(
                    f"Only a JoeyNMT with {option}={value} can be converted; its "
                    f"{name} has {option}={side[option]!r:.40}."
                )
        if not side["embeddings"].get("scale", False):
            raise InputError(
                "Only a JoeyNMT with scaled embeddings can be converted; those of its "
                f"{name} are not."
            )
    # JoeyNMT's defaults differ: pre-norm in the encoder, post-norm in the decoder.
    positions = {side.get("layer_norm") for side in sides.values()}
    if len(positions) > 1 or not positions <= {"pre", "post"}:
        raise InputError(
            "Only a JoeyNMT whose encoder and decoder have the same layer_norm, pre or "
            "post, can be converted."
        )
    if model.get("initializer") == "xavier_normal":
        raise InputError(
            "A JoeyNMT with initializer=xavier_normal scales residuals (DeepNet): it "
            "cannot be converted."
        )
    if model.get("tied_embeddings"):
        raise InputError("A JoeyNMT with tied_embeddings cannot be converted.")
    return {
        "num_layers": encoder["num_layers"],
        "decoder_layers": decoder["num_layers"],
        "model_dim": encoder["hidden_size"],
        "num_heads": encoder["num_heads"],
        "decoder_heads": decoder["num_heads"],
        "feedforward_dim": encoder["ff_size"],
        "decoder_feedforward_dim": decoder["ff_size"],
        "activation": encoder.get("activation", "relu"),
        "decoder_activation": decoder.get("activation", "relu"),
        "dropout": encoder.get("dropout", 0.1),
        "activation_dropout": encoder.get("dropout", 0.1),
        "norm_position": positions.pop(),
        "norm_epsilon": 1e-6,
        "tied_softmax": bool(model.get("tied_softmax", False)),
    }


def _pair(assignment, model, rows):
    """Pairs the variables of the model with the tensors."""
    take, add, dense, dim = (
        assignment.take,
        assignment.add,
        assignment.dense,
        model.model_dim,
    )

    def norm(layer, name):
        add(layer.gamma, take(f"{name}.weight", (dim,)))
        add(layer.beta, take(f"{name}.bias", (dim,)))

    def attention(layer, name):
        for part in "query", "key", "value":
            dense(getattr(layer, f"{part}_dense"), f"{name}.{part[0]}_layer")
        dense(layer.output_dense, f"{name}.output_layer")

    def feedforward(layer, name):
        dense(layer.hidden_dense, f"{name}.feed_forward.pwff_layer.0")
        dense(layer.output_dense, f"{name}.feed_forward.pwff_layer.3")
        norm(layer.norm, f"{name}.feed_forward.layer_norm")

    source, target = rows
    decoder = model.decoder
    embedding = model.encoder.get_layer("source_embedding")
    table = take("src_embed.lut.weight", (len(source), dim))
    add(embedding.embeddings, table[source])
    table = take("trg_embed.lut.weight", (len(target), dim))
    add(decoder.embedding.embeddings, table[target])
    if decoder.output_dense is not None:
        kernel = take("decoder.output_layer.weight", (len(target), dim))
        add(decoder.output_dense.kernel, kernel[target].T)
    for i in range(model.num_layers):
        block, name = model.encoder.get_layer(f"encoder_{i}"), f"encoder.layers.{i}"
        attention(block.attention, f"{name}.src_src_att")
        norm(block.attention_norm, f"{name}.layer_norm")
        feedforward(block.feedforward, name)
    for i, block in enumerate(decoder.blocks):
        name = f"decoder.layers.{i}"
        attention(block.self_attention, f"{name}.trg_trg_att")
        attention(block.cross_attention, f"{name}.src_trg_att")
        norm(block.self_norm, f"{name}.x_layer_norm")
        norm(block.cross_norm, f"{name}.dec_layer_norm")
        feedforward(block.feedforward, name)
    if model.norm_position == "pre":
        norm(model.encoder.get_layer("encoded"), "encoder.layer_norm")
        norm(decoder.final_norm, "decoder.layer_norm")
