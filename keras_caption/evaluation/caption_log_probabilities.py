from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from keras import ops

from keras_caption.base.compilation import compile_function
from keras_caption.models.sentence_reader import pad

ROWS = 250  # captions that are scored at once


def caption_log_probabilities(
    model: Any,
    batches: Iterable[dict[str, Any]],
    texts: Mapping[Any, Sequence[str]],
) -> dict[Any, list[float]]:
    """Computes the log-probability per token of captions of images, with EOS.

    Args:
        model: Captioner or ensemble of captioners, with a vocabulary.
        batches: Iterable of batches of images with `image_id`, as
            `keras_caption.batches.image_batches` makes them.
        texts: dict from image id to a list of captions; other images are skipped.

    Returns:
        dict from image id to a list of float, natural logarithms.
    """
    score = compile_function(model.log_probabilities, model.variables)
    log_probabilities: dict[int, list[float]] = {}
    for batch in batches:
        ids = ops.convert_to_numpy(batch["image_id"]).tolist()
        asked = [(row, text) for row, i in enumerate(ids) for text in texts.get(i, ())]
        inputs = model.read(batch, check=True) if asked else {}
        scores: list[float] = []
        for start in range(0, len(asked), ROWS):
            rows, captions = zip(*asked[start : start + ROWS], strict=True)
            tokens = [model.vocabulary.encode(text) for text in captions]
            row_inputs = {
                n: ops.take(x, np.array(rows), axis=0) for n, x in inputs.items()
            }
            sums = ops.convert_to_numpy(
                score(ops.convert_to_tensor(pad(tokens)), row_inputs)
            )
            lengths = [len(ids) - 1 for ids in tokens]  # without BOS
            scores += (sums / np.array(lengths)).tolist()
        each = iter(scores)
        log_probabilities |= {
            i: [next(each) for _ in texts[i]] for i in ids if i in texts
        }
    return log_probabilities
