import collections.abc

from keras_caption.errors import InputError
from keras_caption.text.tokenizer import PAD


def teacher_forcing(batch):
    """Turns a captioning batch into inputs, targets and weights for `fit`.

    Args:
        batch: dict with `tokens`, int `(..., T)`, from BOS to EOS, then PAD, of
            arrays or tensors. Other keys stay in the inputs.

    Returns:
        Inputs (the batch, with the tokens but the last), targets (the tokens but the
        first), and weights, bool, True for tokens and EOS, False for padding.

    Raises:
        InputError: If the batch holds no `tokens`.

    Example:

    ```python
    model.fit(batches.map(keras_caption.data.teacher_forcing))
    ```
    """
    if not isinstance(batch, collections.abc.Mapping) or "tokens" not in batch:
        raise InputError(
            "A captioner trains on dicts that hold `tokens` beside what it reads of "
            f"images. Received: {batch}"
        )
    targets = batch["tokens"][..., 1:]
    return {**batch, "tokens": batch["tokens"][..., :-1]}, targets, targets != PAD
