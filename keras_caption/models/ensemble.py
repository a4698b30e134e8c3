import collections.abc
import os
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_caption.errors import InputError
from keras_caption.features import Extractor
from keras_caption.inputs import KINDS, InputKind
from keras_caption.models.generation import Generation
from keras_caption.models.loading import load
from keras_caption.models.photo_reader import PhotoReader
from keras_caption.models.sentence_reader import SentenceReader
from keras_caption.text import Tokenizer


class Ensemble(SentenceReader, PhotoReader, Generation):
    """Averages the predictions of several captioners, or of several translators.

    At every token the probabilities of all members are averaged; searches run over
    the averages as over one model's. Members may be of different types and sizes,
    and read different kinds of input; they share a vocabulary.

    It generates as its members do, and `keras_caption.serving.export` takes it.

    Args:
        members: Iterable of models, or of their files, see
            `keras_caption.models.load`.

    Raises:
        InputError: If there are none, a member cannot be loaded, or has no vocabulary
            or another one than the first, or reads inputs of another size or extracts
            them otherwise.

    Example:

    ```python
    ensemble = keras_caption.models.Ensemble(["a.keras", "b.keras"])
    captions = ensemble.generate({"regions": regions, "boxes": boxes})
    ```

    Reference:
        Huang et al., ICCV 2019, Table 1, has ensembles of four models that differ in
        their first weights. That probabilities are averaged is ours: it does not say.
    """

    def __init__(self, members: collections.abc.Iterable[Generation | os.PathLike]):
        self.members = [
            member if isinstance(member, Generation) else load(member)
            for member in members
        ]
        if not self.members:
            raise InputError("An ensemble needs members.")
        self.name = " + ".join(member.name for member in self.members)
        first = self.members[0]
        self.vocabulary = first.vocabulary
        self.extractor = getattr(first, "extractor", None)
        self.source = first.source
        self.generated = first.generated
        self.input_specs = {}
        for number, member in enumerate(self.members, start=1):
            who = f"Member {number} of the ensemble, {member.name!r},"
            if member.vocabulary is None:
                raise InputError(f"{who} has no vocabulary.")
            if member.vocabulary != self.vocabulary:
                raise InputError(f"{who} has another vocabulary than the first.")
            if member.source != self.source:
                raise InputError(f"{who} has another source tokenizer than the first.")
            if not are_same(getattr(member, "extractor", None), self.extractor):
                raise InputError(
                    f"{who} extracts features of photos otherwise than the first."
                )
            for name, spec in member.input_specs.items():
                expected = self.input_specs.setdefault(name, spec)
                if spec.shape != expected.shape:
                    raise InputError(
                        f"{who} reads {name} of shape {spec.shape}; one before it "
                        f"reads {expected.shape}."
                    )
        self.ignored_inputs = tuple(
            name
            for name in self.input_specs
            if all(
                name in member.ignored_inputs
                for member in self.members
                if name in member.input_specs
            )
        )

    @property
    def variables(self) -> list[keras.Variable]:
        return [v for member in self.members for v in member.variables]

    @property
    def tokenizers(self) -> list[Tokenizer]:
        return self.members[0].tokenizers

    @property
    def memory_kind(self) -> InputKind:
        """Kind of input of the attention weights: the members' last in `KINDS`."""
        kinds = {type(member.memory_kind) for member in self.members}
        last = max(kinds, key=KINDS.index)
        return next(kind for kind in self.kinds if isinstance(kind, last))

    def encode(self, inputs: dict[str, Any]) -> list[dict[str, Any]]:
        """Encodes inputs as the memories that the members' decoders read."""
        return [member.encode(inputs) for member in self.members]

    def start(
        self, memory: list[dict[str, Any]], length: int = 20
    ) -> dict[str, list[Any]]:
        """The members' states before the first token."""
        states = [
            member.start(of_member, length=length)
            for member, of_member in zip(self.members, memory, strict=True)
        ]
        return {part: [s[part] for s in states] for part in ("memory", "cache")}

    def step(
        self, tokens: Any, state: dict[str, list[Any]], index: Any
    ) -> tuple[Any, dict[str, list[Any]]]:
        """One more token: logarithms of the average probabilities, and the state."""
        logits, caches = [], []
        for member, memory, cache in zip(
            self.members, state["memory"], state["cache"], strict=True
        ):
            own, new = member.step(tokens, {"memory": memory, "cache": cache}, index)
            logits.append(own)
            caches.append(new["cache"])
        return average(logits), {**state, "cache": caches}

    def logits(self, tokens: Any, memory: list[dict[str, Any]]) -> Any:
        """Logarithms of the average probabilities after each token of captions."""
        return average(
            [
                member.logits(tokens, of_member)
                for member, of_member in zip(self.members, memory, strict=True)
            ]
        )

    def attention(self, tokens: Any, memory: list[dict[str, Any]]) -> Any:
        """Attention weights, averaged over the members that attend to `memory_kind`."""
        kind = type(self.memory_kind)
        weights = [
            member.attention(tokens, of_member)
            for member, of_member in zip(self.members, memory, strict=True)
            if type(member.memory_kind) is kind
        ]
        return ops.mean(ops.stack(weights), axis=0)


def are_same(extractor: Extractor | None, other: Extractor | None) -> bool:
    """Whether two extractors compute the same features of a photo."""
    if extractor is None or other is None:
        return extractor is other
    return extractor.get_config() == other.get_config() and all(
        np.array_equal(x, y)
        for x, y in zip(extractor.get_weights(), other.get_weights(), strict=True)
    )


def average(logits: list[Any]) -> Any:
    """Logarithms of the averages of the probabilities that logits stand for."""
    log_probs = ops.stack([ops.log_softmax(own) for own in logits])
    return ops.logsumexp(log_probs, axis=0) - ops.log(float(len(logits)))
