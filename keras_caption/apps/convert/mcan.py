import numpy as np

from keras_caption.apps.convert.assignment import Assignment
from keras_caption.base.errors import InputError
from keras_caption.models import MCAN
from keras_caption.text import PAD, UNK, QuestionTokenizer
from keras_caption.text.tokenizer import SPECIAL_TOKENS


def convert_mcan(
    tensors: dict[str, np.ndarray],
    tokens: dict[str, int],
    answers: list[str],
    num_heads: int = 8,
) -> MCAN:
    """Converts a checkpoint of the authors' code to an MCAN.

    All sizes except the number of heads follow from the tensors. The model is the
    encoder-decoder form, with one glimpse.

    Args:
        tensors: dict from name to NumPy array, the state dict of their `Net`.
        tokens: dict, their `token_to_ix`: from word to id, with PAD at 0, UNK at 1.
        answers: List of str, their answers by id.
        num_heads: int, their `MULTI_HEAD`, which tensors do not show. Defaults to 8,
            as of the released models.

    Returns:
        `keras_caption.models.MCAN`.

    Raises:
        InputError: If ids are not consecutive, or if tensors are missing, unknown, not
            finite or of another shape; the message names all of them.
    """
    # `nn.DataParallel` adds this prefix.
    tensors = {name.removeprefix("module."): x for name, x in tensors.items()}
    words = _words(tokens)
    sizes = _sizes(tensors)
    for what, count, expected in (
        ("tokens", len(tokens), sizes.pop("tokens")),
        ("answers", len(answers), sizes.pop("answers")),
    ):
        if count != expected:
            raise InputError(
                f"The checkpoint is of {expected:,} {what}; there are {count:,}."
            )
    model = MCAN(
        answers, QuestionTokenizer(words), num_heads=num_heads, name="mcan", **sizes
    )
    assignment = Assignment(tensors)
    _pair(assignment, model)
    assignment.run("MCAN")
    return model


def _words(tokens):
    """Returns the words of the checkpoint from id 2 on."""
    by_id = {i: word for word, i in tokens.items()}
    if sorted(by_id) != list(range(len(tokens))) or len(tokens) < 2:
        raise InputError(
            f"The {len(tokens):,} tokens should have the ids 0 to {len(tokens) - 1:,}."
        )
    if (by_id[0], by_id[1]) != ("PAD", "UNK"):
        raise InputError(
            "Tokens 0 and 1 should be PAD and UNK. Received: "
            f"{by_id[0]!r:.40} and {by_id[1]!r:.40}"
        )
    return [by_id[i] for i in range(2, len(by_id))]


def _sizes(tensors):
    """Returns the constructor arguments of a model with these tensors."""

    def shape(name, dims):
        sizes = tensors[name].shape if name in tensors else ()
        if len(sizes) != dims:
            actual = sizes if name in tensors else "nothing"
            raise InputError(
                f"The checkpoint's {name} should have {dims} dimensions, received "
                f"{actual}: it is not a checkpoint of MCAN."
            )
        return sizes

    model_dim, region_dim = shape("img_feat_linear.weight", 2)
    token_count, embedding_dim = shape("embedding.weight", 2)
    layers = 0
    while f"backbone.enc_list.{layers}.norm1.a_2" in tensors:
        layers += 1
    answer_count, fusion_dim = shape("proj.weight", 2)
    feedforward_dim = shape("backbone.enc_list.0.ffn.mlp.linear.weight", 2)[1]
    pooling_dim = shape("attflat_img.mlp.linear.weight", 2)[1]
    # Compared before the model allocates memory.
    for name, expected in (
        ("lstm.weight_ih_l0", (4 * model_dim, embedding_dim)),
        ("backbone.enc_list.0.mhatt.linear_q.weight", (model_dim, model_dim)),
        ("backbone.enc_list.0.ffn.mlp.linear.weight", (model_dim, feedforward_dim)),
        ("attflat_img.mlp.fc.linear.weight", (pooling_dim, model_dim)),
        ("attflat_img.linear_merge.weight", (fusion_dim, model_dim)),
    ):
        if shape(name, 2) != expected:
            raise InputError(
                f"The checkpoint's {name} should have shape {expected}, received "
                f"{shape(name, 2)}."
            )
    return {
        "region_dim": region_dim,
        "num_layers": max(layers, 1),
        "model_dim": model_dim,
        "feedforward_dim": feedforward_dim,
        "embedding_dim": embedding_dim,
        "pooling_dim": pooling_dim,
        "fusion_dim": fusion_dim,
        "tokens": token_count,
        "answers": answer_count,
    }


def _pair(assignment, model):
    """Pairs the variables of the model with the tensors of the checkpoint."""
    layer, dense, norm = model.encoder.get_layer, assignment.dense, assignment.norm

    def attention(ours, name):
        for part in ("query", "key", "value"):
            dense(getattr(ours, f"{part}_dense"), f"{name}.linear_{part[0]}")
        dense(ours.output_dense, f"{name}.linear_merge")

    count = len(model.question) - len(SPECIAL_TOKENS)
    table = assignment.take("embedding.weight", (count + 2, model.embedding_dim))
    ours = np.zeros((len(model.question), model.embedding_dim), "float32")
    ours[[PAD, UNK]] = table[:2]
    ours[len(SPECIAL_TOKENS) :] = table[2:]
    assignment.add(layer("embedding").embeddings, ours)
    assignment.lstm(layer("lstm").cell, "lstm", "_l0")
    dense(layer("region_embedding"), "img_feat_linear")
    for i in range(model.num_layers):
        for block, name in (
            (layer(f"question_{i}"), f"backbone.enc_list.{i}"),
            (layer(f"regions_{i}"), f"backbone.dec_list.{i}"),
        ):
            norms = [block.attention_norm]
            if block.guided_attention is None:
                attention(block.attention, f"{name}.mhatt")
            else:
                attention(block.attention, f"{name}.mhatt1")
                attention(block.guided_attention, f"{name}.mhatt2")
                norms.append(block.guided_norm)
            norms.append(block.feedforward_norm)
            for number, layer_norm in enumerate(norms, start=1):
                norm(layer_norm, f"{name}.norm{number}")
            dense(block.hidden_dense, f"{name}.ffn.mlp.fc.linear")
            dense(block.output_dense, f"{name}.ffn.mlp.linear")
    for ours, theirs in (("question", "lang"), ("regions", "img")):
        pooling, name = layer(f"pooled_{ours}"), f"attflat_{theirs}"
        dense(pooling.hidden_dense, f"{name}.mlp.fc.linear")
        dense(pooling.score_dense, f"{name}.mlp.linear")
        dense(pooling.output_dense, f"{name}.linear_merge")
    norm(layer("fused_norm"), "proj_norm")
    dense(layer("logits"), "proj")
