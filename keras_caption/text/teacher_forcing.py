import collections.abc

from jaxtyping import Bool, Int

from keras_caption.base.arguments import Tensor
from keras_caption.base.errors import InputError
from keras_caption.text.tokenizer import PAD


def teacher_forcing(
    batch: dict[str, Tensor],
) -> tuple[dict[str, Tensor], Int[Tensor, "... T-1"], Bool[Tensor, "... T-1"]]:
    """Converts a captioning batch to inputs, targets and weights for `fit`.

    Args:
        batch: dict of arrays or tensors with `tokens`, int `(..., T)`, from BOS to
            EOS, then PAD. Other keys stay in the inputs.

    Returns:
        Inputs, the batch with `tokens` without the last one; targets, int
        `(..., T - 1)`, the tokens without the first one; and weights, bool
        `(..., T - 1)`, True for valid targets, False for padding.

    Raises:
        InputError: If the batch holds no `tokens`.

    Example:

    ```python
    model.fit(batches.map(keras_caption.text.teacher_forcing))
    ```
    """
    if not isinstance(batch, collections.abc.Mapping) or "tokens" not in batch:
        raise InputError(
            "A captioner trains on dicts that hold `tokens` beside its other inputs. "
            f"Received: {batch}"
        )
    targets = batch["tokens"][..., 1:]
    return {**batch, "tokens": batch["tokens"][..., :-1]}, targets, targets != PAD
