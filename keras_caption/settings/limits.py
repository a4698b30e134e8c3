import dataclasses

from keras_caption.base.arguments import Count, Seconds, SecondsAboveZero

# Regions, frames or tokens of an example. Attention takes memory for their square.
MAX_ITEMS = 1024
# Forbidden phrases of an example, in a request to a signature.
MAX_PHRASES = 1000
# A seed in a signature has 64 bits: the upper ones, from this bit on, are the place of
# its example.
PLACE_BITS = 32
# Bytes of a text, far more than `MAX_ITEMS` tokens have. TensorFlow sorts a run of
# combining accents in time that is quadratic in its length.
TEXT_BYTES = 2**16


@dataclasses.dataclass(frozen=True)
class Limits:
    """Limits of a server.

    Attributes:
        max_body: int, greatest number of bytes of a request.
        max_pixels: int, greatest number of pixels of a photo, checked before decoding.
        max_requests: int, greatest number of requests that wait or run; further ones
            are refused.
        max_effort: int, greatest product of records, beam width, tokens and required
            tokens, of a request and of a batch. See
            `keras_caption.apps.serve.effort.check_effort`.
        timeout: float, greatest time of a request, in seconds.
        batch_size: int, greatest number of examples in a batch.
        batch_delay: float, greatest time that a request waits for others, in seconds.
    """

    max_body: Count = 32 * 2**20
    max_pixels: Count = 2**25
    max_requests: Count = 128
    max_effort: Count = 50_000
    timeout: SecondsAboveZero = 60.0
    batch_size: Count = 16
    batch_delay: Seconds = 0.005
