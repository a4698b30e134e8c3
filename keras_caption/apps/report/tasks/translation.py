"""Scores and translations of a translator on a test split."""

import pathlib
from typing import Any

import keras_caption as kc
from keras_caption.base.atomic import replacing
from keras_caption.formats.items import write_items
from keras_caption.tasks.translation import NO_SPACES, Translation

SHOWN = 10  # translations that are printed


def evaluate(task: Translation, model: Any, folder: pathlib.Path) -> dict[str, float]:
    """Translates and scores the test split, and prints the scores.

    Args:
        task: `keras_caption.tasks.Translation`.
        model: A trained translator.
        folder: `pathlib.Path` for the translations.

    Returns:
        dict from metric to score.
    """
    sources, references = task.sentences("test")
    tokenized = task.config["evaluation"]["tokenized"]
    translations = model.translate(sources)
    with replacing(folder / "test_translations.txt") as partial:
        lines = [kc.text.one_line(translation) + "\n" for translation in translations]
        partial.write_text("".join(lines), encoding="utf-8")
    in_words = [model.vocabulary.as_decoded(text) for text in references]
    scores, signatures = kc.evaluation.score_translations(
        translations, in_words, tokenized
    )
    likelihoods = kc.evaluation.log_probabilities(model, sources, references)
    total, characters = map(sum, zip(*likelihoods.values(), strict=True))
    scores["log_perplexity"] = total / characters
    write_items(
        folder / "test_items.json",
        [*range(len(sources))],
        {
            "BLEU": kc.evaluation.bleu_statistics(translations, in_words, tokenized),
            "log_perplexity": [likelihoods.get(i) for i in range(len(sources))],
        },
    )
    width = model.decoding.beam_size
    print(f"\nTest split, {len(sources):,} sentences, beam {width}\n")
    cells = [
        f"{score:.4f}" if name == "log_perplexity" else f"{100 * score:.1f}"
        for name, score in scores.items()
    ]
    print(kc.evaluation.markdown_table(["", *scores], [[model.name, *cells]]))
    print()
    for name, signature in signatures.items():
        print(f"{name}: {signature}")
    if kc.evaluation.lacks_spaces(in_words):
        print(f"\n{NO_SPACES}")
    note = kc.evaluation.note_on_outputs(translations, in_words, "translations")
    if note:
        print(f"\n{note}")
    print("\nSome translations, each after its source and before the reference:")
    for rows in list(zip(sources, translations, in_words, strict=True))[:SHOWN]:
        print("  {}\n      {}\n      {}".format(*rows))
    return scores
