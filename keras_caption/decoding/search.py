import abc
from typing import Any, NamedTuple

from jaxtyping import Bool, Float, Float32, Int, Int32
from keras import ops, tree

from keras_caption.base.arguments import Tensor
from keras_caption.base.compilation import growing, shapes_may_change
from keras_caption.decoding.best_tokens import Scores, log_sum_exp
from keras_caption.decoding.hook import with_hooks
from keras_caption.decoding.rules import (
    NEG_INF,
    Step,
    choosing_scores,
    forbidden_log_probs,
    is_asked_for,
)
from keras_caption.decoding.take_by_row import take_by_row
from keras_caption.settings.decoding import Decoding


class NextTokens(NamedTuple):
    """Scores of next tokens, by which a search chooses, and their log-probabilities.

    Both lack a constant of each row, which changes no order: to subtract it from all
    tokens takes longer than from those that are chosen.

    Attributes:
        scores: `Scores`, see `choosing_scores`.
        log_probs: float32 `(rows, vocabulary_size)`, log-probabilities.
        constant: float32 `(rows,)`, subtracted from scores and log-probabilities.
    """

    scores: Scores
    log_probs: Float32[Tensor, "rows vocabulary_size"]
    constant: Float32[Tensor, " rows"]


class Search(abc.ABC):
    """Base class of searches, which generate sequences in steps of one token.

    Between steps, a search keeps `values`: a nested structure of tensors with constant
    shapes, which has the keys `"tokens"`, `"cache"` (the decoder's) and
    `"per_example"`.

    Args:
        decoder: Has `start(memory, length) -> state` and
            `step(tokens, state, index) -> (logits, state)`; and may have `can_grow`,
            see `keras_caption.models.TokenDecoder`.
        options: `Decoding`. Options that are text are ignored: their tokens are in
            `per_example`.
        per_example: dict of tensors `(batch, ...)`, values that differ between
            examples: `"limits"`, int `(batch,)`, greatest numbers of tokens, EOS
            included; `"prefix"`, int `(batch, max_length)`, padded behind;
            `"forbidden"`, int `(batch, phrases, longest)`, padded in front;
            `"min_length"`, `"length_penalty"`, `"repetition_penalty"`, `"temperature"`,
            `"top_k"` and `"top_p"`, each `(batch,)`, which replace the options of these
            names; and `"hooks"`, a dict, what each of the decoder's `hooks_of(options)`
            read of the examples.
    """

    def __init__(
        self,
        decoder: Any,
        options: Decoding,
        per_example: dict[str, Tensor] | None = None,
    ):
        self.decoder = decoder
        self.options = options
        self.per_example = per_example or {}

    @abc.abstractmethod
    def begin(self, state: dict[str, Any]) -> dict[str, Any]:
        """Returns the values before the first step.

        Args:
            state: State of the decoder, as its `start` returned it.
        """

    @abc.abstractmethod
    def unfinished(self, values: dict[str, Any]) -> Bool[Tensor, " rows"]:
        """Returns which sequences or beams need another step, bool `(rows,)`."""

    def is_unfinished(self, values: dict[str, Any]) -> Bool[Tensor, ""]:
        """Returns whether another step is needed, bool scalar."""
        return ops.any(self.unfinished(values))

    @abc.abstractmethod
    def next_step(
        self, memory: Any, index: Int[Tensor, ""], values: dict[str, Any]
    ) -> Any:
        """Returns the values after one more step.

        Args:
            memory: The constant part of the decoder's state.
            index: int scalar, position of the token to generate.
            values: dict, the values before the step.
        """

    @abc.abstractmethod
    def results(self, values: dict[str, Any]) -> tuple[Tensor, Tensor]:
        """Returns tokens and log-probabilities of the generated sequences."""

    @abc.abstractmethod
    def best_so_far(self, values: dict[str, Any]) -> Int32[Tensor, "batch max_length"]:
        """Returns the best sequence of each example so far, finished or not."""

    def start(self, encoded: Any) -> tuple[Any, dict[str, Any]]:
        """Returns the decoder's memory of an encoder's output, and the first values."""
        state = self.decoder.start(encoded, length=self.options.max_length)
        return state["memory"], self.begin(state)

    def run(self, encoded: Any) -> tuple[Tensor, Tensor]:
        """Takes all steps, in one graph.

        Args:
            encoded: The encoder's output, which the decoder's `start` takes.

        Returns:
            `results`.
        """
        length = cache_length(self.decoder, self.options.max_length)
        state = self.decoder.start(encoded, length=length)
        memory, first = state["memory"], self.begin(state)
        if length is None:
            return self._run_by_parts(encoded, batch_size(state), first)
        # The memory is a constant of the loop: only `values` is carried from step to
        # step.
        _, values = ops.while_loop(
            lambda index, values: self.is_unfinished(values),
            lambda index, values: (index + 1, self.next_step(memory, index, values)),
            (0, first),
            maximum_iterations=self.options.max_length,
        )
        return self.results(values)

    def _run_by_parts(self, encoded, examples, first):
        """Takes all steps, where shapes may change, without finished examples.

        Once a quarter of the examples are finished, the loop over steps ends, and
        begins anew with the others.

        Args:
            encoded: The encoder's output, one row for each example.
            examples: int scalar, number of examples.
            first: dict, the values before the first step.
        """
        longest = self.options.max_length
        # A loop carries no `None`, such as the mask of a grid.
        leaves = tree.flatten(encoded)
        carried = [x for x in leaves if x is not None]

        def packed(tensors):
            rest = iter(tensors)
            return tree.pack_sequence_as(
                encoded, [None if x is None else next(rest) for x in leaves]
            )

        def part(index, places, tensors, values, found):
            present = ops.shape(places)[0]
            memory = self.decoder.start(packed(tensors), length=None)["memory"]

            def are_enough(index, values):
                unfinished = ops.any(by_example(self.unfinished(values), present), 1)
                count = ops.sum(ops.cast(unfinished, "int32"))
                return ops.logical_and(index < longest, 4 * count > 3 * present)

            index, values = ops.while_loop(
                are_enough,
                lambda index, values: (
                    index + 1,
                    self.next_step(memory, index, values),
                ),
                (index, values),
            )
            found = [
                ops.scatter_update(
                    x, ops.expand_dims(places, 1), by_example(y, present)
                )
                for x, y in zip(found, self.results(values), strict=True)
            ]
            unfinished = ops.any(by_example(self.unfinished(values), present), 1)
            [kept] = ops.nonzero(unfinished)
            kept = ops.cast(kept, "int32")
            tensors, values = take_examples((tensors, values), kept, present)
            return index, ops.take(places, kept), tensors, values, found

        found = [by_example(x, examples) for x in self.results(first)]
        rows = ops.arange(examples, dtype="int32"), carried, first
        # The number of rows changes from part to part.
        rows = tree.map_structure(lambda x: growing(x, 0), rows)
        *_, found = ops.while_loop(
            lambda index, places, *_: ops.logical_and(
                index < longest, ops.shape(places)[0] > 0
            ),
            part,
            (0, *rows, found),
        )
        tokens, log_probs = (ops.reshape(x, (-1, *x.shape[2:])) for x in found)
        return tokens, log_probs

    def next_tokens(
        self, logits: Tensor, tokens: Tensor, index: Any, values: dict[str, Any]
    ) -> NextTokens:
        """Computes the scores of next tokens of a decoder's logits."""
        options, per_example = self.options, values["per_example"]
        if options.renormalize:
            logits = logits + forbidden_log_probs(logits.shape[-1], options.allow_unk)
        states = per_example.get("hooks")
        # These take log-probabilities as they are.
        if states or is_asked_for("repetition_penalty", options, per_example):
            log_probs = ops.log_softmax(logits)
            constant = ops.zeros_like(logits[:, 0])
        else:
            log_probs, constant = logits, log_sum_exp(logits)
        scores = log_probs
        if states:
            hooks = self.decoder.hooks_of(options)
            scores = with_hooks(hooks, scores, tokens, index, states)
        step = Step(log_probs, tokens, index)
        chosen_by = choosing_scores(scores, step, options, per_example)
        return NextTokens(chosen_by, log_probs, constant)

    def option(self, name: str, values: dict[str, Any]) -> Any:
        """Returns the value of an option, or a tensor with a value for each row."""
        return values["per_example"].get(name, getattr(self.options, name))


def cache_length(decoder: Any, max_length: Any) -> Any:
    """Returns the length of a decoder's cache in a loop: `None` if it grows there.

    Attention to a cache that grows computes nothing for positions to come.
    """
    can_grow = getattr(decoder, "can_grow", False) and shapes_may_change()
    return None if can_grow else max_length


def choose_rows(
    chosen: Bool[Tensor, " rows"], first: dict[str, Tensor], second: dict[str, Tensor]
) -> dict[str, Tensor]:
    """Takes some rows from the first of two dicts of tensors, others from the second.

    Args:
        chosen: bool `(rows,)`, whether a row is the first one's.
        first, second: dict of tensors `(rows, ...)`.
    """

    def choose(x, y):
        is_first = ops.reshape(chosen, (-1,) + (1,) * (len(x.shape) - 1))
        return ops.where(is_first, x, y)

    return {name: choose(first[name], second[name]) for name in first}


def is_hypothesis(scores: Float32[Tensor, "..."]) -> Any:
    """Tells scores of sequences from those of free places or forbidden tokens."""
    return scores > NEG_INF / 2  # a sum with NEG_INF is not NEG_INF exactly


def batch_size(state: dict[str, Any]) -> Any:
    """Returns the number of rows of a decoder's state."""
    return ops.shape(tree.flatten(state["cache"])[0])[0]


def repeat_rows(values: Any, times: Any) -> Any:
    """Repeats each row of all tensors; copies of a row are adjacent."""
    return tree.map_structure(lambda x: ops.repeat(x, times, axis=0), values)


def by_example(rows: Any, examples: Any) -> Any:
    """Reshapes `(examples * n, ...)` to `(examples, n, ...)`."""
    count, *rest = ops.shape(rows)
    return ops.reshape(rows, (examples, count // ops.maximum(examples, 1), *rest))


def take_examples(values: Any, kept: Int32[Tensor, " kept"], examples: Any) -> Any:
    """Takes the rows of some of the examples, of all tensors.

    Args:
        values: Nested structure of tensors `(examples * n, ...)`; n may differ.
        kept: int32 `(kept,)`, places of the examples.
        examples: int scalar, number of the examples in `values`.
    """

    def take(x):
        taken = ops.take(by_example(x, examples), kept, axis=0)
        count, n, *rest = ops.shape(taken)
        return ops.reshape(taken, (count * n, *rest))

    return tree.map_structure(take, values)


def chosen_log_probs(
    log_probs: Float[Tensor, "... vocabulary_size"], tokens: Int[Tensor, "..."]
) -> Float[Tensor, "..."]:
    """Looks up the log-probabilities of tokens.

    Args:
        log_probs: float `(..., vocabulary_size)`.
        tokens: int `(...)`.

    Returns:
        float `(...)`.
    """
    flat = ops.reshape(log_probs, (-1, log_probs.shape[-1]))
    chosen = take_by_row(flat, ops.reshape(tokens, (-1, 1)))
    return ops.reshape(chosen, ops.shape(tokens))
