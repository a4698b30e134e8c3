from typing import Any

from jaxtyping import Float32, Int32

from keras_caption.base.arguments import Tensor
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
        memory: The encoder's output, which the decoder's `start` takes.
        options: `Decoding`; sampling options are ignored. Defaults to `Decoding()`.
        per_example: dict of tensors, see `keras_caption.decoding.search.Search`.
        required: Phrases that every sequence must contain, see
            `keras_caption.decoding.constrained_beam.required_phrases`, or `None`.

    Returns:
        A pair. Tokens, int32 `(batch, beam_size, max_length)`: the best sequence first,
        each up to EOS, then PAD. And log-probabilities, float32 `(batch, beam_size)`,
        EOS included, not normalized by length. If fewer sequences exist, the last rows
        are all PAD, with log-probability -1e9.
    """
    return make_beam(decoder, options, per_example, required).run(memory)


def make_beam(
    decoder: Any,
    options: Decoding | None,
    per_example: dict[str, Tensor] | None,
    required: Required | None,
    only_best: bool = False,
) -> Beam:
    """Makes the beam search that the options ask for, see `beam_search` and `Beam`."""
    options = options or Decoding()
    if required is not None:
        return ConstrainedBeam(decoder, options, per_example, required, only_best)
    if options.groups > 1:
        # The best of a group may be another group's: each needs all of its own.
        return DiverseBeam(decoder, options, per_example)
    return Beam(decoder, options, per_example, only_best)
