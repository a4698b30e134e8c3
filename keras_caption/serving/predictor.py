import collections.abc
import functools
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import keras
import numpy as np

from keras_caption.decoding import with_decoding
from keras_caption.decoding.search import is_hypothesis
from keras_caption.decoding.text_options import (
    check_texts,
    forbidden_tokens,
    phrases_of,
)
from keras_caption.errors import InputError
from keras_caption.features import (
    MAX_PIXELS,
    Clip,
    ClipExtractor,
    ObjectDetector,
)
from keras_caption.features.object_words import least_score, several_of_one
from keras_caption.inputs import read
from keras_caption.inputs.text import MAX_TOKENS
from keras_caption.models import ClassifierEnsemble, Ensemble, load
from keras_caption.models.answering import Answering
from keras_caption.models.input_reader import BATCH_SIZE
from keras_caption.serving.detection import add_detector
from keras_caption.serving.prediction import Prediction
from keras_caption.serving.records import array_of, clip_of, photo_of
from keras_caption.serving.rest_values import DEFAULT
from keras_caption.serving.signature import Signature
from keras_caption.serving.signatures import signatures_of
from keras_caption.serving.stacking import stack
from keras_caption.text import EOS, PAD, Tokenizer
from keras_caption.text.tokenizer import SPECIAL_TOKENS

FILES = ("photo", "clip")  # names of what features are extracted from


class Predictor:
    """Answers records of users: by captions, translations or answers to questions.

    A record is a dict of what the model reads of one example:

    - `photo`: bytes of an image file, or uint8 array `(height, width, 3)`;
    - `clip`: bytes of a video file, or what `keras_caption.features.ClipExtractor.read`
      returns;
    - `source`: str, a sentence to translate;
    - `question`: str, about the image that the record has too;
    - arrays without batch dimension, by the names of the model's inputs, such as
      `regions` and `boxes`.

    It names no file and no address, so that anybody may send it. `read` checks one
    record; `answer` answers some that were read, together; a call does both.

    Args:
        model: A model or an ensemble of `keras_caption.models`; or what
            `keras_caption.models.load` takes, or a list of that, an ensemble.
        detector: str, what finds the objects that a model of objects reads, if it
            is to read photos, see `keras_caption.features.load_detector`.
        confidence: float in [0, 1], least score of an object, see there.

    Attributes:
        model: `keras_caption.models.Ensemble` or `ClassifierEnsemble`.

    Raises:
        InputError: If a model cannot be loaded, or it takes no detector.

    Example:

    ```python
    predictor = keras_caption.serving.Predictor("ngsan_coco.keras", "yolox.keras")
    [found] = predictor([{"photo": pathlib.Path("dog.jpg").read_bytes()}], n=3)
    print(found.text, found.confidence, found.best, found.objects)
    ```
    """

    def __init__(
        self,
        model: Any,
        detector: str | None = None,
        confidence: float | None = None,
    ):
        self.model = ensemble_of(model)
        if detector is not None:
            add_detector(self.model, detector, confidence)

    @property
    def reads(self) -> tuple[str, ...]:
        """Names that a record may have.

        With `question` the model answers, with `source` it translates, otherwise it
        captions.
        """
        extractor = self.model.extractor
        if extractor is None:
            return tuple(self.model.input_specs)
        file = "clip" if isinstance(extractor, ClipExtractor) else "photo"
        return (file, *self.model.input_specs)

    def __call__(
        self,
        records: Iterable[Mapping[str, Any]],
        *,
        n: int | None = None,
        attention: bool = False,
        **options: Any,
    ) -> list[Prediction]:
        """Reads and answers records, see `read` and `answer`."""
        examples = [self.read(record, i) for i, record in enumerate(records)]
        return self.answer(examples, n=n, attention=attention, **options)

    # === Reading ===

    def read(
        self, record: Mapping[str, Any], place: int = 0, max_pixels: int = MAX_PIXELS
    ) -> dict[str, Any]:
        """Reads and checks one record.

        Args:
            record: dict, see the class.
            place: int, of the record among others, for messages.
            max_pixels: int, greatest number of a photo's pixels.

        Returns:
            dict, an example that `answer` takes.

        Raises:
            InputError: If a name is unknown or missing, a value is wrong, or nothing
                can be predicted from the record.
        """
        values = self._known(record, place)
        example = {}
        if "photo" in values:
            photo = photo_of(values.pop("photo"), place, max_pixels)
            example = self.resized(photo)
        if "clip" in values:
            clip = clip_of(values.pop("clip"), place, self.model.extractor)
            example = self.resized(clip)
        extracted = self.model.extractor.made if example else ()
        for name in extracted:
            if name in values:
                raise InputError(
                    f"Record {place} has {name} beside the {min(example)} that they "
                    "are extracted from."
                )
        for name, tokens in ("source", self._sentence), ("question", self._question):
            if isinstance(values.get(name), str):
                values[name] = tokens(values[name], place)
        values = {name: array_of(name, x, place) for name, x in values.items()}
        for kind in self.model.kinds:
            own = {name: values[name] for name in kind.keys if name in values}
            missing = [x for x in kind.required if x not in {*own, *extracted}]
            if missing:
                raise InputError(f"Record {place} has no {' and no '.join(missing)}.")
            if own and kind.keys[0] not in extracted and not is_empty(own):
                own = kind.before_padding(own)
                batch = {name: x[None] for name, x in own.items()}
                read([kind], batch, self.model.name, check=True, first=place)
            example |= own
        return example

    def resized(self, file: np.ndarray | Clip) -> dict[str, Any]:
        """A photo or clip as an example of few pixels, however many it has.

        Args:
            file: What `read` of the model's extractor returns.
        """
        pixels = self.model.extractor.to_pixels([file])
        name = "clip" if isinstance(file, Clip) else "photo"
        return {name: keras.tree.map_structure(lambda x: np.asarray(x)[0], pixels)}

    def _known(self, record, place):
        """The values of a record, by names that are known."""
        if not isinstance(record, collections.abc.Mapping):
            raise InputError(
                f"Record {place} should be a dict. Received: {type(record).__name__}"
            )
        values = {name: x for name, x in record.items() if x is not None}
        for name in values:
            if name not in self.reads:
                needs = self.model.extractor is None and self.model.categories
                hint = ", and photos with a detector" if needs else ""
                raise InputError(
                    f"Record {place} has {name!r:.60}; the model '{self.model.name}' "
                    f"reads {', '.join(self.reads)}{hint}."
                )
        return values

    def _sentence(self, text, place):
        [tokens] = self.model.source_tokens([text])
        if len(tokens) > MAX_TOKENS:
            raise InputError(f"Sentence {place} has more than {MAX_TOKENS:,} tokens.")
        return tokens

    def _question(self, text, place):
        return self.model.question_tokens([text])[0]

    # === Serving ===

    @functools.cached_property
    def signatures(self) -> dict[str, Signature]:
        """Those of an exported model, by name; each is compiled when it is needed."""
        return signatures_of(self.model)

    def warm_up(self) -> None:
        """Compiles what answers records, and the signature that is the default one."""
        values = {}
        for kind in self.model.kinds:
            values |= kind.example()
        record = {name: x[0] for name, x in values.items() if name in self.reads}
        one, more = (self.read(x) for x in (record, self._larger(record)))
        self.answer([one])
        self.answer([one, more])  # in other sizes, after which any is compiled for
        if "photo" in self.reads:
            made = self.model.extractor.made
            others = {name: x for name, x in record.items() if name not in made}
            photo = np.full((64, 64, 3), 128, "uint8")
            photo = self.read({"photo": photo, **others})
            self.answer([photo, photo])  # first, as one alone would run eagerly
            self.answer([photo])
        self.signatures[DEFAULT].warm_up()

    def _larger(self, record):
        """A record of one item more, where their number is free."""

        def larger(name, x):
            if isinstance(x, str):
                return f"{x} {x}"
            is_free = self.model.input_specs[name].shape[1:2] == (None,)
            return np.concatenate([x, x[:1]]) if is_free else x

        return {name: larger(name, x) for name, x in record.items()}

    # === Answering ===

    @with_decoding
    def answer(
        self,
        examples: Sequence[dict[str, Any]],
        *,
        n: int | None = None,
        attention: bool = False,
        **options: Any,
    ) -> list[Prediction]:
        """Answers examples that `read` has returned, in batches.

        Args:
            examples: List of dict.
            n: int, number of texts of each example, see
                `keras_caption.models.Captioner.generate`.
            attention: bool, whether to say what each word attends to.
            **options: Fields of `keras_caption.decoding.Decoding`, in place of the
                model's own. Models that answer questions have none.

        Returns:
            List of `Prediction`.

        Raises:
            InputError: If an option is unknown or wrong, or there are fewer than `n`
                answers.
            NoTextError: If the options leave an example no text.
        """
        self.check_options(n, options)
        predictions = [Prediction() for _ in examples]
        groups = {}
        for place, example in enumerate(examples):
            if not is_empty(example):
                groups.setdefault(frozenset(example), []).append(place)
        for places in groups.values():
            if "source" in examples[places[0]]:  # less padding
                places.sort(key=lambda i: len(examples[i]["source"]))
            for start in range(0, len(places), BATCH_SIZE):
                batch = places[start : start + BATCH_SIZE]
                inputs = self._inputs([examples[i] for i in batch])
                answered = self._answered(inputs, n, attention, options)
                for i, prediction in zip(batch, answered, strict=True):
                    predictions[i] = prediction
        return predictions

    def effort(
        self, records: Sequence[Any], n: int | None, options: dict[str, Any]
    ) -> int:
        """How much `answer` asks for, see `keras_caption.serving.effort`.

        Args:
            records: Sequence of dicts, not yet read.
            n, options: Of `answer`.

        Raises:
            InputError: If an option has no effect, or a text of it is unknown.
        """
        if isinstance(self.model, Answering):
            self.model.check_no_decoding(options)
            return len(records)
        decoding = self.model.decoding.override(**options)
        vocabulary = self.model.vocabulary
        required = phrases_of(vocabulary, "required", decoding.required)
        forbidden = forbidden_tokens(vocabulary, decoding.forbidden)
        words = 1 + sum(map(len, required)) + forbidden.size // 100
        beam = 1 if decoding.temperature is not None else decoding.beam_size
        length = decoding.max_length
        if decoding.length_ratio is not None:
            sources = [self._length_of(record) for record in records]
            longest = decoding.length_ratio * max(sources, default=0)
            length = min(length, int(longest) + decoding.length_margin + 1)
        return len(records) * max(beam, n or 1) * length * words

    def _length_of(self, record):
        """The number of tokens of a record's sentence, if it has one."""
        value = record.get("source") if isinstance(record, Mapping) else None
        if isinstance(value, str) and self.model.source is not None:
            return len(self.model.source_tokens([value])[0])
        return len(value) if isinstance(value, list | np.ndarray) else 0

    def check_options(self, n: int | None, options: dict[str, Any]) -> None:
        """Raises `InputError` as `answer` does, of its options."""
        if isinstance(self.model, Answering):
            self.model.check_no_decoding(options)
            self.model.check_number_of_answers(n or 1)
            return
        if not isinstance(options.get("prefix", ""), str):
            raise InputError("`prefix` should be one text, which all begin with.")
        decoding = self.model.decoding.override(**options)
        check_texts(self.model.vocabulary, decoding)

    def _inputs(self, examples):
        """The model's inputs of examples of the same names, a dict of arrays."""
        rest = [
            {name: x for name, x in example.items() if name not in FILES}
            for example in examples
        ]
        inputs = stack(rest)
        for name in FILES:
            if name in examples[0]:
                pixels = stack([example[name] for example in examples])
                features = self.model.extract_pixels(pixels)
                inputs |= {key: np.asarray(x) for key, x in features.items()}
        return inputs

    def _answered(self, inputs, n, attention, options):
        """Predictions of a batch."""
        if isinstance(self.model, Answering):
            found = self._answers(inputs, n)
        else:
            found = self._texts(inputs, n, options)
        for i, prediction in enumerate(found):
            prediction.inputs = {name: x[i] for name, x in inputs.items()}
        extractor = self.model.extractor
        if isinstance(extractor, ObjectDetector) and "scores" in inputs:
            for i, prediction in enumerate(found):
                prediction.objects = extractor.objects_of(inputs, i)
                if self.model.question is not None:
                    continue
                if calibration := getattr(self.model, "calibration", None):
                    least = least_score(prediction.text, prediction.objects)
                    sure = np.interp(least, *np.transpose(calibration))
                    prediction.confidence = float(sure)
                    prediction.unsure = bool(sure < self.model.threshold)
                categories = [x["category"] for x in prediction.objects]
                if several_of_one(prediction.text, categories):
                    prediction.unsure = True
                if not categories:
                    found[i] = Prediction(inputs=prediction.inputs)
        if attention:
            self._attend(inputs, found)
        return found

    def _answers(self, inputs, n):
        best = self.model.answer_n_best(inputs, None, n or 1)
        threshold = self.model.threshold
        return [
            Prediction(text, p, p, p < threshold, of_one)
            for of_one in best
            for text, p in of_one[:1]
        ]

    def _texts(self, inputs, n, options):
        model = self.model
        tokens, scores = model.generate_tokens(inputs, n=n or 1, **options)
        confidences = model.confidences(tokens[:, 0], scores[:, 0])
        found = []
        for i, confidence in enumerate(map(float, confidences)):
            best = [
                (model.vocabulary.decode(row), float(score))
                for row, score in zip(tokens[i], scores[i], strict=True)
                if is_hypothesis(score)
            ]
            is_mean = not getattr(model, "calibration", None)  # and not of scores
            unsure = is_mean and confidence < model.threshold
            found.append(
                Prediction(*best[0], confidence, unsure, best, tokens=tokens[i, 0])
            )
        return found

    # === Attention ===

    def _attend(self, inputs, found):
        """Adds to the predictions of a batch what their words attend to."""
        model = self.model
        encoded = model.read(inputs)
        if isinstance(model, Answering):
            member = model.members[0]
            if len(model.members) > 1 or not hasattr(member, "attention"):
                raise InputError(f"The model '{model.name}' has no attention to show.")
            kind = next(kind for kind in model.kinds if kind.keys[0] == "regions")
            weights = np.swapaxes(np.asarray(member.attention(encoded)), 1, 2)
            tokenizer, tokens = model.question, inputs["question"]
        else:
            kind, tokenizer = model.memory_kind, model.vocabulary
            tokens = [x.tokens for x in found]
            length = max((len(row) for row in tokens if row is not None), default=1)
            blank = np.full(length, PAD, "int32")
            tokens = np.stack([blank if row is None else row for row in tokens])
            weights = [of_one for [of_one] in model.attended(encoded, tokens[:, None])]
        mask = kind.memory_mask(encoded)
        boxes = kind.areas({**encoded, "boxes": None, **inputs})
        for i, prediction in enumerate(found):
            shares = weights[i]
            size = shares.shape[1]
            if mask is not None:  # without the padding behind the last item
                size = int(np.flatnonzero(np.asarray(mask[i])).max(initial=-1)) + 1
            prediction.words = words_of(tokenizer, tokens[i])
            prediction.attention = shares[: len(prediction.words), :size]
            prediction.items = self._items(prediction.inputs)[:size]
            if boxes is not None:
                prediction.boxes = boxes[i][:size]

    def _items(self, inputs):
        """Names of the items of one record's memory."""
        if self.model.source is not None:
            return words_of(self.model.source, inputs["source"])
        if "regions" in inputs:
            return self.model.region_names(inputs["regions"])
        return []


def ensemble_of(model: Any) -> Ensemble | ClassifierEnsemble:
    """A model, several, or their files, as an ensemble, see `Predictor`."""
    if isinstance(model, Ensemble | ClassifierEnsemble):
        return model
    members = model if isinstance(model, list | tuple) else [model]
    members = [load(x) if isinstance(x, str | os.PathLike) else x for x in members]
    answers = any(isinstance(member, Answering) for member in members)
    return (ClassifierEnsemble if answers else Ensemble)(members)


def is_empty(example: dict[str, Any]) -> bool:
    """Whether an example is a sentence without words."""
    return "source" in example and bool(np.all(example["source"] == EOS))


def words_of(tokenizer: Tokenizer, tokens: Iterable[int]) -> list[str]:
    """What each of some token ids stands for, up to PAD."""
    tokens = [int(token) for token in tokens if token != PAD]
    return [
        SPECIAL_TOKENS[x] if x < len(SPECIAL_TOKENS) else tokenizer.to_text([x])
        for x in tokens
    ]
