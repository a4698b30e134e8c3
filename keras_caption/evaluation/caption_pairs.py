from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from keras_caption.base.errors import InputError
from keras_caption.evaluation.caption_log_probabilities import caption_log_probabilities


def preference(
    model: Any, batches: Iterable[dict[str, Any]], pairs: Sequence[dict[str, Any]]
) -> dict[str, tuple[float, int]]:
    """Computes how often a captioner prefers captions to hard negatives.

    The captioner prefers the caption of a pair with the greater log-probability per
    token, EOS included. A tie counts as half, for instance if the captions differ in
    unknown words only.

    Args:
        model: Captioner or ensemble of captioners, with a vocabulary.
        batches: Iterable of batches of images with `image_id`, as
            `keras_caption.batches.image_batches` makes them. Pairs of other images are
            skipped.
        pairs: Sequence of dict of `image_id`, `caption`, `negative_caption` and `kind`,
            as `keras_caption.formats.caption_pairs.read_caption_pairs` reads them.

    Returns:
        dict from each kind, and `"all"`, to a pair: the share of pairs whose caption
        is preferred, and the number of pairs.

    Raises:
        InputError: If no image has a pair.

    Reference:
        Hsieh et al., "SugarCrepe: Fixing Hackable Benchmarks for Vision-Language
        Compositionality", NeurIPS 2023.
    """
    pairs_by_image: dict[int, list[dict[str, Any]]] = {}
    for pair in pairs:
        pairs_by_image.setdefault(pair["image_id"], []).append(pair)
    texts = {
        i: [pair[name] for pair in asked for name in ("caption", "negative_caption")]
        for i, asked in pairs_by_image.items()
    }
    outcomes: dict[str, list[float]] = {}
    for i, scores in caption_log_probabilities(model, batches, texts).items():
        each = zip(scores[::2], scores[1::2], pairs_by_image[i], strict=True)
        for ours, negative, pair in each:
            outcome = 0.5 if ours == negative else float(ours > negative)
            outcomes.setdefault(pair["kind"], []).append(outcome)
    if not outcomes:
        raise InputError("None of the pairs of captions is of one of the images.")
    outcomes = {kind: outcomes[kind] for kind in sorted(outcomes)}
    outcomes["all"] = [x for values in outcomes.values() for x in values]
    return {kind: (float(np.mean(x)), len(x)) for kind, x in outcomes.items()}
