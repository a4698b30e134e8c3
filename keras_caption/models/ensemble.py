import os
from collections.abc import Iterable
from typing import Any

from jaxtyping import Float, Float32, Int
from keras import ops

from keras_caption.base.arguments import Tensor
from keras_caption.base.errors import InputError
from keras_caption.inputs import KINDS, InputKind
from keras_caption.models.members import Members
from keras_caption.models.searching import Searching
from keras_caption.models.sentence_reader import SentenceReader
from keras_caption.text import Tokenizer
from keras_caption.text.tokenizer import have_same_ids


class Ensemble(SentenceReader, Members[Searching], Searching):
    """Averages the predictions of several captioners, or of several translators.

    At each token the probabilities of all members are averaged, and a search runs over
    the averages as over the probabilities of one model. Members share a vocabulary;
    they may be of different types and sizes, and read different kinds of input.

    An ensemble has the options of decoding of its first member.
    `keras_caption.serving.export` exports it as one model.

    Args:
        members: Iterable of models, or of their files, see
            `keras_caption.models.load`.

    Raises:
        InputError: If there are no members, a member cannot be loaded or has no
            vocabulary, or members differ in their vocabulary, in the sizes of their
            inputs or in their extractor.

    Example:

    ```python
    ensemble = keras_caption.models.Ensemble(["a.keras", "b.keras"])
    captions = ensemble.generate({"regions": regions, "boxes": boxes})
    ```

    Reference:
        Huang et al., ICCV 2019, Table 1, has ensembles of four models with different
        initial weights. The paper does not say what is averaged: probabilities are our
        choice.
    """

    member_type = Searching
    noun = "captioner or translator"

    def __init__(self, members: Iterable[Searching | os.PathLike | str]):
        super().__init__(members)
        self.decoding = self.members[0].decoding
        self.generated = self.members[0].generated

    @property
    def vocabulary(self) -> Tokenizer | None:
        return self.members[0].vocabulary

    @property
    def threshold(self) -> float:
        """The greatest threshold of the members, see `Captioner`; 0 for translators."""
        return max(getattr(member, "threshold", 0.0) for member in self.members)

    @property
    def calibration(self) -> list[list[float]] | None:
        """The calibration of the first member; all members read the same objects."""
        return getattr(self.members[0], "calibration", None)

    def check_member(self, member: Searching, who: str) -> None:
        if member.vocabulary is None:
            raise InputError(f"{who} has no vocabulary.")
        if not have_same_ids(member.vocabulary, self.vocabulary):
            raise InputError(f"{who} has another vocabulary than the first.")

    @property
    def tokenizers(self) -> list[Tokenizer]:
        return self.members[0].tokenizers

    @property
    def memory_kind(self) -> InputKind:
        """Kind of input that attention weights are over: the last one in `KINDS`."""
        kinds = {type(member.memory_kind) for member in self.members}
        last = max(kinds, key=KINDS.index)
        return next(kind for kind in self.kinds if isinstance(kind, last))

    def encode(self, inputs: dict[str, Tensor]) -> list[dict[str, Any]]:
        """Encodes inputs as a list of memories, one for each member's decoder."""
        return [member.encode(inputs) for member in self.members]

    @property
    def can_grow(self) -> bool:
        """Whether the members' `start` takes `length=None`."""
        return all(member.can_grow for member in self.members)

    def start(
        self, memory: list[dict[str, Any]], length: int | None = 20
    ) -> dict[str, list[Any]]:
        """The members' states before the first token."""
        states = [
            member.start(member_memory, length=length)
            for member, member_memory in zip(self.members, memory, strict=True)
        ]
        return {part: [s[part] for s in states] for part in ("memory", "cache")}

    def step(
        self,
        tokens: Int[Tensor, " batch*C"],
        state: dict[str, list[Any]],
        index: Int[Tensor, ""],
    ) -> tuple[Float32[Tensor, "batch*C vocabulary_size"], dict[str, list[Any]]]:
        """Reads one more token: logarithms of the mean probabilities, and the state."""
        logits, caches = [], []
        for member, memory, cache in zip(
            self.members, state["memory"], state["cache"], strict=True
        ):
            state_of_member = {"memory": memory, "cache": cache}
            member_logits, changed = member.step(tokens, state_of_member, index)
            logits.append(member_logits)
            caches.append(changed["cache"])
        return average(logits), {**state, "cache": caches}

    def logits(
        self, tokens: Int[Tensor, "batch*C T"], memory: list[dict[str, Any]]
    ) -> Float32[Tensor, "batch*C T vocabulary_size"]:
        """Logarithms of the mean probabilities after each token of captions."""
        return average(
            [
                member.logits(tokens, member_memory)
                for member, member_memory in zip(self.members, memory, strict=True)
            ]
        )

    def attention(
        self, tokens: Int[Tensor, "batch*C T"], memory: list[dict[str, Any]]
    ) -> Float32[Tensor, "batch C*T M"]:
        """Attention weights, averaged over the members that attend to `memory_kind`."""
        kind = type(self.memory_kind)
        weights = [
            member.attention(tokens, member_memory)
            for member, member_memory in zip(self.members, memory, strict=True)
            if type(member.memory_kind) is kind
        ]
        return ops.mean(ops.stack(weights), axis=0)


def average(
    logits: list[Float[Tensor, "... vocabulary_size"]],
) -> Float32[Tensor, "... vocabulary_size"]:
    """Logarithms of the mean probabilities of several logits."""
    log_probs = ops.stack([ops.log_softmax(x) for x in logits])
    # log(mean(p)) without underflow of p; (members, ...) to (...).
    return ops.logsumexp(log_probs, axis=0) - ops.log(float(len(logits)))
