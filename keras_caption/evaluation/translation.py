import re
from collections.abc import Sequence

from keras_caption.base.arguments import check
from keras_caption.base.errors import InputError, missing_extras


def score_translations(
    translations: list[str],
    references: list[str],
    tokenized: bool = False,
    split_compounds: bool = False,
) -> tuple[dict[str, float], dict[str, str]]:
    """Scores translations with sacreBLEU.

    Args:
        translations: List of str.
        references: List of str, one for each translation.
        tokenized: bool, whether both are tokenized text, whose tokens BLEU counts
            unchanged, as published scores on such text do. Defaults to `False`: BLEU
            tokenizes both like mteval-v13a.
        split_compounds: bool, whether BLEU counts the parts of hyphenated compounds
            and their hyphens as tokens, as published scores of WMT14 English-German
            do; for tokenized text. Defaults to `False`.

    Returns:
        dict of float from 0 to 1: `BLEU`; `chrF`; and `exact`, the share of
        translations that equal their reference. And dict from `BLEU` and `chrF` to
        sacreBLEU's signature of how they were computed, BLEU's with `compounds:split`
        after it if `split_compounds`.

    Raises:
        InputError: If there are no translations, not as many as references, or another
            value than str among them.

    Reference:
        Post, "A Call for Clarity in Reporting BLEU Scores", WMT 2018.
    """
    with missing_extras():
        from sacrebleu.metrics import BLEU, CHRF

    check(Sequence[str], translations=translations, references=references)
    if not translations or len(translations) != len(references):
        raise InputError(
            "Each translation is scored against one reference. Received: "
            f"{len(translations):,} translations and {len(references):,} references"
        )
    if split_compounds and not tokenized:
        raise InputError("`split_compounds` is for tokenized text.")
    metrics = {
        "BLEU": BLEU(tokenize="none" if tokenized else "13a", force=tokenized),
        "chrF": CHRF(),
    }
    texts = {"BLEU": [translations, references], "chrF": [translations, references]}
    if split_compounds:
        texts["BLEU"] = [[*map(compound_parts, side)] for side in texts["BLEU"]]
    scores = {
        name: metric.corpus_score(texts[name][0], [texts[name][1]]).score / 100
        for name, metric in metrics.items()
    }
    signatures = {name: str(x.get_signature()) for name, x in metrics.items()}
    if split_compounds:
        signatures["BLEU"] += "|compounds:split"
    equal = [a == b for a, b in zip(translations, references, strict=True)]
    scores["exact"] = sum(equal) / len(equal)
    return scores, signatures


def compound_parts(text: str) -> str:
    """Splits the hyphenated compounds of a tokenized text into tokens.

    `"rich-text"` becomes `"rich ##AT##-##AT## text"`, as in the evaluation of
    Vaswani et al., "Attention Is All You Need", NeurIPS 2017, in their released code.
    """
    return re.sub(r"(\S)-(\S)", r"\1 ##AT##-##AT## \2", text)
