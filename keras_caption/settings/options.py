"""The options of decoding as keywords, for type checkers."""

from collections.abc import Sequence
from typing import TypedDict


class DecodingOptions(TypedDict, total=False):
    """Keywords of all that generates, which `Decoding` describes."""

    beam_size: int
    max_length: int
    length_ratio: float | None
    length_margin: int
    min_length: int
    length_penalty: float
    length_offset: float
    allow_unk: bool
    renormalize: bool
    no_repeat_ngram: int
    repetition_penalty: float
    prefix: str | Sequence[str]
    forbidden: Sequence[str]
    required: Sequence[str]
    groups: int
    diversity: float
    temperature: float | None
    top_k: int | None
    top_p: float | None
    seed: int | None
    evidence: bool
