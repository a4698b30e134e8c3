import collections.abc
import os
from typing import Any, Generic, TypeVar

import keras
import numpy as np

from keras_caption.base.errors import InputError
from keras_caption.features import Extractor
from keras_caption.models.engine_model import EngineModel
from keras_caption.models.input_reader import InputReader
from keras_caption.models.loading import load
from keras_caption.models.photo_reader import PhotoReader
from keras_caption.text.tokenizer import have_same_ids

Member = TypeVar("Member", bound=InputReader)


class Members(PhotoReader, Generic[Member]):
    """Mixin of ensembles: models that read an input in the same way.

    Members may be of different types and sizes, and read different kinds of input.

    Args:
        members: Iterable of models, or of their files, see
            `keras_caption.models.load`.

    Attributes:
        member_type: type of the models.
        noun: str, noun for a member in messages.

    Raises:
        InputError: If there are no members, a member cannot be loaded or has another
            type, or members differ in the sizes of their inputs, their tokenizers or
            their extractor.
    """

    member_type: type[Member]
    noun: str
    input_specs: dict[str, keras.KerasTensor]

    def __init__(self, members: collections.abc.Iterable[Member | os.PathLike | str]):
        loaded: list[Any] = [  # whose types are checked below
            load(member) if isinstance(member, (str, os.PathLike)) else member
            for member in members
        ]
        self.members: list[Member] = loaded
        if not self.members:
            raise InputError("An ensemble needs members.")
        for number, member in enumerate(loaded, start=1):
            who = (
                f"Member {number} of the ensemble, {getattr(member, 'name', member)!r},"
            )
            if isinstance(member, EngineModel):
                raise InputError(
                    f"{who} runs on another engine: it cannot be in an ensemble."
                )
            if not isinstance(member, self.member_type):
                kind = type(member).__name__
                raise InputError(f"{who} is a {kind}, not a {self.noun}.")
        first = self.members[0]
        self.extractor = getattr(first, "extractor", None)
        self.source, self.question = first.source, first.question
        self.categories = getattr(first, "categories", None)
        self.evidence_table = getattr(first, "evidence_table", None)
        self.input_specs = {}
        for number, member in enumerate(self.members, start=1):
            who = f"Member {number} of the ensemble, {member.name!r},"
            self.check_member(member, who)
            for name in ("source", "question"):
                if not have_same_ids(getattr(member, name), getattr(self, name)):
                    raise InputError(
                        f"{who} has another {name} tokenizer than the first."
                    )
            if getattr(member, "categories", None) != self.categories:
                raise InputError(f"{who} reads other objects than the first.")
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
        self.name = " + ".join(member.name for member in self.members)
        # Inputs that no member depends on.
        self.ignored_inputs = tuple(
            name
            for name in self.input_specs
            if all(
                name in member.ignored_inputs
                for member in self.members
                if name in member.input_specs
            )
        )

    def check_member(self, member: Member, who: str) -> None:
        """Refuses a member whose outputs differ in kind from those of the first.

        Args:
            member: One of the models.
            who: str, subject of the sentence in messages.

        Raises:
            InputError: If the member is refused.
        """
        raise NotImplementedError

    @property
    def variables(self) -> list[keras.Variable]:
        return [v for member in self.members for v in member.variables]


def are_same(extractor: Extractor | None, other: Extractor | None) -> bool:
    """Whether two extractors compute the same features of a photo."""
    if extractor is other:  # some have no config, as a second opinion has none
        return True
    if extractor is None or other is None:
        return False
    return extractor.get_config() == other.get_config() and all(
        np.array_equal(x, y)
        for x, y in zip(extractor.get_weights(), other.get_weights(), strict=True)
    )
