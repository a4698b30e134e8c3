"""From a model's token probabilities to sequences of tokens.

Pure functions over the two functions that every decoder has,
`start(memory, length) -> state` and `step(tokens, state, index) -> (logits, state)`,
written in `keras.ops`: they run under any backend and compile as one graph.

Where the options leave no token, a sequence has no result, however it is generated:
its tokens are PAD, and its log-probability is -1e9.
"""

from typing import TYPE_CHECKING

from keras_caption.base.compilation import compile_from_second_call, compile_function
from keras_caption.base.registration import importing
from keras_caption.decoding.beam_search import beam_search
from keras_caption.decoding.greedy_search import greedy_search
from keras_caption.decoding.hook import Hook
from keras_caption.decoding.length_limits import length_limits
from keras_caption.decoding.sampling import policy, sample
from keras_caption.decoding.scheduled_sampling import scheduled_sampling
from keras_caption.settings.decoding import Decoding, with_decoding
from keras_caption.settings.options import DecodingOptions

if TYPE_CHECKING:  # for editors and type checkers: what an app gives
    from keras_caption.apps.objects.evidence import ObjectEvidence as ObjectEvidence

__all__ = [
    "Decoding",
    "DecodingOptions",
    "Hook",
    "beam_search",
    "compile_from_second_call",
    "compile_function",
    "greedy_search",
    "length_limits",
    "policy",
    "sample",
    "scheduled_sampling",
    "with_decoding",
]
if not TYPE_CHECKING:  # other names are errors
    __getattr__ = importing(__name__)
