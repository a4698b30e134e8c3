from jaxtyping import Float32
from keras import ops

from keras_caption.arguments import Tensor
from keras_caption.errors import InputError
from keras_caption.models.answering import Answering
from keras_caption.models.classifier import Classifier
from keras_caption.models.members import Members


class ClassifierEnsemble(Members, Answering):
    """Averages the probabilities of several models that answer questions.

    Of a model whose answers exclude each other they are a softmax, otherwise sigmoids.
    Members share their answers. An ensemble answers as its members do, and
    `keras_caption.serving.export` takes it.

    Args:
        members: Iterable of `Classifier`, or of their files, see
            `keras_caption.models.load`.

    Raises:
        InputError: If there are none, a member cannot be loaded, or has other answers
            than the first, or reads inputs of another size or with another tokenizer,
            or extracts them otherwise.

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
    def threshold(self) -> float:
        """The greatest of the members', see `Classifier`."""
        return max(member.threshold for member in self.members)

    def check_member(self, member: Classifier, who: str) -> None:
        if member.answers != self.answers:
            raise InputError(f"{who} has other answers than the first.")

    def probabilities(
        self, inputs: dict[str, Tensor]
    ) -> Float32[Tensor, "batch answers"]:
        """Averages of the members' probabilities, see `Classifier.probabilities`."""
        members = [member.probabilities(inputs) for member in self.members]
        return ops.mean(ops.stack(members), axis=0)
