import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Question:
    """A question about an image.

    Attributes:
        question_id: int, different for each question of a dataset.
        image_id: int, or str if the id of the image is a name.
        text: str.
        answers: Tuple of str: the ten annotators' answers of VQA, or the only answer;
            empty if the answer is not known.
        main_answer: str, the most frequent answer of the annotators according to the
            file, or the only answer.
        kind: str, type of the question, such as `"how many"`.
        answer_type: str, type of the answer, such as `"yes/no"`; empty if the dataset
            has none.
        split: str, `"train"`, `"val"` or `"test"`; `None` if the file has no splits.
    """

    question_id: int
    image_id: int | str
    text: str
    answers: tuple[str, ...] = ()
    main_answer: str = ""
    kind: str = ""
    answer_type: str = ""
    split: str | None = None
