import collections.abc
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int32
from keras import ops

from keras_caption.base.arguments import Count, Tensor, check
from keras_caption.base.compilation import compile_function, shapes_of
from keras_caption.base.errors import InputError
from keras_caption.features.photos import check_photos
from keras_caption.models.photo_reader import PhotoReader
from keras_caption.models.sentence_reader import pad
from keras_caption.predict import BATCH_SIZE, run_batches
from keras_caption.text import PAD, Tokenizer
from keras_caption.text.tokenizer import check_texts


class Answering(PhotoReader):
    """Mixin of classifiers and their ensembles that answers questions about images.

    A subclass has `answers`, a list of str, and the method `probabilities`, beside the
    attributes of a `PhotoReader`.
    """

    if TYPE_CHECKING:

        @property
        def answers(self) -> list[str]: ...

        def probabilities(self, inputs: dict[str, Tensor]) -> Tensor: ...

    @property
    def tokenizers(self) -> list[Tokenizer]:
        """The tokenizers that an exported model needs."""
        return [] if self.question is None else [self.question]

    def answer(
        self,
        images: Any,
        questions: list[str] | None = None,
        batch_size: int = BATCH_SIZE,
    ) -> list[str]:
        """Answers any number of questions, each about an image of its own.

        Args:
            images: dict of arrays or tensors, as for a call, one image per question;
                or, for a model with an `extractor`, a list of photos, which are paths
                or uint8 arrays `(height, width, 3)`.
            questions: List of str. The model answers a question without known words
                too. May be omitted if the dict holds token ids as `question`, or the
                model reads no questions.
            batch_size: int, number of questions in a batch.

        Returns:
            A list of str, the most probable answers.

        Raises:
            InputError: If the numbers of images and questions differ, an input is
                missing or has a wrong shape, or an example has a fault, such as an
                image without a valid region, or boxes in pixels.

        Example:

        ```python
        images = {"regions": regions, "boxes": boxes}
        model.answer(images, ["What is left of the dog?", "How many cats are there?"])
        ```
        """
        best = self.answer_n_best(images, questions, 1, batch_size)
        return [candidates[0][0] for candidates in best]

    def answer_n_best(
        self,
        images: Any,
        questions: list[str] | None,
        n: int,
        batch_size: int = BATCH_SIZE,
    ) -> list[list[tuple[str, float]]]:
        """Returns the `n` most probable answers to each of any number of questions.

        Args:
            images, questions, batch_size: As in `answer`.
            n: int, number of answers to each question.

        Returns:
            For each question a list of pairs: an answer, str, and its probability,
            float. The most probable answer is first.

        Raises:
            InputError: If the model has fewer than `n` answers, or as in `answer`.
        """
        self.check_number_of_answers(n)
        check(Count, batch_size=batch_size)
        raw = self._with_questions(images, questions)
        examples = self.examples_of(raw, batch_size)

        def run(inputs, places):
            return self.answer_batch(inputs, n)

        return [best for _, best in run_batches(examples, run, batch_size, self.fill)]

    def answer_batch(
        self, inputs: dict[str, Tensor], n: int
    ) -> list[list[tuple[str, float]]]:
        """Answers one batch of questions.

        Args:
            inputs: dict of tensors, as `read` returns it.
            n: int, number of answers to each question.

        Returns:
            As `answer_n_best` returns them.
        """
        probabilities = self._run(self.padded(inputs))  # (batch, answers)
        scores, ids = map(ops.convert_to_numpy, ops.top_k(probabilities, n))
        return [
            [(self.answers[i], float(p)) for p, i in zip(*row, strict=True)]
            for row in zip(scores, ids, strict=True)
        ]

    def _run(self, inputs: dict[str, Tensor]) -> Tensor:
        """Calls `probabilities`, which XLA compiles for each shape where it pays."""
        examples = len(next(iter(inputs.values())))
        by_xla = self.pays_off(examples, shapes_of(inputs))
        functions, key = self._compiled_functions, ("probabilities", by_xla)
        if key not in functions:
            functions[key] = compile_function(
                self.probabilities, self.variables, by_xla
            )
        return functions[key](inputs)

    def check_number_of_answers(self, n: int) -> None:
        """Raises `InputError` unless a question can have `n` answers."""
        check(Count, n=n)
        if n > len(self.answers):
            raise InputError(
                f"The model '{self.name}' knows {len(self.answers)} answers, not {n}."
            )

    def check_no_decoding(self, options: collections.abc.Mapping[str, Any]) -> None:
        """Raises `InputError` if options of decoding are set."""
        if options:
            raise InputError(
                f"Answers are not decoded: there is no option {min(options)!r}."
            )

    def question_tokens(self, questions: list[str]) -> Int32[np.ndarray, "questions T"]:
        """Token ids of questions, int32 `(number of questions, T)`.

        Raises:
            InputError: If `questions` is no list of str, one question is not Unicode,
                or the model has no tokenizer of questions.
        """
        if self.question is None:
            raise InputError(f"The model '{self.name}' has no tokenizer of questions.")
        check_texts(questions, "Question")
        # PAD stands for a question without words, so that its row has one token.
        return pad([self.question.to_ids(text) or [PAD] for text in questions])

    def _with_questions(self, images, questions) -> dict[str, Any]:
        """Joins images with the tokens of their questions, a dict of columns."""
        parts = {}
        if not isinstance(images, collections.abc.Mapping):
            parts["photos"] = check_photos(images)
        else:
            names = [*self.input_specs, "image", "image_id"]
            parts |= {n: images[n] for n in names if images.get(n) is not None}
        if questions is not None:
            parts["question"] = self.question_tokens(questions)
        counts = {name: len(values) for name, values in parts.items()}
        if len(set(counts.values())) > 1:
            raise InputError(
                "Every question needs an image of its own, and every input as many "
                f"rows. Received: {counts}"
            )
        return parts
