import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import keras
import numpy as np
from jaxtyping import Int

from keras_caption.apps.objects.judged_answers import is_unsure
from keras_caption.apps.serve.detection import add_detector
from keras_caption.apps.serve.model_predictor import ModelPredictor
from keras_caption.apps.serve.records import array_of, clip_of, photo_of
from keras_caption.base.errors import InputError
from keras_caption.decoding import Decoding, DecodingOptions
from keras_caption.decoding.text_options import (
    check_texts,
    forbidden_tokens,
    phrases_of,
)
from keras_caption.export.signature import DEFAULT, Signature
from keras_caption.export.signatures import signatures_of
from keras_caption.features import MAX_PIXELS, ClipExtractor
from keras_caption.inputs import read
from keras_caption.inputs.text import MAX_TOKENS
from keras_caption.models import EngineModel, load_ensemble
from keras_caption.models.answering import Answering
from keras_caption.predict import Example, Prediction
from keras_caption.predict.captions import captions_of
from keras_caption.predict.predictor import MEDIA
from keras_caption.text import EOS, PAD, Tokenizer
from keras_caption.text.tokenizer import SPECIAL_TOKENS


class Predictor(ModelPredictor):
    """Answers records of users by captions, translations or answers to questions.

    A record is a dict of the inputs of one example:

    - `photo`: bytes of an image file, or uint8 array `(height, width, 3)`;
    - `clip`: bytes of a video file, or a result of
      `keras_caption.features.ClipExtractor.read`;
    - `source`: str, a sentence to translate;
    - `question`: str, about the image in the same record;
    - arrays without batch dimension, by the names of the model's inputs, such as
      `regions` and `boxes`.

    A record cannot name a file or an address, so that strangers may send records.
    `read` checks one record, `answer` answers examples that `read` returned, in
    batches, a call does both, and `stream` does both for any number of records.

    Args:
        model: A model or an ensemble of `keras_caption.models`; or an argument of
            `keras_caption.models.load`, or a list of arguments for an ensemble.
        detector: str, detector of the objects that the model reads, which is needed to
            read photos, see `keras_caption.objects.load_detector`.
        confidence: float in [0, 1], least score of a detected object, see
            `keras_caption.objects.load_detector`.
        second_opinion: bool, whether detected objects are classified once more, see
            `keras_caption.objects.load_detector`. Signatures then read no photos.

    Attributes:
        model: `keras_caption.models.Ensemble`, `ClassifierEnsemble` or `EngineModel`.

    Raises:
        InputError: If a model cannot be loaded, or it takes no detector.

    Example:

    ```python
    predictor = keras_caption.serving.Predictor("ngsan_coco.keras", "yolox_nano")
    photo = pathlib.Path("dog.jpg").read_bytes()
    [prediction] = predictor([{"photo": photo}], n=3)
    print(prediction.text, prediction.confidence, prediction.best, prediction.objects)
    ```
    """

    def __init__(
        self,
        model: Any,
        detector: str | None = None,
        confidence: float | None = None,
        second_opinion: bool = False,
    ):
        super().__init__()
        self.model = load_ensemble(model)
        if detector is not None:
            add_detector(
                self.model, detector, confidence, second_opinion=second_opinion
            )

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of values that a record may have.

        A model that reads a `question` answers it, one that reads a `source` translates
        it, and any other captions.
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
            record, place: As in `RecordPredictor.read`.
            max_pixels: int, greatest number of pixels of a photo.
        """
        needs = self.model.extractor is None and self.model.categories
        hint = ", and photos with a detector" if needs else ""
        name = f"the model '{self.model.name}'"
        values = self.known_values(record, place, name, hint)
        if "photo" in values:
            values["photo"] = photo_of(values["photo"], place, max_pixels)
        if "clip" in values:
            values["clip"] = clip_of(values["clip"], place, self.extractor)
        return self.example_of(values, place)

    def example_of(self, values: dict[str, Any], place: int) -> Example:
        """Makes an example of a record whose files have been read.

        The pixels of an example have the size of the extractor's inputs, however large
        a file is.

        Args:
            values: dict, a record whose `photo` or `clip` is a result of the `read` of
                the model's extractor.
            place: int, place of the record among all records of a call.

        Raises:
            InputError: As in `read`.
        """
        values, example = dict(values), {}
        for name in MEDIA:
            if name in values:
                pixels = self.extractor.to_pixels([values.pop(name)])
                example[name] = keras.tree.map_structure(
                    lambda x: np.asarray(x)[0], pixels
                )
        extracted = self.extractor.made if example else ()
        for name in extracted:
            if name in values:
                raise InputError(
                    f"Record {place} has {name} and a {min(example)}, from which "
                    f"{name} would be extracted."
                )
        asked = values.get("question")
        for name, encode in ("source", self._sentence), ("question", self._question):
            if isinstance(values.get(name), str):
                values[name] = encode(values[name], place)
        values = {name: array_of(name, x, place) for name, x in values.items()}
        has_words = "source" not in values or bool(np.any(values["source"] != EOS))
        for kind in self.model.kinds:
            inputs = {name: values[name] for name in kind.keys if name in values}
            missing = [x for x in kind.required if x not in {*inputs, *extracted}]
            if missing:
                raise InputError(f"Record {place} has no {' and no '.join(missing)}.")
            if inputs and kind.keys[0] not in extracted and has_words:
                inputs = kind.before_padding(inputs)
                batch = {name: x[None] for name, x in inputs.items()}
                read([kind], batch, self.model.name, check=True, first=place)
            example |= inputs
        if not isinstance(asked, str):  # tokens, or none
            tokenizer = self.model.question
            asked = ""
            if tokenizer is not None and "question" in values:
                asked = " ".join(words_of(tokenizer, values["question"]))
        return Example(place, example, has_words, asked)

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
        """Signatures of an export of the model, each compiled at its first use.

        A model that another engine runs has no signatures.
        """
        if isinstance(self.model, EngineModel):
            return {}
        return signatures_of(self.model)

    def warm_up(self, beam_sizes: Sequence[int] = ()) -> None:
        """Compiles the functions that answer records, and the default signature.

        Args:
            beam_sizes: Sequence of int, more beam widths to compile for, of models that
                take other widths than their own.
        """
        values: dict[str, Any] = {}
        for kind in self.model.kinds:
            values |= kind.example()
        record = {name: x[0] for name, x in values.items() if name in self.reads}
        one, more = (self.read(x) for x in (record, self._larger(record)))

        options: list[DecodingOptions] = [{}]
        if not isinstance(self.model, Answering | EngineModel):
            options += [{"beam_size": size} for size in beam_sizes]
        for own in options:
            self.answer([one], **own)
            # Other numbers of rows and items: TensorFlow then traces for any number.
            self.answer([one, more], **own)
        if "photo" in self.reads:
            extracted = self.extractor.made
            others = {name: x for name, x in record.items() if name not in extracted}
            grey = np.full((64, 64, 3), 128, "uint8")
            photo = self.read({"photo": grey, **others})
            # The extractor is compiled at its second call: the first one runs eagerly.
            self.answer([photo, photo])
            self.answer([photo])
        if DEFAULT in self.signatures:
            self.signatures[DEFAULT].warm_up()

    def _larger(self, record):
        """A record with one item more in each input of free length."""

        def larger(name, x):
            if isinstance(x, str):
                return f"{x} {x}"
            is_free = self.model.input_specs[name].shape[1:2] == (None,)
            return np.concatenate([x, x[:1]]) if is_free else x

        return {name: larger(name, x) for name, x in record.items()}

    # === Answering ===

    def count_tokens(self, text: str) -> int:
        if isinstance(self.model, Answering):
            return super().count_tokens(text)
        return len(self._vocabulary.to_ids(text))

    @property
    def _vocabulary(self) -> Tokenizer:
        """The tokenizer of the texts that the model generates."""
        assert not isinstance(self.model, Answering)
        vocabulary = self.model.vocabulary
        assert vocabulary is not None  # ensembles refuse members without it
        return vocabulary

    def fill(self, count: int, batch_size: int) -> int:
        return self.model.fill(count, batch_size)

    def run(
        self,
        inputs: dict[str, np.ndarray],
        places: Int[np.ndarray, " size"],
        n: int | None,
        attention: bool,
        options: Any,
    ) -> list[Prediction]:
        """Predicts for one batch, see `RecordPredictor.run`."""
        features = {}
        for name in MEDIA:
            if name in inputs:
                features = self.model.extract_pixels(inputs[name])
        values = {name: x for name, x in inputs.items() if name not in MEDIA}
        values |= {name: np.asarray(x) for name, x in features.items()}
        read = self.model.read(values)
        if isinstance(self.model, Answering):
            predictions = self._predictions(self.model.answer_batch(read, n or 1))
        else:
            predictions = self._texts(read, places, n, options)
        predictions = self.with_objects(predictions, values)
        if attention:
            self._attend(values, read, predictions)
        return predictions

    def effort(
        self, records: Sequence[Any], n: int | None, options: dict[str, Any]
    ) -> int:
        """The effort of a call of `answer`, see `keras_caption.apps.serve.effort`.

        Args:
            records: Sequence of dicts that have not been read.
            n, options: As in `answer`.

        Raises:
            InputError: If an option has no effect, or the vocabulary lacks a word of
                its texts.
        """
        if isinstance(self.model, Answering):
            self.model.check_no_decoding(options)
            return len(records)
        decoding = self.model.decoding.override(**options)
        vocabulary = self._vocabulary
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
        """The number of tokens of a record's sentence; 0 without a sentence."""
        value = record.get("source") if isinstance(record, Mapping) else None
        if isinstance(value, str) and self.model.source is not None:
            return len(self.model.source_tokens([value])[0])
        return len(value) if isinstance(value, list | np.ndarray) else 0

    def check_options(self, n: int | None, options: dict[str, Any]) -> Decoding | None:
        """Checks options, see `RecordPredictor.check_options`."""
        if isinstance(self.model, Answering):
            self.model.check_no_decoding(options)
            self.model.check_number_of_answers(n or 1)
            return None
        if not isinstance(options.get("prefix", ""), str):
            raise InputError("`prefix` should be one text, for all records.")
        decoding = self.model.decoding_of(n, options)
        if decoding.prefix or decoding.forbidden or decoding.required:
            check_texts(self._vocabulary, decoding)
        return decoding

    def _predictions(self, best):
        """Makes predictions from lists of pairs of answer and probability."""
        threshold = self.model.threshold
        return [
            Prediction(text, p, p, is_unsure(text, p, threshold), answers)
            for answers in best
            for text, p in answers[:1]
        ]

    def _texts(self, inputs, places, n, options):
        """Generates captions or translations: a `Prediction` for each example."""
        generated = self.model.generate_batch(inputs, places, n, options)
        best = [self.model.texts_of(x, n or 1, attention=False) for x in generated]
        tokens = np.array([x[0] for x, _, _ in generated])
        scores = np.array([x[0] for _, x, _ in generated])
        return captions_of(best, tokens, scores, self.model)

    # === Attention ===

    def _attend(self, inputs, encoded, predictions):
        """Adds attention weights to the predictions of a batch."""
        model = self.model
        if isinstance(model, Answering):
            member, *others = getattr(model, "members", [model])
            if others or not hasattr(member, "attention"):
                raise InputError(f"The model '{model.name}' has no attention to show.")
            kind = next(kind for kind in model.kinds if kind.keys[0] == "regions")
            # (batch, N, T) to (batch, T, N): a row for each word, as for captions.
            weights = np.swapaxes(np.asarray(member.attention(encoded)), 1, 2)
            tokenizer, tokens = model.question, inputs["question"]
        else:
            kind, tokenizer = model.memory_kind, model.vocabulary
            tokens = [x.tokens for x in predictions]
            length = max((len(row) for row in tokens if row is not None), default=1)
            blank = np.full(length, PAD, "int32")
            tokens = np.stack([blank if row is None else row for row in tokens])
            captions = model.attended(encoded, tokens[:, None])  # one per example
            weights = [caption for [caption] in captions]
        mask = kind.memory_mask(encoded)
        # The boxes of the record, if it has some: the model may ignore them.
        boxes = kind.areas({**encoded, "boxes": None, **inputs})
        for i, prediction in enumerate(predictions):
            shares = weights[i]
            size = shares.shape[1]
            if mask is not None:  # the padding behind the last valid item is cut
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


def words_of(tokenizer: Tokenizer, tokens: Iterable[int]) -> list[str]:
    """The text of each token id before PAD."""
    tokens = [int(token) for token in tokens if token != PAD]
    return [
        SPECIAL_TOKENS[x] if x < len(SPECIAL_TOKENS) else tokenizer.to_text([x])
        for x in tokens
    ]
