"""Every number of the papers' translation tables, as the papers print them.

BLEU is times 100; log perplexity is negative, the greater the better.
"""

from keras_caption.papers.published import CROSS_ENTROPY, Published, Table

TRANSFORMERS = {
    "Tiny": "transformer_tiny",
    "Small": "transformer_small",
    "Base": "transformer_base",
}
LSTMS = {f"{cells} cells": f"lstm_{cells}" for cells in (256, 512, 1024)}
# Columns of the area paper's tables: attention, suffix of the preset, and language.
COLUMNS = (
    ("regular", "", "de"),
    ("regular", "", "fr"),
    ("area", "_area", "de"),
    ("area", "_area", "fr"),
)
WMT = "WMT14"
TEST_SET = (
    "The paper names neither the test set nor how BLEU is computed. The presets are "
    "post-norm, and begin the output projection of attention to areas at 1 over their "
    "mean size, which is ours; the experiment wmt14_area has tensor2tensor's pre-norm "
    "blocks and 1."
)


def text(tokenizer, language):
    """Overrides that name a text: its tokens, and English to a language."""
    return {
        "data.tokenizer": tokenizer,
        "data.source": "en",
        "data.target": language,
    }


def _grid(metric, tokenizer, models, *scores, recipes=None):
    """Rows of a table that has a line of scores for each model.

    Args:
        metric, tokenizer, models: What all have.
        *scores: A tuple for each model, by `COLUMNS`.
        recipes: dict from language to the `recipe` of its rows.
    """
    recipes = recipes or {}
    return tuple(
        Published(
            f"{label}, {attention}, En-{language.capitalize()}",
            {metric: score},
            model + suffix,
            text(tokenizer, language),
            recipes.get(language, {}),
            objective=CROSS_ENTROPY,
        )
        for (label, model), line in zip(models.items(), scores, strict=True)
        for (attention, suffix, language), score in zip(COLUMNS, line, strict=True)
    )


TRANSLATION = {
    "area_1": Table(
        "Area Attention, Table 1, characters",
        _grid(
            "BLEU",
            "characters",
            TRANSFORMERS,
            (6.97, 9.47, 7.39, 11.79),
            (12.18, 18.75, 13.44, 21.24),
            (24.65, 32.80, 25.03, 33.69),
        ),
        TEST_SET,
        WMT,
        "wmt14_area",
    ),
    "area_2": Table(
        "Area Attention, Table 2, subwords",
        _grid(
            "BLEU",
            "subwords",
            TRANSFORMERS,
            (18.60, 27.07, 18.80, 27.29),
            (22.80, 31.91, 22.80, 32.28),
            (27.96, 39.10, 28.17, 39.22),
        ),
        TEST_SET,
        WMT,
        "wmt14_area",
    ),
    "area_3": Table(
        "Area Attention, Table 3, characters",
        _grid(
            "log_perplexity",
            "characters",
            LSTMS,
            (-0.7984, -0.7770, -0.7981, -0.7655),
            (-0.6506, -0.6343, -0.6504, -0.6318),
            (-0.5585, -0.5527, -0.5603, -0.5521),
            recipes={"fr": {"model.dropout": 0.1}},  # tensor2tensor's
        ),
        "`log_perplexity` is the negative log perplexity of a character; the greater "
        "the better. Ours is of the test split. The paper does not give the base of "
        "the logarithm; ours is natural. What it does not say of the LSTM is that of "
        "tensor2tensor's released code, in the experiment wmt14_area_lstm.",
        "WMT14's validation data",
        "wmt14_area_lstm",
    ),
    "ngsan_8": Table(
        "NG-SAN, Table 8",
        tuple(
            Published(
                label,
                {"BLEU": score},
                model,
                text("subwords", "de") if model else {},
                objective=CROSS_ENTROPY,
            )
            for label, model, score in (
                ("Transformer-Base, Vaswani et al.", None, 27.30),
                ("Transformer-Big, Vaswani et al.", None, 28.40),
                ("Transformer-Base", "transformer_base", 27.56),
                ("+ NSA", "transformer_base_nsa", 27.92),
            )
        ),
        "The paper gives neither the tokens, of which subwords are ours, nor how BLEU "
        "is computed.",
        "newstest2014, trained on WMT14",
    ),
}
