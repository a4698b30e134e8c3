import contextlib
import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

import numpy as np
from jaxtyping import Float32, Int, Int32
from keras import ops

from keras_caption.base.arguments import Count, Tensor, check
from keras_caption.base.errors import InputError, NoTextError
from keras_caption.base.progress import progress as progress_bar
from keras_caption.decoding import Decoding, DecodingOptions, with_decoding
from keras_caption.decoding.rules import DEFAULTS
from keras_caption.decoding.search import is_hypothesis
from keras_caption.decoding.text_options import check_prefixes
from keras_caption.models.backend import Attended, Backend
from keras_caption.models.input_reader import InputReader, is_whole
from keras_caption.predict import BATCH_SIZE, Columns, count_rows, run_batches
from keras_caption.predict.batches import batches_of
from keras_caption.predict.captions import confidences_of
from keras_caption.text import Tokenizer

# What is generated for one example: tokens `(n, T)`, log-probabilities `(n,)`, and for
# each text its attention weights, or `None`.
Generated = tuple[np.ndarray, np.ndarray, list[np.ndarray | None]]
# Options that can exclude all texts of an example.
LIMITING = (
    *("prefix", "forbidden", "required", "min_length", "no_repeat_ngram"),
    *("length_ratio", "evidence"),
)


class Generation(InputReader):
    """Mixin of all that generates captions of any number of examples.

    A subclass has a `vocabulary` and a `backend`, which generates one batch, beside the
    attributes of an `InputReader`.

    Attributes:
        generated: str, name of the texts among the outputs of an exported model.
        decoding: `keras_caption.decoding.Decoding`, default options of generation; a
            keyword of a call replaces one of them.
    """

    generated = "captions"

    if TYPE_CHECKING:

        @property
        def vocabulary(self) -> Tokenizer | None: ...

        @property
        def backend(self) -> Backend: ...

    @classmethod
    def default_decoding(cls) -> Decoding:
        """Options of decoding of models of this class, if `decoding` is omitted."""
        return Decoding()

    @property
    def decoding(self) -> Decoding:
        """Options of generation; `None` sets those of `default_decoding()`."""
        return self._decoding

    @decoding.setter
    def decoding(self, value: Decoding | None) -> None:
        value = self.default_decoding() if value is None else value
        if not isinstance(value, Decoding):
            raise InputError(
                "`decoding` must be a `keras_caption.decoding.Decoding`. "
                f"Received: {value!r:.60}"
            )
        self._decoding = value

    @overload
    def generate(
        self,
        raw: Any,
        batch_size: int = BATCH_SIZE,
        *,
        n: None = None,
        attention: Literal[False] = False,
        stream: Literal[False] = False,
        progress: bool = False,
        **options: Unpack[DecodingOptions],
    ) -> list[str]: ...

    @overload
    def generate(
        self,
        raw: Any,
        batch_size: int = BATCH_SIZE,
        *,
        n: int,
        attention: Literal[False] = False,
        stream: Literal[False] = False,
        progress: bool = False,
        **options: Unpack[DecodingOptions],
    ) -> list[list[tuple[str, float]]]: ...

    @overload
    def generate(
        self,
        raw: Any,
        batch_size: int = BATCH_SIZE,
        *,
        n: None = None,
        attention: Literal[True],
        stream: Literal[False] = False,
        progress: bool = False,
        **options: Unpack[DecodingOptions],
    ) -> list[tuple[str, np.ndarray]]: ...

    @overload
    def generate(
        self,
        raw: Any,
        batch_size: int = BATCH_SIZE,
        *,
        n: int,
        attention: Literal[True],
        stream: Literal[False] = False,
        progress: bool = False,
        **options: Unpack[DecodingOptions],
    ) -> list[list[tuple[str, float, np.ndarray]]]: ...

    @overload
    def generate(
        self,
        raw: Any,
        batch_size: int = BATCH_SIZE,
        *,
        n: None = None,
        attention: Literal[False] = False,
        stream: Literal[True],
        progress: bool = False,
        **options: Unpack[DecodingOptions],
    ) -> Iterator[list[str]]: ...

    @overload
    def generate(
        self,
        raw: Any,
        batch_size: int = BATCH_SIZE,
        *,
        n: int | None = None,
        attention: bool = False,
        stream: bool = False,
        progress: bool = False,
        **options: Unpack[DecodingOptions],
    ) -> Any: ...

    @with_decoding
    def generate(
        self,
        raw: Any,
        batch_size: int = BATCH_SIZE,
        *,
        n: int | None = None,
        attention: bool = False,
        stream: bool = False,
        progress: bool = False,
        **options: Unpack[DecodingOptions],
    ) -> Any:
        """Generates captions of any number of examples.

        Args:
            raw: dict of arrays or tensors, as for a call (`tokens` are ignored); or,
                for a model with an `extractor`, a list of photos of any sizes, which
                are paths or uint8 arrays `(height, width, 3)`. Or any iterable of such
                dicts, such as a `tf.data` dataset, or of such photos.
            batch_size: int, number of examples that are decoded at once. Memory grows
                with the batch size, not with the number of examples.
            n: int, number of captions of each example: the best of the beam or, with a
                `temperature`, samples. The beam is made as wide as `n`, with `groups`
                of equal width.
            attention: bool, whether to return what each token attends to.
            stream: bool, whether to return the texts while they grow.
            progress: bool, whether to show a progress bar on standard error.
            **options: Fields of `keras_caption.decoding.Decoding` that replace the
                model's own.

        Returns:
            A list with one entry for each example. The entry is a str.

            With `attention`, the entry is a pair: the str, and attention weights,
            float32 `(tokens, M)`, of each token, EOS included, over the items of the
            memory, see `attention`.

            With `n`, the entry is a list of tuples: the str, its log-probability, EOS
            included, as a float, and with `attention` the weights. A beam has its best
            caption first; with a `length_penalty` this need not be the most probable
            one. The list is shorter than `n` if the options, such as `evidence`,
            leave fewer captions.

            With `stream`, the result is an iterator over lists of str, one list after
            each step of decoding: the current texts of all batches so far. The last
            list is the result without `stream`. The best hypothesis of a beam may
            change from step to step; greedy and sampled texts only grow.

        Raises:
            InputError: If the model was made without a vocabulary, or as in
                `generate_tokens`.
            NoTextError: As in `generate_tokens`.

        Example:

        ```python
        model.generate({"regions": regions, "boxes": boxes}, beam_size=5)
        model.generate(["photo.jpg"], prefix="a photo of", forbidden=["dog"])
        model.generate(["photo.jpg"], n=3)
        # [[("a dog on a beach", -3.1), ("a dog runs", -3.6), ...], ...]
        for [text] in model.generate(["photo.jpg"], stream=True):
            print(text)
        ```
        """
        self._check_vocabulary()
        decoding = self.decoding_of(n, options)
        if stream and (attention or progress or n is not None):
            raise InputError(
                "`stream` yields texts only: it has no `n`, `attention` or `progress`."
            )
        if stream:
            return self._stream(raw, batch_size, decoding)
        results = self._search(raw, batch_size, n, decoding, attention, progress)
        return [self.texts_of(x, n, attention) for x in results]

    def texts_of(self, generated: Generated, n: int | None, attention: bool) -> Any:
        """The entry that `generate` returns for one example."""
        vocabulary = self._check_vocabulary()
        kept = [True, n is not None, attention]
        captions = []
        for tokens, score, weights in zip(*generated, strict=True):
            if n is None or is_hypothesis(score):
                each = vocabulary.decode(tokens), float(score), weights
                parts = tuple(itertools.compress(each, kept))
                captions.append(parts if len(parts) > 1 else parts[0])
        return captions[0] if n is None else captions

    @with_decoding
    def generate_tokens(
        self,
        raw: Any,
        batch_size: int = BATCH_SIZE,
        *,
        n: int | None = None,
        **options: Unpack[DecodingOptions],
    ) -> tuple[Int32[np.ndarray, "batch ... T"], Float32[np.ndarray, "batch ..."]]:
        """Generates captions as tokens with their scores.

        Args:
            raw, batch_size, n, **options: As in `generate`.

        Returns:
            A pair of NumPy arrays: tokens, int32 `(batch, T)`, from the first one to
            EOS, then PAD; and log-probabilities, float32 `(batch,)`. T is `max_length`,
            or less if a `length_ratio` allows no more. With `n` the shapes are
            `(batch, n, T)` and `(batch, n)`; rows without a caption have PAD and -1e9.

        Raises:
            InputError: If an option is unknown, wrong or without effect, an input is
                missing or has a wrong shape, or an example has a fault, such as an
                image without a valid region, or boxes in pixels.
            NoTextError: If the options exclude all texts of an example, such as
                `required` words that do not fit into one text. It is an `InputError`.
        """
        decoding = self.decoding_of(n, options)
        results = [x[:2] for x in self._search(raw, batch_size, n, decoding)]
        # Batches differ in T if a `length_ratio` limits them.
        length = max((tokens.shape[-1] for tokens, _ in results), default=0)
        tokens = np.stack(
            [np.pad(x, ((0, 0), (0, length - x.shape[-1]))) for x, _ in results]
        )
        scores = np.stack([scores for _, scores in results])
        return (tokens[:, 0], scores[:, 0]) if n is None else (tokens, scores)

    confidences = staticmethod(confidences_of)

    def caption(
        self, batches: Iterable[dict[str, Any]], **options: Any
    ) -> dict[int, str]:
        """Generates captions of a dataset.

        Args:
            batches: Iterable of batches with `image_id` beside the model's inputs,
                as `keras_caption.batches.image_batches` makes them.
            **options: Options of `generate_tokens`.

        Returns:
            dict from image id to str.
        """
        captions: dict[int, str] = {}
        size = 0
        for batch in batches:
            image_ids = ops.convert_to_numpy(batch["image_id"]).tolist()
            size = max(size, len(image_ids))  # a last batch may have fewer
            generated = self.generate(batch, **{"batch_size": size, **options})
            captions.update(zip(image_ids, generated, strict=True))
        return captions

    def _check_vocabulary(self) -> Tokenizer:
        """Returns the vocabulary, or raises `InputError` if there is none."""
        if self.vocabulary is None:
            raise InputError(
                f"The model '{self.name}' was made without a vocabulary: it can "
                "`generate_tokens`, but neither read nor write strings."
            )
        return self.vocabulary

    def decoding_of(self, n: int | None, options: Mapping[str, Any]) -> Decoding:
        """The options of a call, see `Decoding.of_call`."""
        return self.decoding.of_call(n, options)

    def _search(
        self,
        raw: Any,
        batch_size: int,
        n: int | None,
        options: Decoding,
        attention: bool = False,
        progress: bool = False,
    ) -> Iterator[Generated]:
        """Yields what is generated for each example, in the order of the examples."""
        shown: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
        if progress:
            noun = f"{self.kinds[0].noun}s"
            columns = self._readable(raw).values() if is_whole(raw) else ()
            total = max(map(count_rows, columns), default=None)
            shown = progress_bar(desc="Generating", total=total, unit=noun)
        with shown as bar:
            for examples in self._parts(raw, batch_size, options):

                def run(inputs, places):
                    return self.generate_batch(inputs, places, n, options, attention)

                for _, generated in run_batches(examples, run, batch_size, self.fill):
                    yield generated
                    if progress:
                        bar.update()

    def _parts(self, raw: Any, batch_size: int, options: Decoding) -> Iterable[Columns]:
        """All examples at once, or those of each part, once arguments are checked."""
        check(Count, batch_size=batch_size)
        if options.prefix or options.forbidden or options.required:
            self._check_vocabulary()
        parts = self.parts(raw, batch_size)
        if isinstance(options.prefix, str):
            return parts
        # The number of prefixes could be checked only after the last example.
        if not is_whole(raw):
            raise InputError("A list of `prefix` needs a list of examples beside it.")
        [examples] = parts
        check_prefixes(options, len(examples.places))
        return [examples]

    def _stream(
        self, raw: Any, batch_size: int, options: Decoding
    ) -> Iterator[list[str]]:
        """Yields the texts after each step, see `generate`."""
        vocabulary = self._check_vocabulary()
        before: list[str] = []
        for examples in self._parts(raw, batch_size, options):
            for batch in batches_of(examples, batch_size, self.fill):
                inputs = examples.take(batch.indices)
                places = examples.places[batch.indices]
                for step in self.backend.steps(inputs, places, options):
                    # Rows behind the first `count` only fill the batch.
                    texts = [vocabulary.decode(row) for row in step[0][: batch.count]]
                    yield [*before, *texts]
                self._check_scores(step[1], places, options)
                before += texts

    def generate_batch(
        self,
        inputs: dict[str, Tensor],
        places: Int[np.ndarray, " size"],
        n: int | None,
        options: Decoding,
        attention: bool = False,
    ) -> list[Generated]:
        """Generates captions of one batch.

        Args:
            inputs: dict of tensors, as `read` returns it.
            places: int `(size,)`, places of the examples in all input. They select the
                random numbers of samples and the entries of a list of `prefix`, and
                messages name them.
            n, attention: As in `generate`.
            options: `Decoding`.

        Returns:
            A list of triples, one for each example: tokens, int32 `(n, T)`,
            log-probabilities, float32 `(n,)`, and a list of n attention weights as in
            `generate`, or of n `None`. T is the same for all examples.

        Raises:
            NoTextError: If the options exclude all texts of an example.
        """
        tokens, scores = self.backend.run(inputs, places, n or 1, options)
        self._check_scores(scores[:, 0], places, options)
        weights: Attended = [[None] * (n or 1)] * len(places)
        if attention:
            weights = self.attended(inputs, tokens)
        return list(zip(tokens, scores, weights, strict=True))

    def attended(
        self, inputs: dict[str, Tensor], tokens: Int32[np.ndarray, "size n T"]
    ) -> Attended:
        """What each token of generated captions attends to, see `Backend.attended`."""
        return self.backend.attended(inputs, tokens)

    def _check_scores(self, scores, places, options):
        """Raises `NoTextError` if an example has no text.

        Args:
            scores: float32 `(size,)`, score of the best text of each example.
            places: int `(size,)`, places of the examples in all input.
            options: `Decoding`.
        """
        missing = np.flatnonzero(~is_hypothesis(scores))
        if not len(missing):
            return
        names = [x for x in LIMITING if getattr(options, x) != DEFAULTS[x]]
        reason = "the model's probabilities are not finite"
        if names:
            others = ", ".join(f"`{name}`" for name in names)
            length = options.max_length
            reason = f"{others} and a `max_length` of {length} leave none"
        noun = self.kinds[0].noun
        raise NoTextError(f"{noun} {places[missing[0]]}", reason)
