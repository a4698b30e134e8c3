import contextlib
import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

import numpy as np
from jaxtyping import Float32, Int, Int32
from keras import ops

from keras_caption.arguments import Count, Tensor, check
from keras_caption.compilation import compile_function, round_up, shapes_of
from keras_caption.decoding import (
    Decoding,
    DecodingOptions,
    length_limits,
    with_decoding,
)
from keras_caption.decoding.beam_search import make_beam
from keras_caption.decoding.constrained_beam import Required
from keras_caption.decoding.greedy_search import GreedySearch
from keras_caption.decoding.hook import HOOKS, Hook
from keras_caption.decoding.random_numbers import numbers_of_samples
from keras_caption.decoding.rules import DEFAULTS
from keras_caption.decoding.sampling import Sampling
from keras_caption.decoding.search import Search, chosen_log_probs, is_hypothesis
from keras_caption.decoding.text_options import (
    check_prefixes,
    forbidden_tokens,
    prefix_tokens,
    required_tokens,
)
from keras_caption.errors import InputError, NoTextError
from keras_caption.inputs import InputKind
from keras_caption.models.input_reader import InputReader, is_whole, parts_of
from keras_caption.objects.categories import CATEGORIES
from keras_caption.predict import BATCH_SIZE, Columns, count_rows, run_batches
from keras_caption.predict.batches import batches_of
from keras_caption.predict.captions import confidences_of
from keras_caption.progress import progress as progress_bar
from keras_caption.settings.decoding import BeamSize, check_options
from keras_caption.text import BOS, PAD, Tokenizer, Vocabulary

MAX_COMPILED = 32  # compiled functions of a model; each takes some megabytes
# What is generated for one example: tokens `(n, T)`, log-probabilities `(n,)`, and for
# each text its attention weights, or `None`.
Generated = tuple[np.ndarray, np.ndarray, list[np.ndarray | None]]
Attended = list[list[np.ndarray | None]]  # these of several examples
# Options that can exclude all texts of an example.
LIMITING = (
    *("prefix", "forbidden", "required", "min_length", "no_repeat_ngram"),
    *("length_ratio", "evidence"),
)


class Generation(InputReader):
    """Mixin of models and ensembles that generates captions.

    A subclass has a `vocabulary`, `memory_kind` and the methods `encode`, `start`,
    `step`, `logits` and `attention`, beside the attributes of an `InputReader`.

    Attributes:
        generated: str, name of the texts among the outputs of an exported model.
        decoding: `keras_caption.decoding.Decoding`, default options of generation; a
            keyword of a call replaces one of them.
    """

    generated = "captions"
    decoding: Decoding

    if TYPE_CHECKING:

        @property
        def vocabulary(self) -> Tokenizer | None: ...

        @property
        def memory_kind(self) -> InputKind: ...

        def encode(self, inputs: dict[str, Tensor]) -> Any: ...

        @property
        def can_grow(self) -> bool: ...

        def start(self, memory: Any, length: int | None = 20) -> dict[str, Any]: ...

        def step(
            self, tokens: Tensor, state: dict[str, Any], index: Tensor
        ) -> tuple[Tensor, dict[str, Any]]: ...

        def logits(self, tokens: Tensor, memory: Any) -> Tensor: ...

        def attention(self, tokens: Tensor, memory: Any) -> Tensor: ...

    @property
    def tokenizers(self) -> list[Tokenizer]:
        """The tokenizers that an exported model needs."""
        return [self._check_vocabulary()]

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
            each = vocabulary.decode(tokens), float(score), weights
            parts = tuple(itertools.compress(each, kept))
            if n is None or is_hypothesis(score):
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

    def log_probabilities(
        self, tokens: Int32[Tensor, "batch*C T"], inputs: dict[str, Tensor]
    ) -> Float32[Tensor, " batch*C"]:
        """Log-probabilities of whole captions, EOS included.

        Args:
            tokens: int32 `(batch * C, T)`, from BOS to EOS, then PAD.
            inputs: dict of tensors of `batch` examples, as `read` returns it.

        Returns:
            float32 `(batch * C,)`.
        """
        # Logits at position t are of token t + 1.
        logits = self.logits(tokens[:, :-1], self.encode(inputs))
        log_probs = ops.log_softmax(ops.cast(logits, "float32"))
        chosen = chosen_log_probs(log_probs, tokens[:, 1:])
        return ops.sum(ops.where(tokens[:, 1:] != PAD, chosen, 0.0), axis=1)

    def limits(
        self,
        inputs: dict[str, Tensor],
        options: Decoding,
        prefix: Int32[Tensor, "batch T"] | None = None,
    ) -> Int32[Tensor, " batch"] | None:
        """Greatest numbers of tokens of outputs, by the lengths of their inputs.

        Args:
            inputs: dict of tensors, as `read` returns it.
            options: `keras_caption.decoding.Decoding`.
            prefix: int32 `(batch, T)`, first tokens of the outputs, then PAD, or
                `None`. A limit is never below the length of the prefix with EOS.

        Returns:
            int32 `(batch,)`, or `None` if there is no `length_ratio`.

        Raises:
            InputError: If the inputs of the model have no length, as images.
        """
        if options.length_ratio is None:
            return None
        lengths = self.memory_kind.lengths(inputs)
        limits = length_limits(lengths, options.length_ratio, options.length_margin)
        if prefix is None:
            return limits
        prefix_lengths = ops.sum(ops.cast(ops.not_equal(prefix, PAD), "int32"), axis=1)
        return ops.maximum(limits, prefix_lengths + 1)

    def search(
        self,
        options: Decoding,
        inputs: dict[str, Tensor],
        per_example: dict[str, Tensor] | None = None,
        numbers: Float32[Tensor, "batch*C T"] | None = None,
        required: Required | None = None,
    ) -> Search:
        """Makes the search by which the model generates.

        Args:
            options: `keras_caption.decoding.Decoding`.
            inputs: dict of tensors, as `read` returns it.
            per_example: As in `Search`, without limits.
            numbers: As in `keras_caption.decoding.sample`; `None` for a search that
                does not sample.
            required: As in `keras_caption.decoding.beam_search`.
        """
        per_example = per_example or {}
        limits = self.limits(inputs, options, per_example.get("prefix"))
        if limits is not None:
            per_example = {**per_example, "limits": limits}
        if states := self.read_hooks(options, inputs):
            per_example = {**per_example, "hooks": states}
        if numbers is not None:
            return Sampling(self, options, numbers, per_example)
        # Required words need banks of a constrained beam, even of width 1.
        if options.beam_size == 1 and required is None:
            return GreedySearch(self, options, per_example)
        return make_beam(self, options, per_example, required)

    @functools.cached_property
    def hooks(self) -> dict[str, Hook]:
        """Hooks of all searches, by names that a user chooses, see `Hook`."""
        return {}

    def hooks_of(self, options: Decoding) -> dict[str, Hook]:
        """The hooks of a search: the evidence that options ask for, and `hooks`."""
        evidence = {"evidence": self.evidence} if options.evidence else {}
        return {**evidence, **self.hooks}

    def read_hooks(
        self, options: Decoding, inputs: dict[str, Tensor]
    ) -> dict[str, dict[str, Tensor]]:
        """What each of the hooks of a search reads of the inputs."""
        hooks = self.hooks_of(options)
        return {name: hook.read(inputs) for name, hook in hooks.items()}

    @functools.cached_property
    def evidence(self) -> Hook:
        """The relation of tokens to the detected objects that support them.

        Raises:
            InputError: If the model does not caption detected objects.
        """
        # Names of colours may follow those of objects.
        object_names = (getattr(self, "categories", None) or ())[: len(CATEGORIES)]
        if tuple(object_names) != CATEGORIES:
            raise InputError(
                f"The model '{self.name}' does not caption detected objects: it takes "
                "no `evidence`."
            )
        vocabulary = self._check_vocabulary()
        if not isinstance(vocabulary, Vocabulary):
            raise InputError(
                f"The model '{self.name}' has no vocabulary of words: it takes no "
                "`evidence`."
            )
        return HOOKS["evidence"](vocabulary)

    def _check_vocabulary(self) -> Tokenizer:
        """Returns the vocabulary, or raises `InputError` if there is none."""
        if self.vocabulary is None:
            raise InputError(
                f"The model '{self.name}' was made without a vocabulary: it can "
                "`generate_tokens`, but neither read nor write strings."
            )
        return self.vocabulary

    def decoding_of(self, n: int | None, options: Mapping[str, Any]) -> Decoding:
        """The model's options with replacements, and a beam that holds `n` captions.

        Raises:
            InputError: If an option is wrong, or `beam_size` is less than `n`.
        """
        if n is None:
            return self.decoding.override(**options)
        check(BeamSize, n=n)
        check_options(options)
        own = {**self.decoding.get_config(), **options}
        samples = own["temperature"] is not None  # which have no beam
        if not samples and "beam_size" not in options:
            # The groups of a diverse beam have the same width.
            wide = math.ceil(max(n, own["beam_size"]) / own["groups"])
            options = {**options, "beam_size": wide * own["groups"]}
        changed = self.decoding.override(**options)
        if not samples and n > changed.beam_size:
            raise InputError(
                f"A beam of {changed.beam_size} does not hold the {n} best."
            )
        return changed

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
            total = count_rows(self._readable(raw)) if is_whole(raw) else None
            shown = progress_bar(desc="Generating", total=total, unit=noun)
        with shown as bar:
            for examples in self._parts(raw, batch_size, options):

                def run(inputs, places):
                    return self.generate_batch(inputs, places, n, options, attention)

                for _, generated in run_batches(examples, run, batch_size, self.fill):
                    yield generated
                    if progress:
                        bar.update()

    def _parts(self, raw: Any, batch_size: int, options: Decoding) -> Iterator[Columns]:
        """Yields all examples at once, or those of each part of an iterable."""
        check(Count, batch_size=batch_size)
        if options.prefix or options.forbidden or options.required:
            self._check_vocabulary()
        has_prefixes = not isinstance(options.prefix, str)
        # The number of prefixes could be checked only after the last example.
        if has_prefixes and not is_whole(raw):
            raise InputError("A list of `prefix` needs a list of examples beside it.")
        first = 0
        for part in parts_of(raw, batch_size):
            examples = self.examples_of(part, batch_size, first)
            count = len(examples.places)
            if has_prefixes:
                check_prefixes(options, count)
            yield examples
            first += count

    def _stream(
        self, raw: Any, batch_size: int, options: Decoding
    ) -> Iterator[list[str]]:
        """Yields the texts after each step, see `generate`."""
        vocabulary = self._check_vocabulary()
        before: list[str] = []
        for examples in self._parts(raw, batch_size, options):
            for batch in batches_of(examples, batch_size, self.fill):
                places, size = examples.places[batch.indices], batch.count
                inputs = examples.take(batch.indices)
                plain, feed = self._feed(inputs, places, 1, options)
                memory, values = self._run(first_values, plain, feed)
                for index in range(plain.max_length):
                    # A tensor, so that one compiled function does all steps.
                    position = ops.convert_to_tensor(index, "int32")
                    values, tokens, scores, is_unfinished = self._run(
                        one_step, plain, feed, memory, position, values
                    )
                    tokens, scores = map(ops.convert_to_numpy, (tokens, scores))
                    # Rows behind `size` only fill the batch.
                    texts = [vocabulary.decode(row) for row in tokens[:size]]
                    yield [*before, *texts]
                    if not is_unfinished:
                        break
                self._check_scores(scores, places, options)
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
        n = n or 1
        plain, feed = self._feed(inputs, places, n, options)
        tokens, scores = map(ops.convert_to_numpy, self._run(whole, plain, feed))
        # (size, n, T) and (size, n): a beam may be wider than n.
        tokens, scores = present_first(tokens[:, :n], scores[:, :n])
        self._check_scores(scores[:, 0], places, options)
        weights: Attended = [[None] * n] * len(places)
        if attention:
            weights = self.attended(inputs, tokens)
        return list(zip(tokens, scores, weights, strict=True))

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

    def _feed(
        self,
        inputs: dict[str, Tensor],
        places: Int[np.ndarray, " size"],
        n: int,
        options: Decoding,
    ) -> tuple[Decoding, dict[str, Any]]:
        """Splits options into plain options, without texts, and arguments of `search`.

        A compiled function depends on the plain options. Texts are tensors among the
        arguments, so that other texts of the same shape need no further compilation.
        """
        size = len(places)
        if not isinstance(options.prefix, str):
            prefixes = tuple(options.prefix[place] for place in places)
            options = dataclasses.replace(options, prefix=prefixes)
        plain = dataclasses.replace(options, prefix="", forbidden=(), required=())
        feed: dict[str, Any] = {"inputs": inputs}
        per_example: dict[str, Any] = {}
        prefix = None
        if options.required:
            feed["required"] = required_tokens(self._check_vocabulary(), options)
        if options.forbidden:
            forbidden = forbidden_tokens(self._check_vocabulary(), options.forbidden)
            if len(forbidden):
                shape = size, *forbidden.shape  # one row for each example
                per_example["forbidden"] = np.broadcast_to(forbidden, shape)
        if options.prefix:
            prefix = prefix_tokens(self._check_vocabulary(), options, size)
        limits = self.limits(inputs, options, prefix)
        if limits is not None:  # rounded up, so that few functions are compiled
            longest = min(options.max_length, round_up(int(ops.max(limits))))
            plain = dataclasses.replace(plain, max_length=longest)
        if prefix is not None:
            per_example["prefix"] = prefix[:, : plain.max_length]
        if options.temperature is not None:
            feed["numbers"] = numbers_of_samples(
                options.seed, places, n, plain.max_length
            )
        return plain, {**feed, "per_example": per_example}

    def attended(
        self, inputs: dict[str, Tensor], tokens: Int32[np.ndarray, "size n T"]
    ) -> Attended:
        """What each token of generated captions attends to.

        Args:
            inputs: dict of tensors, as `read` returns it.
            tokens: int32 `(size, n, T)`, of `n` captions of each example, then PAD.

        Returns:
            For each example a list with one array for each caption: attention weights,
            float32 `(tokens, M)`, of the caption's tokens, EOS included, over the
            memory's items.
        """
        # Decoder inputs: BOS before the tokens, without the last.
        shifted = np.pad(tokens, ((0, 0), (0, 0), (1, 0)), constant_values=BOS)
        shifted = shifted[..., :-1]
        feed = {"inputs": inputs, "tokens": shifted.reshape(-1, shifted.shape[-1])}
        # (size, n * T, M) to (size, n, T, M)
        weights = ops.convert_to_numpy(self._run(attention, Decoding(), feed))
        weights = weights.reshape(*tokens.shape, -1)
        # Weights of the padding that `padded` adds are removed.
        name = self.memory_kind.keys[0]
        added = self.padded(inputs)[name].shape[1] - inputs[name].shape[1]
        weights = weights[..., : weights.shape[-1] - added]
        lengths = np.count_nonzero(tokens, axis=-1)
        return [
            [caption[:length] for caption, length in zip(*example, strict=True)]
            for example in zip(weights, lengths, strict=True)
        ]

    def _run(
        self, make: Callable, options: Decoding, feed: dict[str, Any], *args: Any
    ) -> Any:
        """Compiles what `make` returns for the model and options, and calls it."""
        feed = {**feed, "inputs": self.padded(feed["inputs"])}
        by_xla = self.jit_compile
        if make is whole:  # single steps return to Python: XLA gains little there
            examples = len(next(iter(feed["inputs"].values())))
            by_xla = self.pays_off(examples, (options, shapes_of(feed)))
        required = tuple(x.shape for x in feed.get("required", ()))
        return self._compiled(make, options, required, by_xla)(feed, *args)

    def _compiled(
        self,
        make: Callable,
        options: Decoding,
        required: tuple[Any, ...] = (),
        by_xla: bool = False,
    ) -> Callable:
        """The compiled function that `make` returns for the model and options.

        The `MAX_COMPILED` functions that were used last are kept.
        """
        # The seed decides the numbers of samples, which are arguments of the function.
        hooks = tuple(self.hooks.items())
        key = make, dataclasses.replace(options, seed=None), required, hooks, by_xla
        functions = self._compiled_functions
        function = functions.pop(key, None) or compile_function(
            make(self, options), self.variables, by_xla
        )
        functions[key] = function  # at the end: a dict keeps the order of insertion
        by_options = [key for key in functions if isinstance(key, tuple)]
        for unused in by_options[:-MAX_COMPILED]:
            del functions[unused]
        return function


def present_first(
    tokens: Int32[np.ndarray, "batch n T"], scores: Float32[np.ndarray, "batch n"]
) -> tuple[np.ndarray, np.ndarray]:
    """Moves missing texts of each example behind the others, whose order stays."""
    order = np.argsort(~is_hypothesis(scores), axis=1, kind="stable")
    tokens = np.take_along_axis(tokens, order[..., None], axis=1)
    return tokens, np.take_along_axis(scores, order, axis=1)


# === Functions that are compiled: each takes the arguments of `search` as `feed` ===


def whole(model: Generation, options: Decoding) -> Callable:
    """A whole search: tokens `(batch, n, T)` and log-probabilities `(batch, n)`."""

    def run(feed):
        search = model.search(options, **feed)
        tokens, scores = search.run(model.encode(feed["inputs"]))
        batch = ops.shape(next(iter(feed["inputs"].values())))[0]
        shape = batch, -1, options.max_length
        return ops.reshape(tokens, shape), ops.reshape(scores, (batch, -1))

    return run


def first_values(model: Generation, options: Decoding) -> Callable:
    """The start of a search: the decoder's memory, and the values of the loop."""

    def start(feed):
        return model.search(options, **feed).start(model.encode(feed["inputs"]))

    return start


def one_step(model: Generation, options: Decoding) -> Callable:
    """One step: the next values, the best tokens, their scores, and whether to go on.

    An unfinished hypothesis has no score yet.
    """

    def step(feed, memory, index, values):
        search = model.search(options, **feed)
        values = search.next_step(memory, index, values)
        tokens, scores = search.best_so_far(values), search.results(values)[1]
        scores = ops.reshape(scores, (ops.shape(tokens)[0], -1))[:, 0]
        return values, tokens, scores, search.is_unfinished(values)

    return step


def attention(model: Generation, options: Decoding) -> Callable:
    """Attention weights of the captions in `tokens`, see `Generation.attention`."""
    return lambda feed: model.attention(feed["tokens"], model.encode(feed["inputs"]))
