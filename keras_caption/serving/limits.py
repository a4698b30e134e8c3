import dataclasses

# Regions, frames or tokens of an example: attention takes their square.
MAX_ITEMS = 1024
# Forbidden ones of an example, in a signature.
MAX_PHRASES = 1000
# Bits of a seed in a signature; those above them are the place of its example.
PLACE_BITS = 32
# Of a text, of which no model reads more tokens than items. Sorting a row of accents
# takes TensorFlow the square of their number.
TEXT_BYTES = 2**16


@dataclasses.dataclass(frozen=True)
class Limits:
    """What a server accepts.

    Attributes:
        max_body: int, bytes of a request.
        max_pixels: int, of a photo, before it is decoded.
        max_requests: int, that wait or run at once; more are refused.
        max_effort: int, steps of a request, and of a batch: see
            `keras_caption.serving.effort.check_effort`.
        timeout: float, seconds that a request may take.
        batch_size: int, examples in a batch.
        batch_delay: float, seconds that a request waits for others at most.
    """

    max_body: int = 32 * 2**20
    max_pixels: int = 2**25
    max_requests: int = 128
    max_effort: int = 50_000
    timeout: float = 60.0
    batch_size: int = 16
    batch_delay: float = 0.005
