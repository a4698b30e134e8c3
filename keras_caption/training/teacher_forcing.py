import keras
from keras import ops

from keras_caption.text import PAD
from keras_caption.training.replicas import place_among_replicas, sum_over_replicas


def teacher_forcing(data):
    """What a model is shown of a captioning batch, and what it must answer.

    Args:
        data: Captioning batch, a dict with `tokens`, int `(..., T)`, from BOS to
            EOS, then PAD; or what Keras makes of it, a tuple that begins with it.

    Returns:
        Inputs (the batch, tokens without the last), targets (tokens without the
        first) and weights: 1 for words and EOS, 0 for padding, scaled so that
        the mean over all positions is the mean over the real ones; with several
        replicas, the mean of the replicas' means that of the global batch.
    """
    batch, _, _ = keras.utils.unpack_x_y_sample_weight(data)
    if not isinstance(batch, dict) or "tokens" not in batch:
        raise ValueError(
            "A captioner trains on dicts that hold `tokens` beside what the images "
            f"give. Received: {batch}"
        )
    targets = batch["tokens"][..., 1:]
    real = ops.cast(targets != PAD, "float32")
    positions = ops.cast(ops.size(real), "float32")
    _, replicas = place_among_replicas()
    share = sum_over_replicas(ops.sum(real)) / (replicas * positions)
    weights = real / ops.maximum(share, 1e-9)
    return {**batch, "tokens": batch["tokens"][..., :-1]}, targets, weights
