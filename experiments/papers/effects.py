r"""Tables of ours that take the papers' effects apart.

Sums of values (Area Attention, Eq. 4) make the branch of an attention layer larger than
the residual, in post-norm blocks above all; the papers' Transformers had pre-norm ones.
Rows are compared with the first one, or with `--against` one. The commands of what was
trained are in docs/results/effects.md; these are of the rest:

    C=experiments/configs
    train() {
        python experiments/tables.py --run --table $1 \
            --output_dir saved_models/$1 "${@:2}"
    }
    train effects_areas_characters \
        --cells "post plain,post areas,pre plain,pre areas" -- \
        --config $C/translation/multi30k.py --data_dir multi30k \
        --config.data.max_tokens=256 --config.decoding.max_length=256 --epochs 5
    train effects_areas_video -- --epochs 8 --config.model.model_dim=128 \
        --config.training.decay_after=5 --config.training.learning_rate=1e-3
    train effects_rates -- --config $C/captioning/coco_objects.py --data_dir coco
"""

from keras_caption.papers import CROSS_ENTROPY, SELF_CRITICAL, Published, Table

POSITIONS = ("post", "pre")
NORMS = {
    "SAN": None,
    "N-SAN": "instance",
    "centred only": "instance_centre",
    "scaled only": "instance_scale",
    # With --import experiments/papers/noise.py.
    "noisy": "instance_noisy",
    "noise alone": "noise",
    "three distinct or more": "instance_distinct",
}
RATES = (5e-4, 1.5e-3, 5e-3)  # of coco_objects.py, times 1, 3 and 10
WITHOUT_REWARD = {"self_critical.epochs": 0}


def _row(label, model, overrides, objective=CROSS_ENTROPY, members=1):
    return Published(label, {}, model, overrides, members=members, objective=objective)


def _with_ensembles(models, objectives, overrides):
    """Rows of models and of ensembles of their five seeds."""
    return tuple(
        _row(label.format(model), model, overrides, objective, members)
        for label, members in (("{}", 1), ("five of {}", 5))
        for objective in objectives
        for model in models
    )


def _areas(plain, areas, area_overrides, smaller, same):
    """Rows of every position of norms, without areas and with every kind of them.

    Args:
        plain, areas: Names of the presets without areas and with them.
        area_overrides: Overrides of the rows with areas.
        smaller: float, scale of the output projections that begin smaller.
        same: Overrides of all rows.
    """
    # Of areas of up to S items, the mean size is (S + 1) / 2: 3 of five, 2 of three.
    # "small" is the translators' start, with every output projection at a third.
    kinds = {
        "plain": (plain, {}),
        "small plain": (plain, {"model.initialization": "small"}),
        "areas": (areas, {**area_overrides, "model.area_output_scale": 1.0}),
        "smaller start": (
            areas,
            {**area_overrides, "model.area_output_scale": smaller},
        ),
        "mean values": (areas, {**area_overrides, "model.area_values": "mean"}),
    }
    return tuple(
        _row(
            f"{position} {kind}",
            model,
            {"model.norm_position": position, **overrides, **same},
        )
        for position in POSITIONS
        for kind, (model, overrides) in kinds.items()
    )


def text(tokenizer, language):
    """Overrides that name a text: its tokens, and English to a language."""
    return {
        "data.tokenizer": tokenizer,
        "data.source": "en",
        "data.target": language,
    }


def _of_text(tokens, language):
    """The table of the smallest translators, with areas of up to five."""
    return Table(
        f"Areas and the position of norms, {tokens}, En-{language.capitalize()}",
        _areas(
            *("transformer_tiny", "transformer_tiny_area"),
            *({}, 0.33, text(tokens, language)),
        ),
        settings=WITHOUT_REWARD,
    )


EFFECTS = {
    # README's.
    "captioners": Table(
        "Captioners after cross-entropy and after self-critical training",
        _with_ensembles(
            ("san", "nsan", "gsan", "ngsan", "aoanet", "ngsan_aoa"),
            (CROSS_ENTROPY, SELF_CRITICAL),
            {},
        ),
    ),
    # Other samples of an image are its baseline, three times as long.
    "effects_rewarded": Table(
        "How far self-critical training goes",
        _with_ensembles(
            ("ngsan_aoa",), (SELF_CRITICAL,), {"self_critical.baseline": "mean"}
        ),
    ),
    "effects_questions": Table(
        "Geometry in MCAN",
        tuple(_row(model, model, {}) for model in ("mcan", "mcan_gsa")),
    ),
    "effects_areas": _of_text("subwords", "de"),
    "effects_areas_characters": _of_text("characters", "fr"),
    # Of the text that experiments/papers/coded_text.py writes.
    "effects_areas_codes": Table(
        "Areas of characters whose meaning is in spans of three",
        _areas(
            *("transformer_tiny", "transformer_tiny_area"),
            *({"model.input_area": 3, "model.output_area": 1}, 0.5),
            text("characters", "de"),
        ),
        settings=WITHOUT_REWARD,
    ),
    "effects_areas_video": Table(
        "Areas of frames and the position of norms",
        _areas("video_nsa", "video_nsa", {"model.input_area": 3}, 0.5, {}),
        settings=WITHOUT_REWARD,
    ),
    "effects_temperature": Table(
        "Spatial self-attention with its temperature and without",
        (
            _row("temperature", "spatial", {"model.temperature": "length"}),
            _row("none", "spatial", {"model.temperature": None}),
            # With --import experiments/papers/grid_scenes.py.
            _row("learned", "spatial", {"model.temperature": "learned"}),
        ),
        settings=WITHOUT_REWARD,
    ),
    "effects_norms": Table(
        "What of instance normalization matters",
        tuple(
            _row(
                f"L={layers} {label}",
                "san",
                {"model.num_layers": layers, "model.query_norm": norm},
            )
            for layers in (1, 2, 4, 6)
            for label, norm in NORMS.items()
        ),
        settings=WITHOUT_REWARD,
    ),
    # With --import experiments/papers/placed_scenes.py, of each of its datasets.
    "effects_boxes": Table(
        "What geometry is worth by what features know of places",
        (
            _row("SAN", "san", {"model.geometry": None}),
            _row("G-SAN", "san", {"model.geometry": "query"}),
        ),
        settings=WITHOUT_REWARD | {"model.num_layers": 1},
    ),
    # With --import experiments/papers/gates.py, of asked_scenes.
    "effects_gates": Table(
        "What of AoA's gate matters",
        tuple(
            _row(
                label,
                "gated",
                {"model.context": context, "model.normalized": is_normalized},
            )
            for label, context, is_normalized in (
                ("linear", "linear", False),
                ("AoA", "aoa", False),
                ("gate of the query", "query_gate", False),
                ("two linear layers", "wide", False),
                ("linear, layer norm", "linear", True),
            )
        ),
        settings=WITHOUT_REWARD,
    ),
    # With --import experiments/papers/gates.py.
    "effects_lstm": Table(
        "An LSTM in the decoder, by the start of the projection to words",
        tuple(
            _row(
                f"{label}{', begun larger' if scale > 1 else ''}",
                "gated",
                {"model.context": context, "model.words_scale": scale},
            )
            for scale in (1.0, 8.0)
            for label, context in (
                ("linear", "linear"),
                ("LSTM", "lstm"),
                ("AoA", "aoa"),
            )
        ),
        settings=WITHOUT_REWARD,
    ),
    "effects_rates": Table(
        "Normalization and the learning rate, one layer",
        tuple(
            _row(
                f"{label} {rate:g}",
                "san",
                {
                    "model.num_layers": 1,
                    "model.query_norm": NORMS[label],
                    "training.learning_rate": rate,
                },
            )
            for rate in RATES
            for label in ("SAN", "N-SAN", "noisy")
        ),
        settings=WITHOUT_REWARD,
    ),
}
