"""Datasets of questions about the images of other datasets."""

import collections
import dataclasses
import os
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow_datasets as tfds

from keras_caption.base.errors import InputError, need_name
from keras_caption.base.registration import Registry
from keras_caption.datasets.image_ids import given_ids
from keras_caption.datasets.registry import load, read
from keras_caption.formats.coco_qa import read_coco_qa
from keras_caption.formats.folders import list_files
from keras_caption.formats.question import Question
from keras_caption.formats.vqa import find_vqa, read_vqa
from keras_caption.formats.vsr import read_vsr


@dataclasses.dataclass(frozen=True)
class ImageQuestions:
    """Questions about images, by split.

    Attributes:
        builder: TFDS builder of the images, from `load`.
        split_of_image: dict from image id to its split in `builder`.
        questions: dict from split to a list of
            `keras_caption.formats.question.Question`. `train`, `val` and `test` have
            known answers; the optional `unanswered` has unknown ones.
        skipped: int, number of questions whose image is not in `builder`.
        curriculum: dict from kind of question to the first epoch that asks it, see
            `keras_caption.batches.EncodedQuestions`; empty for most datasets.
    """

    builder: Any
    split_of_image: dict[int, str]
    questions: dict[str, list[Question]]
    skipped: int
    curriculum: dict[str, int]

    def images(self, split: str, images: bool = False) -> Any:
        """Reads the examples of all splits that have images of a split's questions.

        Args:
            split: str, one of `questions`.
            images: bool, see `read`.

        Returns:
            `tf.data.Dataset`, see `read`. It includes images without a question of this
            split.
        """
        asked = {q.image_id for q in self.questions[split]}
        splits = {part for i, part in self.split_of_image.items() if i in asked}
        return read(self.builder, "+".join(sorted(splits)), images)


def read_features(builder: Any, split: str, *names: str) -> Any:
    """Reads some features of the examples of a split, without decoding others."""
    parts = tfds.decode.PartialDecoding({*names})
    examples = builder.as_dataset(split=split, decoders=parts, shuffle_files=False)
    return examples.as_numpy_iterator()


def _by_image(questions, split_of_image):
    """Groups questions by their own split or, without one, by that of their image."""
    splits = collections.defaultdict(list)
    for question in questions:
        split = question.split or split_of_image.get(question.image_id, "train")
        splits[split].append(question)
    return splits


def _coco_qa(path, builder, split_of_image):
    return _by_image(read_coco_qa(_needed(path, "coco_qa")), split_of_image)


def _vsr(path, builder, split_of_image):
    return _by_image(read_vsr(_needed(path, "vsr")), split_of_image)


def _vqa(path, builder, split_of_image):
    splits = {}
    for split, files in find_vqa(_needed(path, "vqa")).items():
        answered = files[1] is not None
        splits[split if answered else "unanswered"] = read_vqa(*files)
        print(f"{files[0]}: for {split}{'' if answered else ', without answers'}")
    # Only the evaluation server knows the answers of VQA's test split.
    return {"test": splits["val"], **splits}


def _vqa_coco_qa(path, builder, split_of_image):
    splits = _vqa(path, builder, split_of_image)
    files = list_files(pathlib.Path(path), (".json", ".json.gz"))
    files = [file for file in files if "cocoqa" in file.name]
    if len(files) != 1:
        raise InputError(
            f"{path} has {len(files)} files of COCO-QA, named *cocoqa*.json; it should "
            "have one."
        )
    for split, questions in _coco_qa(files[0], builder, split_of_image).items():
        splits[split] = splits.get(split, []) + [
            dataclasses.replace(
                q, question_id=-1 - q.question_id, answer_type=f"COCO-QA, {q.kind}"
            )
            for q in questions
        ]
    return splits


def _needed(path, name):
    if path is None:
        raise InputError(f"The questions of {name} need the path that they are at.")
    return path


QUESTIONS = Registry(
    "questions",
    {"coco_qa": _coco_qa, "vsr": _vsr, "vqa": _vqa, "vqa_coco_qa": _vqa_coco_qa},
)
CURRICULA = Registry("curricula")  # of datasets that have one


def register_questions(
    name: str,
    make: Callable[..., dict[str, list]],
    curriculum: Mapping[str, int] | None = None,
) -> None:
    """Registers a dataset of questions by name, for `load_questions`.

    Args:
        name: str.
        make: Function of three arguments: the path of the questions, or `None`; the
            TFDS builder of the images; and a dict from image id to split. It returns a
            dict from split to a list of `keras_caption.formats.question.Question`.
        curriculum: dict from kind of question to the first epoch that asks it; other
            kinds are asked from the first epoch on.

    Raises:
        InputError: If there is a dataset of that name already.
    """
    if name in QUESTIONS:
        raise InputError(f"There is a dataset of questions {name!r} already.")
    QUESTIONS[name] = make
    if curriculum:
        CURRICULA[name] = dict(curriculum)


def load_questions(
    name: str,
    path: str | os.PathLike | None = None,
    images: str = "scenes",
    images_dir: str | os.PathLike | None = None,
    **kwargs: Any,
) -> ImageQuestions:
    """Loads questions about images.

    | name | `path` | questions |
    |---|---|---|
    | `scene_questions` | `None` | about generated `scenes`, which know their answers |
    | `coco_qa` | JSON file | COCO-QA, one-word answers; split by file or by image |
    | `vsr` | JSON file | statements, true or false; split by image |
    | `vqa` | folder | VQA, see `keras_caption.formats.vqa.find_vqa` |
    | `vqa_coco_qa` | folder | both, COCO-QA in a file `*cocoqa*.json` |

    Questions about images that the dataset lacks are skipped and counted. VQA has its
    own splits, independent of the splits of images. If the answers of its test split
    are unknown, these questions are `unanswered`, and `test` equals `val`. In
    `vqa_coco_qa`, the ids of COCO-QA's questions are below 0, and their answer types
    are `COCO-QA, object` and so on.

    Args:
        name: str, a name in the table, or a registered one.
        path: Path of the questions.
        images: str, dataset of the images: a name that `load` knows.
        images_dir: Path, the argument `folder` of `load`.
        **kwargs: Further arguments of `load`.

    Returns:
        `ImageQuestions`.

    Raises:
        InputError: If the dataset is unknown, its files are missing or damaged, or a
            split has no question about an image of the dataset.
    """
    need_name(name, QUESTIONS, f"There is no dataset of questions {name!r}")
    builder = load(images, images_dir, **kwargs)
    split_of_image = {
        int(example["image_id"]): split
        for split, info in builder.info.splits.items()
        if info.num_examples
        for example in read_features(builder, split, "image_id")
    }
    names = given_ids(builder)
    number_of = {names.get(number, number): number for number in split_of_image}
    splits_by_id = {id_: split_of_image[number] for id_, number in number_of.items()}
    splits, skipped = {}, set()
    asked_of = QUESTIONS[name](path, builder, splits_by_id)
    for split, questions in asked_of.items():
        splits[split] = [
            dataclasses.replace(q, image_id=number_of[q.image_id]) if names else q
            for q in questions
            if q.image_id in splits_by_id
        ]
        skipped |= {q.question_id for q in questions} - {
            q.question_id for q in splits[split]
        }
    for split in ("train", "val", "test"):
        if not splits.get(split):
            why = ""
            if asked := asked_of.get(split):
                why = (
                    f": questions are about {asked[0].image_id!r:.60} and so on, and "
                    f"its images are {next(iter(splits_by_id))!r:.60} and so on"
                )
            raise InputError(
                f"None of the images in {builder.data_path} has a question for "
                f"{split!r} in {path or name}{why}."
            )
    counts = ", ".join(f"{len(asked):,} {s}" for s, asked in splits.items())
    print(f"{path or name}: questions: {counts}; {len(skipped):,} of no image here")
    curriculum = CURRICULA.get(name, {})
    return ImageQuestions(builder, split_of_image, splits, len(skipped), curriculum)
