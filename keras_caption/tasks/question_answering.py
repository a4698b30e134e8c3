"""Answers to questions about images, scored by accuracy."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import keras
import tensorflow as tf
from typing_extensions import Doc, TypedDict

import keras_caption as kc
from keras_caption.base.arguments import Count
from keras_caption.settings.run import Schedule
from keras_caption.tasks.reported_task import ReportedTask
from keras_caption.training.answer_validation import AnswerValidation
from keras_caption.training.schedules import schedule_of
from keras_caption.training.strategies import whole_batches
from keras_caption.training.task import (
    KEPT_IN_MEMORY,
    MODEL_FILES,
    RECORD_FILES,
)


class Data(TypedDict):
    dataset: Annotated[
        str, Doc("scene_questions (built in), coco_qa, vsr, vqa or vqa_coco_qa")
    ]
    data_dir: Annotated[str | None, Doc("folder of the questions")]
    images: Annotated[str, Doc("dataset of the images")]
    images_dir: Annotated[str | None, Doc("folder of the images' dataset")]
    min_count: Annotated[Count, Doc("least number of questions of an answer")]
    vocabulary_split: Annotated[
        Literal["train", "all"], Doc("split whose words form the vocabulary")
    ]
    word_vectors: Annotated[
        str | None, Doc("file of pretrained word vectors, such as GloVe's")
    ]


class Training(Schedule):
    epochs: Annotated[Count, Doc("epochs of training")]
    batch_size: Annotated[Count, Doc("questions in a batch")]
    curriculum: Annotated[bool, Doc("whether hard kinds of questions come later")]


FILES = {
    **MODEL_FILES,
    "history.json": "loss and accuracy, times 100, of every epoch",
    "logs": "the same for TensorBoard",
    "test_results.json": "answers to the test questions, in the format of VQA's server",
    "server_results.json": "the same for questions without known answers",
    "test_items.json": "the accuracy of each answer",
    "test_scores.json": "scores of the test questions",
    "attention.png": "which regions attend to which words of a question",
    **RECORD_FILES,
}
GROUPS = {"data": Data, "training": Training}


def get_config(name: str) -> dict[str, Any]:
    """The built-in experiment: a small model, trained in minutes on two cores.

    Args:
        name: str, name of the model. All models have the same experiment.
    """
    return {
        "data": {
            "dataset": "scene_questions",  # built in
            "data_dir": None,
            "images": "scenes",
            "images_dir": None,
            "min_count": 1,  # of answers; all words of the questions are known
            "vocabulary_split": "train",
            "word_vectors": None,  # a file of GloVe
        },
        "model": {  # a model ignores sizes that it does not have
            "name": "mcan",
            "num_layers": 3,
            "model_dim": 64,
            "num_heads": 4,
            "feedforward_dim": 256,
            "embedding_dim": 64,
            "pooling_dim": 64,
            "fusion_dim": 128,
            "geometry_dim": 16,
            "dropout": 0.0,  # with so many questions the model does not overfit
            "multi_label": False,  # every question has one answer
        },
        "training": {
            "epochs": 12,
            "batch_size": 128,
            "learning_rate": 4e-4,  # with 1e-3, deeper models hardly learn
            "warmup_epochs": 1,
            "decay_after": 9,  # then halved every epoch
            "decay_every": 1,
            "decay_rate": 0.5,
            "curriculum": True,  # easy kinds first, if the dataset ranks its kinds
        },
    }


class QuestionAnswering(ReportedTask):
    """The data, the models and the report of an experiment of question answering."""

    model = kc.models.Classifier
    ensemble = kc.models.ClassifierEnsemble
    groups = GROUPS
    files = FILES
    metrics = ("accuracy",)
    monitor = "val_accuracy"
    report = "question_answering"
    get_config = staticmethod(get_config)

    def __init__(self, config: dict[str, Any]):
        super().__init__(config)
        data = self.data
        self.questions = kc.datasets.load_questions(
            *(data["dataset"], data["data_dir"], data["images"], data["images_dir"])
        )

    def read(self, split: str) -> list[kc.datasets.Question]:
        """Questions of a split."""
        return self.questions.questions[split]

    # === Data ===

    def build_vocabularies(self) -> dict[str, Any]:
        """Builds the tokenizer of questions and the answers, arguments of the model."""
        splits = [*self.questions.questions.values()]
        if self.data["vocabulary_split"] == "train":
            splits = [self.read("train")]
        # The validation questions may be the test questions too.
        every = {q.question_id: q for q in itertools.chain(*splits)}.values()
        tokenizer = kc.text.QuestionTokenizer.build([q.text for q in every], 1)
        answers = kc.batches.build_answers(every, self.data["min_count"])
        return {"question": tokenizer, "answers": answers}

    @property
    def training_size(self) -> str:
        """The size of the training data, for messages."""
        count, skipped = len(self.read("train")), self.questions.skipped
        without = f" ({skipped:,} without an image are skipped)" if skipped else ""
        return f"{count:,} training questions{without}"

    def steps_per_epoch(self, group: str, replicas: int = 1) -> int:
        """Number of steps of an epoch.

        Args:
            group: str, `"training"`.
            replicas: int, number of replicas that share a batch.

        Raises:
            InputError: If there are fewer questions than in a batch, or the replicas
                cannot share a batch.
        """
        batch_size = self.config[group]["batch_size"]
        return whole_batches(len(self.read("train")), batch_size, replicas, "questions")

    def encode(
        self,
        model: Any,
        split: str,
        questions: Sequence[kc.datasets.Question] | None = None,
    ) -> kc.batches.EncodedQuestions:
        """Encodes the questions of a split for a model, or some of them."""
        questions = self.read(split) if questions is None else questions
        return kc.batches.EncodedQuestions(
            questions,
            model.question_tokens([q.text for q in questions]),
            model.answers,
            self.questions.images(split),
            model.input_specs,
            self.few_shapes,
        )

    def train_batches(
        self, model: Any, group: str, first_epoch: int
    ) -> tf.data.Dataset:
        """Endless batches, see `keras_caption.batches.EncodedQuestions`."""
        splits = self.questions.builder.info.splits.values()
        return self.encode(model, "train").train_batches(
            self.config[group]["batch_size"],
            self.config["seed"],
            first_epoch,
            cache=sum(split.num_bytes for split in splits) < KEPT_IN_MEMORY,
            curriculum=(
                self.questions.curriculum if self.config[group]["curriculum"] else None
            ),
        )

    # === Models ===

    def data_arguments(self) -> dict[str, Any]:
        """Sizes of the features, and their extractor."""
        name, builder = self.config["model"]["name"], self.questions.builder
        images, folder = self.data["images"], self.data["images_dir"]
        return {
            **kc.datasets.reader_of(images, folder, builder),
            **kc.datasets.model_sizes(name, images, builder),
        }

    def create_model(self, vocabularies: Mapping[str, Any]) -> kc.models.Classifier:
        """Makes a new model, with word vectors if the configuration names some."""
        model = super().create_model(vocabularies)
        if self.data["word_vectors"]:
            model.load_word_vectors(self.data["word_vectors"])
        return model

    def make_loss(self) -> keras.losses.Loss:
        """Cross-entropy; of the soft scores of answers if several may be right."""
        return kc.losses.AnswerCrossEntropy(self.config["model"]["multi_label"])

    def make_optimizer(
        self, group: str, steps_per_epoch: int
    ) -> keras.optimizers.Optimizer:
        """Makes Adam as in MCAN's released code, with the schedule of the group."""
        schedule = schedule_of(self.config[group], steps_per_epoch)
        return keras.optimizers.Adam(schedule, beta_2=0.98, epsilon=1e-9)

    # === Evaluation ===

    def validation(self, model: Any) -> AnswerValidation:
        """Makes the callback that scores answers to the validation questions."""
        return AnswerValidation(self.read("val"), self.encode(model, "val"))
