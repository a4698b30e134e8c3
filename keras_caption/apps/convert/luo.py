"""Shared conversion of the captioners of Luo's ImageCaptioning.pytorch."""

from collections.abc import Callable
from typing import Any, TypeVar

import keras
import numpy as np

from keras_caption.apps.convert.assignment import Assignment, check_fixed, check_shapes
from keras_caption.base.errors import InputError
from keras_caption.decoding import Decoding
from keras_caption.models.constructors import check_arguments, parameters_of
from keras_caption.text import BOS, PAD, UNK, Vocabulary

Captioner = TypeVar("Captioner", bound=keras.Model)

# Logit of tokens that the original lacks, whose probability becomes 0.
MISSING_LOGIT = -100.0

# Options that change what a model computes, with the only value that is supported.
FIXED = {
    "logit_layers": 1,
    "use_bn": 0,
    "norm_att_feat": 0,
    "use_box": 0,
    "rnn_type": "lstm",
}
# Options of the training, which are printed and otherwise ignored.
TRAINING = frozenset(
    """
    max_epochs batch_size grad_clip grad_clip_mode grad_clip_value
    self_critical_after seq_per_img optim learning_rate learning_rate_decay_start
    learning_rate_decay_every learning_rate_decay_rate optim_alpha optim_beta
    optim_epsilon weight_decay label_smoothing noamopt noamopt_warmup noamopt_factor
    reduce_on_plateau reduce_on_plateau_factor reduce_on_plateau_patience use_warmup
    scheduled_sampling_start scheduled_sampling_increase_every
    scheduled_sampling_increase_prob scheduled_sampling_max_prob cider_reward_weight
    bleu_reward_weight structure_loss_weight structure_after structure_loss_type
    struc_use_logsoftmax entropy_reward_weight self_cider_reward_weight use_ppo
    ppo_old_model_path ppo_cliprange ppo_kl_coef train_sample_n train_sample_method
    train_beam_size sc_sample_method sc_beam_size drop_worst_after drop_worst_rate
    current_lr ss_prob
    """.split()  # noqa: SIM905
)
# Ignored options: files, sizes that tensors have too, evaluation and decoding.
IGNORED = frozenset(
    """
    input_json input_fc_dir input_att_dir input_box_dir input_label_h5
    data_in_memory start_from cached_tokens caption_model num_layers fc_feat_size
    norm_box_feat sample_method beam_size max_length length_penalty group_size
    diversity_lambda temperature decoding_constraint block_trigrams
    remove_bad_endings suppress_UNK unk_idx cached_transformer val_images_use
    save_checkpoint_every save_every_epoch save_history_ckpt checkpoint_path
    language_eval losses_log_every load_best_score id train_only sample_n
    sample_n_method eval_oracle cfg set_cfgs REFORWARD use_fc use_att vocab_size
    seq_length N_enc N_dec d_model d_ff num_att_heads dropout rnn_size
    input_encoding_size att_hid_size att_feat_size drop_prob_lm
    """.split()  # noqa: SIM905
)


def training_options(options: dict[str, Any]) -> dict[str, Any]:
    """Returns the options of the training, which a converted model does not keep."""
    return {name: value for name, value in options.items() if name in TRAINING}


def check_options(options: dict[str, Any], models: tuple[str, ...]) -> None:
    """Refuses options of a model that cannot be converted.

    Args:
        options: dict, `opt` of the training.
        models: Names that `caption_model` may have.

    Raises:
        InputError: If an option has a value that cannot be converted, or is unknown.
    """
    if options.get("caption_model") not in models:
        raise InputError(
            f"The infos should be of caption_model={' or '.join(models)}, not "
            f"{options.get('caption_model')}."
        )
    check_fixed(options, FIXED, "models")
    for name, value in options.items():
        if name not in (*FIXED, *TRAINING, *IGNORED):
            raise InputError(f"opt has an unknown option {name!r}: {value!r:.60}.")


def decoding_of(options: dict[str, Any]) -> Decoding:
    """Converts the options of the toolkit's beam search.

    Args:
        options: dict, `opt` of the training.

    Raises:
        InputError: If `length_penalty` is neither empty, `wu_A` nor `avg_A`.
    """
    value = options.get("length_penalty") or ""
    penalties: dict[str, Any] = {}
    if value:
        kind, _, exponent = str(value).partition("_")
        try:
            penalties = {
                "wu": {"length_penalty": float(exponent)},
                "avg": {"length_penalty": 1.0, "length_offset": 0.0},
            }[kind]
        except (KeyError, ValueError):
            raise InputError(
                "opt should have a length_penalty such as 'wu_0.9' or 'avg_0', not "
                f"{value!r:.60}."
            ) from None
    unk = not options.get("suppress_UNK", 1)
    return Decoding(**penalties, allow_unk=unk)


def build(
    model_class: type[Captioner],
    sizes: dict[str, Any],
    shapes: Callable[[dict[str, Any], int], dict[str, tuple[int, ...]]],
    pair: Callable[[Assignment, Captioner, list[str]], None],
    tensors: dict[str, np.ndarray],
    words: list[str],
    **kwargs: Any,
) -> Captioner:
    """Builds a captioner with the weights of a checkpoint.

    Args:
        model_class: Class of captioners.
        sizes: dict from arguments' names to their values, as the options have them.
        shapes: Function from `sizes` and the number of words to shapes of tensors,
            which are compared before the model allocates memory.
        pair: Function of an `Assignment`, the model and the words, which pairs the
            model's variables with the tensors.
        tensors: dict from name to NumPy array, the state dict.
        words: List of str, their vocabulary from index 1 on. The word UNK becomes the
            token UNK.
        **kwargs: Further arguments of the class.

    Raises:
        InputError: If the sizes describe no model, or if tensors are missing,
            unknown, not finite or of another shape; the message names all of them.
    """
    try:
        check_arguments(parameters_of(model_class), sizes)
        check_shapes(tensors, shapes(sizes, len(words)))
        vocabulary = Vocabulary([word for word in words if word != "UNK"])
        model = model_class(vocabulary, **sizes, **kwargs)
    except (TypeError, ValueError) as error:
        raise InputError(f"The infos describe no model: {error}") from None
    assignment = Assignment(tensors)
    pair(assignment, model, words)
    assignment.run("its options")
    return model


def pair_words(
    assignment: Assignment,
    words: list[str],
    vocabulary: Vocabulary,
    embedding: tuple[keras.layers.Layer, str],
    output: tuple[keras.layers.Layer, str],
    scale: float = 1.0,
) -> None:
    """Pairs embedding and output layer, whose rows are reordered.

    Index 0 of the toolkit's vocabulary serves as BOS, EOS and PAD, and becomes these
    three tokens. Its word UNK becomes UNK.

    Args:
        assignment: `Assignment`.
        words: List of str, their vocabulary from index 1 on.
        vocabulary: `keras_caption.text.Vocabulary`, the model's.
        embedding: `keras_caption.layers.WordEmbedding`, and the name of its tensors.
        output: Dense layer of logits, and the name of its tensors.
        scale: float, factor by which only our layer multiplies embeddings.
    """
    theirs = {word: i for i, word in enumerate(words, start=1)}
    ours = np.zeros(len(vocabulary), "int64")  # EOS at 0
    ours[UNK + 1 :] = [theirs[word] for word in vocabulary.words[UNK + 1 :]]
    ours[UNK] = theirs.get("UNK", 0)
    rows = len(words) + 1
    layer, name = embedding
    table = assignment.take(f"{name}.weight", (rows, layer.embeddings.shape[1]))
    assignment.add(layer.embeddings, table[ours] / scale)
    layer, name = output
    kernel = assignment.take(f"{name}.weight", (rows, layer.kernel.shape[0]))[ours].T
    bias = assignment.take(f"{name}.bias", (rows,))[ours].copy()
    missing = [PAD, BOS] if "UNK" in theirs else [PAD, BOS, UNK]
    bias[missing] = MISSING_LOGIT
    kernel[:, missing] = 0.0
    assignment.add(layer.kernel, kernel)
    assignment.add(layer.bias, bias)
