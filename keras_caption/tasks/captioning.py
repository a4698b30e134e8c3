"""Captioning of images and videos from their features, scored by CIDEr-D."""

import itertools
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired

import keras
from typing_extensions import Doc, TypedDict

import keras_caption as kc
from keras_caption.base.arguments import Count, CountOrZero, NotNegative, Positive
from keras_caption.base.errors import input_errors
from keras_caption.settings.decoding import BeamSize
from keras_caption.settings.run import (
    DecodingSettings,
    SelfCriticalSettings,
    Training,
)
from keras_caption.tasks.reported_task import ReportedTask
from keras_caption.training.callbacks import CaptionValidation
from keras_caption.training.caption_reward import Reward, reward_weights
from keras_caption.training.run_directory import RunDirectory
from keras_caption.training.schedules import schedule_of
from keras_caption.training.strategies import whole_batches
from keras_caption.training.task import (
    EXAMPLES_AT_ONCE,
    KEPT_IN_MEMORY,
    MODEL_FILES,
    RECORD_FILES,
    REPORTS,
)
from keras_caption.training.validation_loss import ValidationLoss


class Data(TypedDict):
    dataset: Annotated[
        str,
        Doc("such as scenes or moving_scenes (built in), coco_objects or prepared"),
    ]
    data_dir: Annotated[
        str | None, Doc("folder of COCO's annotations or of a prepared dataset")
    ]
    tokenizer: Annotated[Literal["words", "characters"], Doc("words or characters")]
    captions_per_image: Annotated[Count, Doc("captions of an image in a batch")]
    max_words: Annotated[Count, Doc("words or characters at which captions are cut")]
    min_count: Annotated[
        Count, Doc("least number of occurrences of a word in the vocabulary")
    ]
    vocabulary_split: Annotated[
        Literal["train", "all"], Doc("split whose words form the vocabulary")
    ]


class CaptionTraining(Training):
    patience: NotRequired[
        Annotated[
            CountOrZero,
            Doc(
                "epochs without a better `stop_on` before training stops; 0 trains all"
            ),
        ]
    ]
    stop_on: NotRequired[
        Annotated[
            Literal["val_cider", "val_loss"],
            Doc("score that `patience` watches: val_cider or val_loss"),
        ]
    ]


class CaptionSelfCritical(SelfCriticalSettings):
    batch_size: Annotated[Count, Doc("images or videos in a batch")]
    learning_rate: Annotated[
        Positive | None,
        Doc("constant learning rate of Adam; None continues the earlier schedule"),
    ]
    halved_after: Annotated[
        CountOrZero,
        Doc("epochs without a better score that halve the learning rate; 0 for never"),
    ]
    clip_value: Annotated[
        NotNegative, Doc("greatest absolute value of a gradient; 0 for no clipping")
    ]
    reward: Annotated[
        Reward, Doc("cider_d, truth, objects or places, or a sum: cider_d+32*truth")
    ]


class Evaluation(TypedDict):
    validation_beam_size: Annotated[
        BeamSize, Doc("beam width of the captions by which epochs are compared")
    ]
    spice: Annotated[
        bool, Doc("compute SPICE too; its first use downloads several hundred MB")
    ]


# Number of training images below which a third or more of a new model's captions are
# alike, or repeat a phrase (docs/results/captioning.md).
FEW = 500

FILES = {
    **MODEL_FILES,
    "history.json": "loss and CIDEr-D, times 100, of every epoch",
    "logs": "the same for TensorBoard, with captions",
    "test_results.json": "captions of the test split",
    "test_references.json": "references of the test split",
    "test_items.json": "CIDEr-D, and log-probabilities of references, of each image",
    "test_scores.json": "scores of the test split",
    "attention.png": "what the model attends to, token by token",
    **RECORD_FILES,
}
GROUPS = {
    "data": Data,
    "training": CaptionTraining,
    "self_critical": CaptionSelfCritical,
    "decoding": DecodingSettings,
    "evaluation": Evaluation,
}


def get_config(name: str) -> dict[str, Any]:
    """The built-in experiment: a small model, trained in minutes on two cores.

    Args:
        name: str, name of the model. Models of videos are trained on moving scenes.
    """
    config: dict[str, Any] = {
        "data": {
            "dataset": "scenes",  # built in
            "data_dir": None,
            "tokenizer": "words",  # or "characters"
            "captions_per_image": 5,  # all that an image has
            "max_words": 20,  # the length of the longest caption; or characters
            "min_count": 5,
            "vocabulary_split": "train",
        },
        "model": {  # a model ignores sizes that it does not have
            "name": "ngsan",
            "num_layers": 2,
            "model_dim": 128,
            "embedding_dim": 128,
            "num_heads": 4,
            "feedforward_dim": 512,
            "geometry_dim": 32,
            "dropout": 0.1,
        },
        "training": {
            "epochs": 14,
            "batch_size": 16,
            "learning_rate": 8e-4,  # reached after the first epoch
            "warmup_epochs": 1,
            "decay_after": 8,  # then halved every second epoch
            "decay_every": 2,
            "decay_rate": 0.5,
            "label_smoothing": 0.0,
            "scheduled_sampling": 0.0,
            "clip_value": 0.0,
            "patience": 0,  # epochs without a better `stop_on`; 0 trains all epochs
            "stop_on": "val_cider",
        },
        "self_critical": {
            "epochs": 0,  # none by default
            "batch_size": 16,
            "learning_rate": 1e-4,
            "reward": "cider_d",  # or, on scenes, a sum such as "cider_d+32*truth"
            "baseline": "greedy",
            "samples": 5,
            "temperature": 1.0,
            "cross_entropy": 0.0,
            "halved_after": 0,  # never
            "clip_value": 0.0,
        },
        "decoding": {
            "beam_size": 3,
            "max_length": 20,
            "length_penalty": 0.0,
        },
        "evaluation": {"validation_beam_size": 1, "spice": False},
    }
    if "frame_dim" in kc.models.data_arguments(name):
        config["data"] |= {"dataset": "moving_scenes", "max_words": 24}
        config["model"] |= {
            "name": "video_nsa",
            "num_layers": 1,
            "model_dim": 256,
            "embedding_dim": 256,
            # Frames differ by little: the noise of dropout would hide motion.
            "dropout": 0.0,
        }
        config["training"] |= {"epochs": 14, "decay_after": 12}
        config["decoding"] |= {"max_length": 24}
    return config


class Captioning(ReportedTask):
    """The data, the models and the report of a captioning experiment."""

    model = kc.models.Captioner
    groups = GROUPS
    files = FILES
    metrics = kc.evaluation.METRICS
    monitor = "val_cider"
    report = "captioning"
    get_config = staticmethod(get_config)

    def __init__(self, config: dict[str, Any]):
        super().__init__(config)
        self.builder = kc.datasets.load(self.data["dataset"], self.data["data_dir"])
        self.statements = kc.datasets.statements_of(self.builder)

    def read(self, split: str) -> Any:
        """Examples of a split, a tf.data dataset."""
        return kc.datasets.read(self.builder, split)

    # === Data ===

    def build_vocabularies(self) -> dict[str, kc.text.Tokenizer]:
        """Builds the vocabulary of the captions, an argument of the model."""
        data = self.data
        vocabulary = kc.datasets.build_vocabulary(
            self.builder, data["min_count"], data["vocabulary_split"], data["tokenizer"]
        )
        return {"vocabulary": vocabulary}

    @property
    def noun(self) -> str:
        """The noun for an example in messages: image or video."""
        features = self.builder.info.features
        kinds = (kind for kind in kc.inputs.KINDS if kind.keys[0] in features)
        return next(kinds, kc.inputs.InputKind).noun

    @property
    def training_size(self) -> str:
        """The size of the training data, for messages."""
        train, val, test = (
            f"{len(self.read(split)):,}" for split in ("train", "val", "test")
        )
        size = f"{train} training {self.noun}s, {val} for validation, {test} for test"
        if self.data["tokenizer"] == "words":
            return size
        longest = self.data["max_words"]
        references = kc.datasets.references(self.read("train"))
        captions = [*itertools.chain(*references.values())]
        cut = sum(len(caption) > longest for caption in captions)
        return (
            f"{size}, {cut:,} of {len(captions):,} captions cut at data.max_words="
            f"{longest} characters"
        )

    def steps_per_epoch(self, group: str, replicas: int = 1) -> int:
        """Number of steps of an epoch.

        Args:
            group: str, `"training"` or `"self_critical"`.
            replicas: int, number of replicas that share a batch.

        Raises:
            InputError: If there are fewer examples than in a batch, the replicas cannot
                share a batch, or the dataset lacks inputs of the reward.
        """
        self._check_rewarded(group)
        size, batch_size = len(self.read("train")), self.config[group]["batch_size"]
        return whole_batches(size, batch_size, replicas, f"{self.noun}s")

    def _rewards(self, group):
        """Weights of the rewards of a phase, by name.

        Cross-entropy counts as CIDEr-D, which needs no more than captions.
        """
        return reward_weights(self.config[group].get("reward", "cider_d"))

    def _check_rewarded(self, group):
        """Raises `InputError` if the dataset lacks the truth that a reward needs."""
        judged = self.statements and self.statements.truth
        has_objects = isinstance(self.builder, kc.datasets.CocoObjects)
        for name, known, needs in (
            ("truth", judged, "whose statements can be judged in training, as scenes"),
            ("objects", has_objects, "of COCO's objects, coco_objects"),
        ):
            by_words = self.data["tokenizer"] == "words"
            if name in self._rewards(group) and not (known and by_words):
                raise kc.InputError(
                    f"self_critical.reward: {name!r} needs a dataset {needs}, and a "
                    f"tokenizer of words; received {self.data['dataset']} by "
                    f"{self.data['tokenizer']}."
                )

    def train_batches(self, model: Any, group: str, first_epoch: int) -> Any:
        """Endless batches for a model, see `keras_caption.batches.train_batches`."""
        examples, keep = self.read("train"), ()
        statements = self.statements
        if "truth" in self._rewards(group):
            # The settings are checked.
            assert statements is not None
            assert statements.with_facts is not None
            examples = statements.with_facts(examples)
            keep = statements.truth.reads
        return kc.batches.train_batches(
            examples,
            model.vocabulary,
            self.config[group]["batch_size"],
            kc.batches.BatchOptions(
                captions_per_image=self.data["captions_per_image"],
                max_words=self.data["max_words"],
                seed=self.config["seed"],
                cache=self.builder.info.splits["train"].num_bytes < KEPT_IN_MEMORY,
                few_shapes=self.few_shapes,
            ),
            inputs=model.input_specs,
            first_epoch=first_epoch,
            keep=keep,
        )

    def make_reward(
        self, model: Any, directory: RunDirectory, resumed: bool
    ) -> kc.rewards.WeightedSum:
        """Makes the weighted sum of rewards of the configuration.

        Args:
            model: The captioner.
            directory: `RunDirectory` of self-critical training, to which the document
                frequencies of the training captions are written.
            resumed: bool, whether to read the document frequencies from there.
        """
        make = {
            "cider_d": lambda: self._make_cider_d(model, directory, resumed),
            "truth": lambda: self._make_truth(model),
            "objects": lambda: kc.rewards.ObjectTruth(model.vocabulary),
            "places": lambda: kc.rewards.PlaceTruth(model.vocabulary),
        }
        weights = reward_weights(self.config["self_critical"]["reward"])
        return kc.rewards.WeightedSum(
            [make[name]() for name in weights], list(weights.values())
        )

    def _make_truth(self, model):
        assert self.statements is not None  # the settings are checked
        return self.statements.truth(model.vocabulary)

    def _make_cider_d(self, model, directory, resumed):
        path = directory.folder / "document_frequencies.npz"
        if resumed:
            frequencies = kc.rewards.DocumentFrequencies.load(path, model.vocabulary)
            return kc.rewards.CiderD(frequencies)
        frequencies = kc.rewards.DocumentFrequencies.count(
            kc.batches.reference_tokens(
                self.read("train"), model.vocabulary, self.data["max_words"]
            )
        )
        if directory.is_chief:
            frequencies.save(path, model.vocabulary)
        return kc.rewards.CiderD(frequencies)

    # === Models ===

    def data_arguments(self) -> dict[str, Any]:
        """Sizes of the features, and their extractor."""
        name = self.config["model"]["name"]
        dataset, folder = self.data["dataset"], self.data["data_dir"]
        return {
            **kc.datasets.reader_of(dataset, folder, self.builder),
            **kc.datasets.model_sizes(name, dataset, self.builder),
        }

    def create_model(self, vocabularies: Mapping[str, Any]) -> kc.models.Captioner:
        """Makes a new model, and prints a note if there are few training examples.

        Raises:
            InputError: If it reads what the dataset lacks, such as boxes.
        """
        count = len(self.read("train"))
        if count < FEW:
            print(
                f"note: {count:,} training {self.noun}s are few for a new model, whose "
                f"captions are often alike below {FEW:,}: --start_from a saved one"
            )
        model = super().create_model(vocabularies)
        self.check_reads(model)
        return model

    def make_optimizer(
        self, group: str, steps_per_epoch: int
    ) -> keras.optimizers.Optimizer:
        """Makes the optimizer of a phase: Adam with the schedule of its group."""
        values = self.config[group]
        rate = values["learning_rate"]
        if group == "training":
            rate = schedule_of(values, steps_per_epoch)
        elif rate is None:
            # The schedule of cross-entropy, from its last epoch on.
            training = self.config["training"]
            rate = schedule_of(training, steps_per_epoch, training["epochs"])
        return keras.optimizers.Adam(rate, clipvalue=values["clip_value"] or None)

    def load_model(self, path: Any) -> Any:
        """Loads a model, with the extractor of the dataset if the model has none."""
        model = super().load_model(path)
        if model.extractor is None:
            dataset, folder = self.data["dataset"], self.data["data_dir"]
            reader = kc.datasets.reader_of(dataset, folder, self.builder)
            model.extractor = reader["extractor"]
        return model

    def check_reads(self, model: Any) -> None:
        """Raises `InputError` if a model cannot read the features of the dataset."""
        first = self.read("test").take(1)
        for batch in kc.batches.image_batches(first, 1, model.input_specs):
            with input_errors():
                model.read(batch)

    # === Evaluation ===

    def validation(self, model: Any) -> CaptionValidation:
        """Makes the callback that scores captions of the validation split."""
        examples = self.read("val")
        references = kc.datasets.references(examples)
        characters = by_characters(model, references)
        for name, note in kc.evaluation.notes_on_references(references).items():
            if not (characters and name == "note"):
                print(f"Validation, {name}: {note}")
        return CaptionValidation(
            kc.batches.image_batches(examples, EXAMPLES_AT_ONCE, model.input_specs),
            references,
            self.config["evaluation"]["validation_beam_size"],
            characters,
            ValidationLoss(
                model,
                kc.batches.reference_batches(
                    examples,
                    model.vocabulary,
                    self.config["training"]["batch_size"],
                    self.data["max_words"],
                    model.input_specs,
                    self.few_shapes,
                ),
                self.few_shapes,
            ),
        )

    def summaries(self, model: Any) -> dict[str, Any]:
        """Some captions of the validation split, and the attention of their words."""
        return REPORTS[self.report].summaries(self, model)

    def check_evaluation(self) -> None:
        kc.evaluation.check_metrics(self.config["evaluation"]["spice"])


def by_characters(model: Any, references: dict[int, list[str]]) -> bool:
    """Whether captions are scored by characters, as in languages without spaces.

    Args:
        model: A captioner. Its tokens must be characters too.
        references: dict from image id to a list of str.
    """
    texts = [text for captions in references.values() for text in captions]
    is_character = isinstance(model.vocabulary, kc.text.CharacterTokenizer)
    return is_character and kc.evaluation.lacks_spaces(texts)
