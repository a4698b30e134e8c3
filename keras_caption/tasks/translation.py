"""Translation of sentences, scored by BLEU."""

import functools
import itertools
from typing import Annotated, Any, Literal, NotRequired

import keras
from pydantic import Field
from typing_extensions import Doc, TypedDict

import keras_caption as kc
from keras_caption.base.arguments import (
    Count,
    CountOrZero,
    Positive,
    ShareBelowOne,
)
from keras_caption.base.errors import need_packages
from keras_caption.batches.pipeline import distributed
from keras_caption.batches.token_batches import TokenizedPairs
from keras_caption.inputs.text import MAX_TOKENS
from keras_caption.rewards.ngrams import MAX_WORDS
from keras_caption.settings.decoding import BeamSize
from keras_caption.settings.run import DecodingSettings, SelfCriticalSettings
from keras_caption.tasks.reported_task import ReportedTask
from keras_caption.text.subwords import VocabularySize
from keras_caption.training.callbacks import TranslationValidation
from keras_caption.training.inverse_square_root import InverseSquareRoot
from keras_caption.training.task import MODEL_FILES, RECORD_FILES
from keras_caption.training.validation_loss import ValidationLoss

NO_SPACES = (
    "note: these references have no spaces. BLEU counts words, and means nothing here; "
    "chrF counts characters."
)
TOKENIZERS = {
    "subwords": lambda texts, size: kc.text.SubwordTokenizer.build(texts, size),
    "characters": lambda texts, size: kc.text.CharacterTokenizer.build(texts),
    "words": lambda texts, size: kc.text.WordTokenizer.build(texts, 1),
}


class Data(TypedDict):
    dataset: Annotated[
        str, Doc("scene_sentences (built in), parallel, or a registered one")
    ]
    data_dir: Annotated[str | None, Doc("folder of the sentences' files")]
    test_set: NotRequired[
        Annotated[
            str | None, Doc("files for test, of several, such as test_2017_flickr")
        ]
    ]
    source: Annotated[str, Doc("language of the sentences")]
    target: Annotated[str, Doc("language of their translations")]
    tokenizer: Annotated[
        Literal["subwords", "characters", "words"], Doc("subwords, characters or words")
    ]
    vocabulary_size: Annotated[VocabularySize, Doc("number of subwords")]
    joint: Annotated[bool, Doc("whether both languages share one vocabulary")]
    max_tokens: Annotated[
        int,
        Field(ge=1, le=MAX_TOKENS),
        Doc("tokens of a sentence; longer pairs are dropped"),
    ]


class Training(TypedDict):
    epochs: Annotated[Count, Doc("epochs of cross-entropy")]
    tokens_per_batch: Annotated[Count, Doc("tokens in a batch, padding included")]
    max_steps: NotRequired[
        Annotated[Count | None, Doc("updates that end training before `epochs`")]
    ]
    learning_rate: Annotated[
        Positive | None,
        Doc("learning rate of Adam after the warm-up; None: by the model's size"),
    ]
    warmup_steps: Annotated[Count, Doc("updates in which the learning rate grows")]
    label_smoothing: Annotated[
        ShareBelowOne, Doc("probability that the right token gives to all tokens")
    ]
    accumulation: Annotated[
        int, Field(ge=1, le=32), Doc("batches whose gradients are added to one update")
    ]
    average: Annotated[Count, Doc("epochs whose weights are averaged before scoring")]
    patience: Annotated[
        CountOrZero,
        Doc("epochs without a better `stop_on` before training stops; 0 trains all"),
    ]
    stop_on: Annotated[
        Literal["val_bleu", "val_loss"],
        Doc("score that `patience` watches: val_bleu or val_loss"),
    ]


class TranslationSelfCritical(SelfCriticalSettings):
    tokens_per_batch: Annotated[
        Count, Doc("tokens of references in a batch, padding included")
    ]
    learning_rate: Annotated[Positive, Doc("constant learning rate of Adam")]


class Evaluation(TypedDict):
    validation_beam_size: Annotated[
        BeamSize, Doc("beam width of the translations by which epochs are compared")
    ]
    tokenized: Annotated[bool, Doc("whether sentences are tokenized already, for BLEU")]


FILES = {
    **MODEL_FILES,
    "weights": "weights of the last epochs, if they are averaged",
    "history.json": "loss and BLEU, times 100, of every epoch",
    "logs": "the same for TensorBoard",
    "test_translations.txt": "translations of the test split, one in each line",
    "test_items.json": "each sentence's parts of BLEU and log perplexity",
    "test_scores.json": "scores of the test split",
    **RECORD_FILES,
}
GROUPS = {
    "data": Data,
    "training": Training,
    "self_critical": TranslationSelfCritical,
    "decoding": DecodingSettings,
    "evaluation": Evaluation,
}


def get_config(name: str) -> dict[str, Any]:
    """The built-in experiment: a tiny Transformer, trained in minutes on two cores.

    Args:
        name: str, name of the model. All models have the same experiment.
    """
    return {
        "data": {
            "dataset": "scene_sentences",  # built in
            "data_dir": None,
            "test_set": None,  # the only one
            "source": "en",
            "target": "de",
            "tokenizer": "subwords",
            "vocabulary_size": 500,
            "joint": True,  # one vocabulary of both languages
            "max_tokens": 64,  # of either sentence; longer pairs are dropped
        },
        "model": {"name": "transformer_tiny", "shared_embeddings": True},
        "training": {
            "epochs": 8,
            "max_steps": None,  # updates after which training ends
            "tokens_per_batch": 2048,  # padding included
            "learning_rate": 2e-3,  # at the end of the warm-up
            "warmup_steps": 400,  # updates
            "label_smoothing": 0.1,
            "accumulation": 1,  # batches of one update
            "average": 1,  # epochs whose weights are averaged before scoring
            "patience": 0,  # epochs without a better `stop_on`; 0 trains all epochs
            "stop_on": "val_bleu",
        },
        "self_critical": {
            "epochs": 0,  # none by default
            "tokens_per_batch": 1024,  # padding included, of the references
            "learning_rate": 1e-4,
            "baseline": "greedy",
            "samples": 5,
            "temperature": 1.0,
            "cross_entropy": 0.0,
        },
        "decoding": {
            "beam_size": 4,
            "max_length": 64,
            # At most 2 n + 10 tokens for a source of n tokens, EOS included.
            "length_ratio": 2.0,
            "length_margin": 10,
            "length_penalty": 0.6,  # Wu et al., 2016
        },
        "evaluation": {"validation_beam_size": 1, "tokenized": False},
    }


class Translation(ReportedTask):
    """The data, the models and the report of a translation experiment."""

    model = kc.models.Translator
    groups = GROUPS
    files = FILES
    metrics = ("BLEU", "chrF", "exact", "log_perplexity")
    monitor = "val_bleu"
    report = "translation"
    get_config = staticmethod(get_config)

    def __init__(self, config: dict[str, Any]):
        super().__init__(config)
        data = self.data
        self.text = kc.datasets.load_parallel(
            data["dataset"],
            data["data_dir"],
            data["source"],
            data["target"],
            data.get("test_set"),
        )

    def read(self, split: str) -> Any:
        """Pairs of a split, a tf.data dataset."""
        return self.text.read(split)

    def sentences(self, split: str) -> tuple[list[str], list[str]]:
        """Source sentences of a split, and their translations."""
        pairs = [*self.read(split).as_numpy_iterator()]
        source, target = (
            [pair[side].decode() for pair in pairs] for side in ("source", "target")
        )
        return source, target

    # === Data ===

    def build_vocabularies(self) -> dict[str, kc.text.Tokenizer]:
        """Builds the tokenizers of both languages, arguments of the model."""
        return self._tokenizers

    @functools.cached_property
    def _tokenizers(self):
        data = self.data
        build, size = TOKENIZERS[data["tokenizer"]], data["vocabulary_size"]
        source, target = self.sentences("train")
        if data["joint"]:
            joint = build(itertools.chain(source, target), size)
            return {"source": joint, "target": joint}
        return {"source": build(source, size), "target": build(target, size)}

    @functools.cached_property
    def _pairs(self):
        return self._tokenized("train")

    def _tokenized(self, split):
        return TokenizedPairs(
            self.read(split),
            self._tokenizers["source"],
            self._tokenizers["target"],
            self.data["max_tokens"],
            # For few shapes, batches repeat pairs; a validation loss must not.
            self.few_shapes and split == "train",
        )

    @property
    def training_size(self) -> str:
        """The size of the training data, for messages."""
        pairs = self._pairs
        return f"{len(pairs.lengths):,} training pairs ({pairs.dropped:,} too long)"

    def steps_per_epoch(self, group: str, replicas: int = 1) -> int:
        """Number of steps of an epoch.

        Args:
            group: str, `"training"` or `"self_critical"`.
            replicas: int, number of replicas that share a batch.

        Raises:
            InputError: If a batch does not hold a pair for each replica, or there are
                fewer batches than an update needs.
        """
        values = self.config[group]
        return self._pairs.steps_per_epoch(
            values["tokens_per_batch"], values.get("accumulation", 1), replicas
        )

    def train_batches(self, model: Any, group: str, first_epoch: int) -> Any:
        """Endless batches, or groups of them, see `TokenizedPairs.batches`."""
        values = self.config[group]

        def part_of_batches(*part):
            batches = self._pairs.batches(
                values["tokens_per_batch"],
                self.config["seed"],
                first_epoch,
                values.get("accumulation", 1),
                part,
            )
            return batches if group == "training" else batches.map(with_references)

        # Models have a strategy on TensorFlow only.
        strategy = getattr(model, "distribute_strategy", None)
        return distributed(strategy, part_of_batches)

    def make_reward(
        self, model: Any, directory: Any, resumed: bool
    ) -> kc.rewards.SentenceBleu:
        """Makes the reward, sentence BLEU of tokens.

        Args:
            model: The translator.
            directory, resumed: Ignored: the reward has no state.

        Raises:
            InputError: If the tokenizers of the model are not those of the training
                data, or its vocabulary is too large for the reward.
        """
        for side, tokenizer in self._tokenizers.items():
            if getattr(model, side) != tokenizer:
                raise kc.InputError(
                    f"The tokenizer of the {side} language differs from the tokenizer "
                    "of the model that self-critical training starts from."
                )
        if len(model.target) > MAX_WORDS:
            raise kc.InputError(
                f"Sentence BLEU needs at most {MAX_WORDS:,} tokens, and the model has "
                f"{len(model.target):,}."
            )
        return kc.rewards.SentenceBleu()

    # === Training ===

    def make_optimizer(
        self, group: str, steps_per_epoch: int
    ) -> keras.optimizers.Optimizer:
        """Makes Adam: with constants of Vaswani et al., section 5.3, at first."""
        values = self.config[group]
        if group == "self_critical":
            return keras.optimizers.Adam(values["learning_rate"])
        rate, warmup = values["learning_rate"], values["warmup_steps"]
        if rate is None:
            rate = (self.config["model"]["model_dim"] * warmup) ** -0.5
        schedule = InverseSquareRoot(rate, warmup)
        return keras.optimizers.Adam(schedule, beta_1=0.9, beta_2=0.98, epsilon=1e-9)

    # === Evaluation ===

    def validation(self, model: Any) -> TranslationValidation:
        """Makes the callback that scores translations of the validation split."""
        evaluation = self.config["evaluation"]
        sources, references = self.sentences("val")
        references = [model.vocabulary.as_decoded(text) for text in references]
        if kc.evaluation.lacks_spaces(references):
            print(f"Validation, {NO_SPACES}")
        return TranslationValidation(
            sources,
            references,
            evaluation["tokenized"],
            self._validation_loss(model),
            beam_size=evaluation["validation_beam_size"],
        )

    def _validation_loss(self, model):
        """Makes the loss over the validation split, without pairs that are too long."""
        pairs, tokens = (
            self._tokenized("val"),
            self.config["training"]["tokens_per_batch"],
        )
        batches = pairs.batches(tokens).take(pairs.steps_per_epoch(tokens))
        return ValidationLoss(model, batches)

    def check_evaluation(self) -> None:
        need_packages("sacrebleu", "tabulate")


def with_references(inputs, targets, weights):
    """Converts a batch of `TokenizedPairs` to one of `SelfCritical`."""
    return {"source": inputs["source"], "references": targets[:, None]}
