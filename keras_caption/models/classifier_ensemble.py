from jaxtyping import Float32
from keras import ops

from keras_caption.base.arguments import Tensor
from keras_caption.base.errors import InputError
from keras_caption.models.answering import Answering
from keras_caption.models.classifier import Classifier
from keras_caption.models.members import Members
from keras_caption.text.answers import KINDS, threshold_of


class ClassifierEnsemble(Members[Classifier], Answering):
    """Averages the probabilities of several models that answer questions.

    The probabilities of a member are a softmax if one answer is right, and sigmoids
    otherwise. Members have the same list of answers. An ensemble answers as its members
    do, and `keras_caption.serving.export` exports it as one model.

    Args:
        members: Iterable of `Classifier`, or of their files, see
            `keras_caption.models.load`.

    Raises:
        InputError: If there are no members, a member cannot be loaded, or members
            differ in their answers, tokenizers, sizes of inputs or extractor.

    Example:

    ```python
    ensemble = keras_caption.models.ClassifierEnsemble(["a.keras", "b.keras"])
    answers = ensemble.answer({"regions": regions, "boxes": boxes}, questions)
    ```
    """

    member_type = Classifier
    noun = "model that answers questions"

    @property
    def answers(self) -> list[str]:
        return self.members[0].answers

    @property
    def threshold(self) -> dict[str, float]:
        """The greatest threshold of the members for each kind, see `Classifier`."""
        return {
            kind: max(threshold_of(member.threshold, kind) for member in self.members)
            for kind in KINDS
        }

    @property
    def recall(self) -> dict[str, float] | None:
        """The recall of the first member; all members read the same objects."""
        return self.members[0].recall

    @property
    def calibration(self) -> list[list[float]] | None:
        """The calibration of the first member, as `recall`."""
        return self.members[0].calibration

    def check_member(self, member: Classifier, who: str) -> None:
        if member.answers != self.answers:
            raise InputError(f"{who} has other answers than the first.")

    def probabilities(
        self, inputs: dict[str, Tensor]
    ) -> Float32[Tensor, "batch answers"]:
        """Mean probabilities of the members, see `Classifier.probabilities`."""
        members = [member.probabilities(inputs) for member in self.members]
        return ops.mean(ops.stack(members), axis=0)
