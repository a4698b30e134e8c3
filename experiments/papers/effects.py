r"""Tables of ours that take the papers' effects apart.

Sums of values (Area Attention, Eq. 4) make the branch of an attention layer larger than
the residual, in post-norm blocks above all; the papers' Transformers had pre-norm ones.
Instance normalization (NG-SAN, Eq. 6) needs several distinct items. Each table has its
command; rows are compared with the first one by paired differences:

    C=experiments/configs
    T="python experiments/tables.py --run --output_dir saved_models/effects"
    $T --table effects_areas -- --config $C/translation/multi30k.py --data_dir multi30k
    $T --table effects_areas_characters \
        --cells "post plain,post areas,pre plain,pre areas" -- \
        --config $C/translation/multi30k.py --data_dir multi30k \
        --config.data.max_tokens=256 --config.decoding.max_length=256 \
        --config.training.epochs=5
    $T --table effects_areas_video -- --epochs 8 --config.model.model_dim=128 \
        --config.training.decay_after=5 --config.training.learning_rate=1e-3
    $T --table effects_norms --seeds 0,1,2,3,4 -- \
        --config $C/captioning/coco_objects.py --data_dir coco
    $T --table effects_rates -- --config $C/captioning/coco_objects.py --data_dir coco

The tables of norms are as well for other regions, such as windows of the pixels of
scenes, `keras-caption prepare --dataset scenes --backbone efficientnet_lite2
--output_dir prepared/scenes` (prepared.py, --data_dir prepared/scenes), and `area_4`
for the same pixels as a grid. Give each dataset an output_dir of its own.
"""

from keras_caption.papers import CROSS_ENTROPY, Published, Table
from keras_caption.papers.published_translation import text

POSITIONS = ("post", "pre")
SMALLER = 0.33  # what areas of up to five make of values: (1 + ... + 5) / 5 = 3
NORMS = {
    "SAN": None,
    "N-SAN": "instance",
    "centred only": "instance_centre",
    "scaled only": "instance_scale",
    "noisy": "instance_noisy",
    "three distinct or more": "instance_distinct",
}
RATES = (5e-4, 1.5e-3, 5e-3)  # of coco_objects.py, times 1, 3 and 10
WITHOUT_REWARD = {"self_critical.epochs": 0}


def _row(label, model, **overrides):
    overrides = {name.replace("__", "."): value for name, value in overrides.items()}
    return Published(label, {}, model, overrides, objective=CROSS_ENTROPY)


def _areas(plain, areas, smaller=SMALLER, **same):
    """Rows of every position of norms, without areas and with every kind of them.

    Args:
        plain: Name of the preset without areas.
        areas: Name of that with areas, and overrides that make them.
        smaller: float, scale of the output projections that begin smaller.
        **same: Overrides of all rows.
    """
    name, made = areas
    kinds = {
        "plain": (plain, {}),
        "areas": (name, made),
        "smaller start": (name, {**made, "model__area_output_scale": smaller}),
        "mean values": (name, {**made, "model__area_values": "mean"}),
    }
    return tuple(
        _row(f"{position} {kind}", model, model__norm_position=position, **more, **same)
        for position in POSITIONS
        for kind, (model, more) in kinds.items()
    )


def _text(tokenizer, language):
    return {k.replace(".", "__"): x for k, x in text(tokenizer, language).items()}


TINY = "transformer_tiny", ("transformer_tiny_area", {})
EFFECTS = {
    "effects_areas": Table(
        "Areas and the position of norms, subwords, En-De",
        _areas(*TINY, **_text("subwords", "de")),
        settings=WITHOUT_REWARD,
    ),
    "effects_areas_characters": Table(
        "Areas and the position of norms, characters, En-Fr",
        _areas(*TINY, **_text("characters", "fr")),
        settings=WITHOUT_REWARD,
    ),
    "effects_areas_video": Table(
        "Areas of frames and the position of norms",
        _areas("video_nsa", ("video_nsa", {"model__input_area": 3}), smaller=0.5),
        settings=WITHOUT_REWARD,
    ),
    "effects_norms": Table(
        "What of instance normalization matters",
        tuple(
            _row(label, "san", model__num_layers=layers, model__query_norm=norm)
            for layers in (1, 2)
            for label, norm in NORMS.items()
        ),
        settings=WITHOUT_REWARD,
    ),
    "effects_rates": Table(
        "Normalization and the learning rate, one layer",
        tuple(
            _row(
                f"{label} {rate:g}",
                "san",
                model__num_layers=1,
                model__query_norm=NORMS[label],
                training__learning_rate=rate,
            )
            for rate in RATES
            for label in ("SAN", "N-SAN", "noisy")
        ),
        settings=WITHOUT_REWARD,
    ),
}
