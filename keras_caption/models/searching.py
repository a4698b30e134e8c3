import functools
from typing import TYPE_CHECKING, Any

from jaxtyping import Float32, Int32
from keras import ops

from keras_caption.base.arguments import Tensor
from keras_caption.base.errors import InputError
from keras_caption.decoding import Decoding, length_limits
from keras_caption.decoding.beam_search import make_beam
from keras_caption.decoding.constrained_beam import Required
from keras_caption.decoding.greedy_search import GreedySearch
from keras_caption.decoding.hook import HOOKS, Hook
from keras_caption.decoding.sampling import Sampling
from keras_caption.decoding.search import Search, chosen_log_probs
from keras_caption.formats.coco_categories import CATEGORIES
from keras_caption.inputs import InputKind
from keras_caption.models.compiled_searches import CompiledSearches
from keras_caption.models.generation import Generation
from keras_caption.text import PAD, Tokenizer, Vocabulary


class Searching(Generation):
    """Mixin of models and ensembles in Keras that generates by searches.

    A subclass has a `vocabulary`, `memory_kind` and the methods `encode`, `start`,
    `step`, `logits` and `attention`, beside the attributes of an `InputReader`.
    """

    if TYPE_CHECKING:

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
        only_best: bool = False,
    ) -> Search:
        """Makes the search by which the model generates.

        Args:
            options: `keras_caption.decoding.Decoding`.
            inputs: dict of tensors, as `read` returns it.
            per_example: As in `Search`, without limits.
            numbers: As in `keras_caption.decoding.sample`; `None` for a search that
                does not sample.
            required: As in `keras_caption.decoding.beam_search`.
            only_best: bool, whether only the best text of each example is asked for,
                which a beam may find earlier than all others.
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
        return make_beam(self, options, per_example, required, only_best)

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
        categories = getattr(self, "categories", None) or ()
        table = getattr(self, "evidence_table", None)
        if table is None:
            # Names of colours may follow those of objects.
            categories = tuple(categories[: len(CATEGORIES)])
        if not categories or (table is None and categories != CATEGORIES):
            raise InputError(
                f"The model '{self.name}' does not caption detected objects of COCO's "
                "categories, and has no `evidence_table` of others: it takes no "
                "`evidence`."
            )
        vocabulary = self._check_vocabulary()
        if not isinstance(vocabulary, Vocabulary):
            raise InputError(
                f"The model '{self.name}' has no vocabulary of words: it takes no "
                "`evidence`."
            )
        return HOOKS["evidence"](vocabulary, categories, table)

    @functools.cached_property
    def backend(self) -> CompiledSearches:
        """The compiled functions that generate."""
        return CompiledSearches(self)

    def forget_compiled(self) -> None:
        super().forget_compiled()
        self.backend.functions.clear()
