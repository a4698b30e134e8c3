from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from keras import ops

from keras_caption.compilation import compile_function
from keras_caption.models.sentence_reader import pad

ROWS = 250  # captions that are scored at once


def caption_log_probabilities(
    model: Any,
    batches: Iterable[dict[str, Any]],
    texts: Mapping[Any, Sequence[str]],
) -> dict[Any, list[float]]:
    """Log-probability per token of given captions of images, EOS included.

    Args:
        model: Captioner or ensemble of captioners, with a vocabulary.
        batches: Iterable of batches of images with `image_id`, as
            `keras_caption.batches.image_batches` makes them.
        texts: dict from image id to a list of str. Images that it lacks are skipped.

    Returns:
        dict from image id to a list of float, natural logarithms.
    """
    score = compile_function(model.log_probabilities, model.variables)
    found = {}
    for batch in batches:
        ids = ops.convert_to_numpy(batch["image_id"]).tolist()
        asked = [(row, text) for row, i in enumerate(ids) for text in texts.get(i, ())]
        inputs = model.read(batch, check=True) if asked else {}
        scores = []
        for start in range(0, len(asked), ROWS):
            rows, some = zip(*asked[start : start + ROWS], strict=True)
            tokens = [model.vocabulary.encode(text) for text in some]
            of_rows = {
                n: ops.take(x, np.array(rows), axis=0) for n, x in inputs.items()
            }
            sums = ops.convert_to_numpy(
                score(ops.convert_to_tensor(pad(tokens)), of_rows)
            )
            lengths = [len(ids) - 1 for ids in tokens]  # without BOS
            scores += (sums / np.array(lengths)).tolist()
        scores = iter(scores)
        found |= {i: [next(scores) for _ in texts[i]] for i in ids if i in texts}
    return found
