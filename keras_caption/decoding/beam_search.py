from typing import Any

from jaxtyping import Float32, Int32

from keras_caption.arguments import Tensor
from keras_caption.decoding.beam import Beam
from keras_caption.decoding.constrained_beam import ConstrainedBeam, Required
from keras_caption.decoding.diverse_beam import DiverseBeam
from keras_caption.settings.decoding import Decoding


def beam_search(
    decoder: Any,
    memory: Any,
    options: Decoding | None = None,
    per_example: dict[str, Tensor] | None = None,
    required: Required | None = None,
) -> tuple[
    Int32[Tensor, "batch beam_size max_length"], Float32[Tensor, "batch beam_size"]
]:
    """Searches for the most probable sequences with a beam of hypotheses.

    Args:
        decoder: Has `start(memory, length)` and `step(tokens, state, index)`.
        memory: What the decoder starts from.
        options: `Decoding`; those of sampling are not read. Defaults to `Decoding()`.
        per_example: dict of tensors, see `keras_caption.decoding.search.Search`.
        required: Phrases that have to come, see
            `keras_caption.decoding.constrained_beam.required_phrases`, or `None`.

    Returns:
        Tokens, int32 `(batch, beam_size, max_length)`, from the first to
        EOS, then PAD, the best sequence first; and their log-probabilities, EOS
        included, never normalized, float32 `(batch, beam_size)`. If there are fewer
        sequences, the last are PAD only, their log-probability -1e9.
    """
    return make_beam(decoder, options, per_example, required).run(memory)


def make_beam(
    decoder: Any,
    options: Decoding | None,
    per_example: dict[str, Tensor] | None,
    required: Required | None,
) -> Beam:
    """The beam of the options, see `beam_search`."""
    options = options or Decoding()
    if required is not None:
        return ConstrainedBeam(decoder, options, per_example, required)
    if options.groups > 1:
        return DiverseBeam(decoder, options, per_example)
    return Beam(decoder, options, per_example)
