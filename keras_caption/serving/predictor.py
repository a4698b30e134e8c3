import collections.abc
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import keras
import numpy as np
from jaxtyping import Int

from keras_caption.decoding.text_options import (
    check_texts,
    forbidden_tokens,
    phrases_of,
)
from keras_caption.errors import InputError
from keras_caption.features import (
    MAX_PIXELS,
    ClipExtractor,
    ObjectDetector,
)
from keras_caption.features.object_answers import (
    count_of,
    is_number,
    is_undetected,
)
from keras_caption.inputs import read
from keras_caption.inputs.text import MAX_TOKENS
from keras_caption.models import EngineModel, load_ensemble
from keras_caption.models.answering import Answering
from keras_caption.predict import Example, Prediction, RecordPredictor
from keras_caption.predict.captions import judge_by_objects
from keras_caption.predict.predictor import FILES
from keras_caption.serving.detection import add_detector
from keras_caption.serving.records import array_of, clip_of, photo_of
from keras_caption.serving.rest_values import DEFAULT
from keras_caption.serving.signature import Signature
from keras_caption.serving.signatures import signatures_of
from keras_caption.text import EOS, PAD, Tokenizer
from keras_caption.text.tokenizer import SPECIAL_TOKENS


class Predictor(RecordPredictor):
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
    record; `answer` answers some that were read, together; a call does both; `stream`
    does both for any number.

    Args:
        model: A model or an ensemble of `keras_caption.models`; or what
            `keras_caption.models.load` takes, or a list of that, an ensemble.
        detector: str, what finds the objects that a model of objects reads, if it
            is to read photos, see `keras_caption.features.load_detector`.
        confidence: float in [0, 1], least score of an object, see there.

    Attributes:
        model: `keras_caption.models.Ensemble`, `ClassifierEnsemble` or `EngineModel`.

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
        super().__init__()
        self.model = load_ensemble(model)
        if detector is not None:
            add_detector(self.model, detector, confidence)

    @property
    def extractor(self) -> Any:
        """What extracts features of photos or clips, or `None`."""
        return self.model.extractor

    @property
    def source(self) -> Tokenizer | None:
        """The tokenizer of sentences, or `None`."""
        return self.model.source

    @property
    def categories(self) -> list[str] | None:
        """Categories of the objects that the model reads, or `None`."""
        return self.model.categories

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

    # === Reading ===

    def read(
        self, record: Mapping[str, Any], place: int = 0, max_pixels: int = MAX_PIXELS
    ) -> Example:
        """Reads and checks one record, see `RecordPredictor.read`.

        Args:
            record, place: Of `RecordPredictor.read`.
            max_pixels: int, greatest number of a photo's pixels.
        """
        values = self._known(record, place)
        if "photo" in values:
            values["photo"] = photo_of(values["photo"], place, max_pixels)
        if "clip" in values:
            values["clip"] = clip_of(values["clip"], place, self.model.extractor)
        return self.example_of(values, place)

    def example_of(self, values: dict[str, Any], place: int) -> Example:
        """An example of values that are known, of few pixels however large a file is.

        Args:
            values: dict, a record in which `photo` or `clip` is what `read` of the
                model's extractor returns.
            place: Of `read`.

        Raises:
            InputError: As `read` raises it.
        """
        values, example = dict(values), {}
        for name in FILES:
            if name in values:
                pixels = self.model.extractor.to_pixels([values.pop(name)])
                example[name] = keras.tree.map_structure(
                    lambda x: np.asarray(x)[0], pixels
                )
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
        has_words = "source" not in values or bool(np.any(values["source"] != EOS))
        for kind in self.model.kinds:
            own = {name: values[name] for name in kind.keys if name in values}
            missing = [x for x in kind.required if x not in {*own, *extracted}]
            if missing:
                raise InputError(f"Record {place} has no {' and no '.join(missing)}.")
            if own and kind.keys[0] not in extracted and has_words:
                own = kind.before_padding(own)
                batch = {name: x[None] for name, x in own.items()}
                read([kind], batch, self.model.name, check=True, first=place)
            example |= own
        return Example(place, example, has_words)

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
        """Those of an exported model, by name; each is compiled when it is needed.

        What another engine runs has none.
        """
        if isinstance(self.model, EngineModel):
            return {}
        return signatures_of(self.model)

    def warm_up(self, beam_sizes: Sequence[int] = ()) -> None:
        """Compiles what answers records, and the signature that is the default one.

        Args:
            beam_sizes: Sequence of int, further widths of beams to compile, of a model
                that takes others than its own.
        """
        values = {}
        for kind in self.model.kinds:
            values |= kind.example()
        record = {name: x[0] for name, x in values.items() if name in self.reads}
        one, more = (self.read(x) for x in (record, self._larger(record)))
        is_fixed = isinstance(self.model, Answering | EngineModel)
        widths = [] if is_fixed else [{"beam_size": size} for size in beam_sizes]
        for options in ({}, *widths):
            self.answer([one], **options)
            # In other sizes, after which any is compiled for.
            self.answer([one, more], **options)
        if "photo" in self.reads:
            made = self.model.extractor.made
            others = {name: x for name, x in record.items() if name not in made}
            photo = np.full((64, 64, 3), 128, "uint8")
            photo = self.read({"photo": photo, **others})
            self.answer([photo, photo])  # first, as one alone would run eagerly
            self.answer([photo])
        if DEFAULT in self.signatures:
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

    def fill(self, count: int, batch_size: int) -> int:
        return self.model.fill(count, batch_size)

    def run(
        self,
        inputs: dict[str, np.ndarray],
        places: Int[np.ndarray, " size"],
        n: int | None,
        attention: bool,
        options: dict[str, Any],
    ) -> list[Prediction]:
        """Predictions of a batch, see `RecordPredictor.run`."""
        features = {}
        for name in FILES:
            if name in inputs:
                features = self.model.extract_pixels(inputs[name])
        values = {name: x for name, x in inputs.items() if name not in FILES}
        values |= {name: np.asarray(x) for name, x in features.items()}
        read = self.model.read(values)
        if isinstance(self.model, Answering):
            found = self._predictions(self.model.answer_batch(read, n or 1))
        else:
            found = self._texts(read, places, n, options)
        for i, prediction in enumerate(found):
            prediction.inputs = {name: x[i] for name, x in values.items()}
        extractor = self.model.extractor
        if isinstance(extractor, ObjectDetector) and "scores" in values:
            for i, prediction in enumerate(found):
                prediction.objects = extractor.objects_of(values, i)
                if not prediction.objects:
                    found[i] = Prediction(inputs=prediction.inputs)
                elif self.model.question is not None:
                    words = words_of(self.model.question, values["question"][i])
                    compare_with_objects(prediction, " ".join(words), n or 1)
                else:
                    calibration = getattr(self.model, "calibration", None)
                    judge_by_objects(prediction, calibration, self.model.threshold)
        if attention:
            self._attend(values, read, found)
        return found

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
        decoding = self.model.decoding_of(n, options)
        check_texts(self.model.vocabulary, decoding)

    def _predictions(self, best):
        """Of answers: a `Prediction` of each list of pairs."""
        threshold = self.model.threshold
        return [
            Prediction(text, p, p, p < threshold, answers)
            for answers in best
            for text, p in answers[:1]
        ]

    def _texts(self, inputs, places, n, options):
        """Of captions or translations: a `Prediction` of each example."""
        model = self.model
        decoding = model.decoding_of(n, options)
        generated = model.generate_batch(inputs, places, n, decoding)
        first = [(tokens[0], scores[0]) for tokens, scores, _ in generated]
        confidences = model.confidences(*map(np.array, zip(*first, strict=True)))
        found = []
        for one, confidence in zip(generated, map(float, confidences), strict=True):
            best = model.texts_of(one, n or 1, attention=False)
            is_mean = not getattr(model, "calibration", None)  # and not of scores
            unsure = is_mean and confidence < model.threshold
            found.append(
                Prediction(*best[0], confidence, unsure, best, tokens=one[0][0])
            )
        return found

    # === Attention ===

    def _attend(self, inputs, encoded, found):
        """Adds to the predictions of a batch what their words attend to."""
        model = self.model
        if isinstance(model, Answering):
            member, *others = getattr(model, "members", [model])
            if others or not hasattr(member, "attention"):
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


def compare_with_objects(found: Prediction, question: str, n: int) -> None:
    """Takes a number of objects from the detections, or doubts what they contradict.

    Args:
        found: `Prediction` of an answer, with its objects, which is changed.
        question: str.
        n: int, number of answers that are wanted.
    """
    if counted := count_of(question, found.objects):
        number, score = counted
        found.unsure = not is_number(found.text, number)
        if found.unsure:
            others = [x for x in found.best if not is_number(x[0], number)]
            found.text, found.score, found.confidence = str(number), score, score
            found.best = [(found.text, score), *others][:n]
    elif is_undetected(found.text, found.objects):
        found.unsure = True


def words_of(tokenizer: Tokenizer, tokens: Iterable[int]) -> list[str]:
    """What each of some token ids stands for, up to PAD."""
    tokens = [int(token) for token in tokens if token != PAD]
    return [
        SPECIAL_TOKENS[x] if x < len(SPECIAL_TOKENS) else tokenizer.to_text([x])
        for x in tokens
    ]
