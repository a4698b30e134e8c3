import math
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_caption.base.arguments import (
    CountOrZero,
    Positive,
    Samples,
    Share,
    check,
)
from keras_caption.base.compilation import shapes_may_change
from keras_caption.base.errors import InputError, need_backend
from keras_caption.base.replicas import (
    part_of_mean,
    place_among_replicas,
    sum_over_replicas,
)
from keras_caption.decoding import Decoding, sample
from keras_caption.decoding.hook import with_hooks_everywhere
from keras_caption.decoding.random_numbers import uniform_numbers
from keras_caption.decoding.rules import forbidden_log_probs
from keras_caption.decoding.search import repeat_rows
from keras_caption.losses import SequenceCrossEntropy
from keras_caption.models.replica_training import ReplicaTraining
from keras_caption.rewards import reads_of
from keras_caption.text import BOS, EOS, PAD

BASELINES = ("greedy", "mean")


class SelfCritical(ReplicaTraining, keras.Model):
    """Self-critical sequence training of a captioner or translator.

    Descends the negative expected reward by REINFORCE with a baseline b,

        loss = - sum_i (r(c_i) - b_i) log p(c_i) / number of tokens,  c_i ~ p

    over K captions sampled for each image. A whole step, with sampling, greedy search,
    reward and gradient, is one compiled graph. The images are encoded once. The
    decoder's `step` generates sampled and greedy captions in one pass, without a
    gradient; one teacher-forced pass over the sampled captions computes the
    log-probabilities that carry the gradient.

    Dropout is off, both in sampling and in the pass with the gradient: p is the same in
    both, and it is the p that generates captions later. Dropout in one of them alone,
    or with another mask, would yield the gradient of another policy than the one whose
    captions were rewarded. For the same reason, log p is the sampling distribution: at
    `temperature`, without the tokens that are never generated, nor those without
    evidence, if `model.decoding.evidence` is set.

    The samples depend on `seed`, the optimizer's number of steps, and an image's place
    in the global batch. They do not depend on the number of replicas or on the
    compiler, and a resumed run samples the same captions as an uninterrupted one.

    Args:
        model: `keras_caption.models.Captioner` or `Translator`, compiled or not.
        reward: Function of captions `(batch * C, T)` and references `(batch, R, T')`
            to float `(batch * C,)`, for instance `keras_caption.rewards.CiderD`, or
            a `keras_caption.rewards.WeightedSum` of several. A reward may have an
            attribute `reads`, names of tensors of the batch, which it then takes as
            keyword arguments.
        baseline: str: `"greedy"`, the reward of the image's greedy caption; or
            `"mean"`, the mean reward of its other samples.
        samples: int K, number of captions sampled for each image, at most 100.
        temperature: float greater than 0, sampling temperature.
        cross_entropy: float from 0 to 1, weight of the references' cross-entropy in the
            loss.
        max_length: int, greatest number of tokens of a sample.
        seed: int, at least 0.

    Raises:
        InputError: If the baseline is unknown, a number is out of range, or the backend
            of Keras is PyTorch.

    A batch is a dict of the model's inputs and `references`, int32 `(B, R, T)` as for
    `CiderD`, or a tuple that begins with such a dict, as from
    `keras_caption.batches.train_batches`. The logs are means of `reward`, `baseline`,
    `advantage`, `length` (tokens without EOS) and `entropy` (nats per token, estimated
    by -log p of the samples).

    Example:

    ```python
    reward = kc.rewards.CiderD.from_references(training_references)
    trainer = kc.training.SelfCritical(model, reward)
    trainer.fit(dataset)  # trains `model`, with its own optimizer Adam(1e-5)
    ```

    References:
        Rennie et al., "Self-critical Sequence Training for Image Captioning", CVPR
        2017; Luo, "A Better Variant of Self-Critical Sequence Training", 2020.
    """

    def __init__(
        self,
        model: Any,
        reward: Callable,
        baseline: str = "greedy",
        samples: int = 5,
        temperature: float = 1.0,
        cross_entropy: float = 0.0,
        max_length: int = 20,
        seed: int = 0,
        **kwargs,
    ):
        need_backend("Self-critical training", "TensorFlow", "JAX")
        super().__init__(dtype=model.dtype_policy, **kwargs)
        if baseline not in BASELINES:
            raise InputError(
                f"`baseline` must be one of {', '.join(BASELINES)}. "
                f"Received: {baseline!r}"
            )
        check(Samples, samples=samples)
        check(CountOrZero, seed=seed)
        check(Positive, temperature=temperature)
        check(Share, cross_entropy=cross_entropy)
        if baseline == "mean" and samples < 2:
            raise InputError("The baseline 'mean' needs 2 samples. Received: samples=1")
        self.model = model
        self.reward = reward
        self.baseline = baseline
        self.samples = samples
        self.temperature = temperature
        self.cross_entropy = cross_entropy
        self.max_length = max_length
        self.seed = seed
        self._sampling = Decoding(max_length=max_length, temperature=temperature)
        names = ("loss", "reward", "baseline", "advantage", "length", "entropy")
        self.trackers = [keras.metrics.Mean(name=name) for name in names]
        self.built = True
        # A default, so that `fit` works without `compile`.
        self.compile(keras.optimizers.Adam(1e-5))

    def compile(self, optimizer, **kwargs):
        """Compiles the model too, which saves the optimizer."""
        super().compile(optimizer=optimizer, **kwargs)
        loss = self.model.loss or SequenceCrossEntropy()
        self.model.compile(self.optimizer, loss, jit_compile=self.jit_setting)

    @property
    def sampling(self):
        """Options of sampling, with `evidence` as in the options of the model."""
        return self._sampling.override(evidence=self.model.decoding.evidence)

    @property
    def metrics(self):
        return self.trackers

    @property
    def trainable_variables(self):
        return self.model.trainable_variables

    def train_step(self, *args):
        return self.stateless(self.update, *args)

    def update(self, data):
        """Updates the model and the logs by a batch; returns the logs."""
        batch, _, _ = keras.utils.unpack_x_y_sample_weight(data)
        needed = ("references", *reads_of(self.reward))
        # The check runs while the graph is traced, once for each structure of a batch.
        if not isinstance(batch, dict) or not {*needed} <= {*batch}:
            raise InputError(
                f"Self-critical training takes dicts that hold {', '.join(needed)} "
                f"beside the model's inputs. Received: {batch}"
            )
        # Loss scaling of half precision; 1 in float32.
        scale = self.optimizer.scale_loss(1.0)
        read = {name: batch[name] for name in needed}

        def encode(batch):
            inputs = self.model.read(batch)
            states = self.model.read_hooks(self.sampling, inputs)
            return self.model.encode(inputs), states

        def explore(batch):
            memory, states = encode(batch)
            return self.explore(memory, states=states, **read)

        def loss_of(batch, explored):
            memory, states = encode(batch)
            # `explored` is given only if sampling and loss are compiled separately;
            # otherwise both read the memory computed here.
            if explored is None:
                explored = self.explore(memory, states=states, **read)
            tokens, rewards, baselines = explored
            # REINFORCE differentiates log p alone; rewards have no gradient.
            advantages = ops.stop_gradient(rewards - baselines)
            loss, logs = self.loss_of(memory, tokens, advantages, states)
            if self.cross_entropy:
                likelihood = self.loss_of_references(memory, batch["references"])
                loss = (1 - self.cross_entropy) * loss
                loss = loss + self.cross_entropy * likelihood
            return loss * scale, (loss, rewards, baselines, logs)

        explored = self.on_replica(explore, batch) if self.compiles_replicas else None
        gradients, more = self.gradients(loss_of, batch, explored)
        self.descend(gradients)
        loss, rewards, baselines, logs = more

        def mean(values):
            return sum_over_replicas(part_of_mean(values))

        logs = {
            "loss": sum_over_replicas(loss),
            "reward": mean(rewards),
            "baseline": mean(baselines),
            "advantage": mean(rewards - baselines),
            "length": mean(logs["length"]),
            "entropy": sum_over_replicas(logs["entropy"]),
        }
        for tracker in self.trackers:
            tracker.update_state(logs[tracker.name])
        return {tracker.name: tracker.result() for tracker in self.trackers}

    def explore(self, memory, references, states=None, **read):
        """Samples captions and scores them.

        Args:
            memory: Output of the model's `encode`.
            references: int32 `(batch, R, T)`.
            states: Of the model's `read_hooks`, or `None`.
            **read: Further tensors of the batch that the reward reads.

        Returns:
            Tokens int32 `(batch * K, max_length)`, their rewards and baselines,
            float32 `(batch * K,)`.
        """
        with_greedy = self.baseline == "greedy"
        # The greedy caption is the first of an image's K + 1 rows.
        per_image, batch = self.samples + with_greedy, ops.shape(references)[0]
        tokens, _ = sample(
            self.model,
            memory,
            self._numbers(batch, per_image),
            self.sampling,
            per_example={"hooks": states} if states else None,
            first_is_greedy=with_greedy,
        )
        rewards = numbers_of(self.reward(tokens, references, **read), tokens.shape[0])
        rewards = ops.reshape(rewards, (batch, per_image))
        rewards, baselines = compare(rewards, self.baseline)
        if with_greedy:
            tokens = ops.reshape(tokens, (batch, per_image, self.max_length))
            tokens = ops.reshape(tokens[:, 1:], (-1, self.max_length))
        return tokens, ops.reshape(rewards, (-1,)), ops.reshape(baselines, (-1,))

    def _numbers(self, batch, per_image):
        """Generates the uniform numbers of this replica's rows of the global batch."""
        number, count = place_among_replicas()
        rows = batch * per_image
        # The first row here follows the rows of earlier replicas, which may differ.
        row_counts = ops.one_hot(number, count) * ops.cast(rows, "float32")
        before = ops.where(
            ops.arange(count) < number, sum_over_replicas(row_counts), 0.0
        )
        first = ops.cast(ops.sum(before), "int32")
        step = self.optimizer.iterations
        return uniform_numbers(
            self.seed, step, first + ops.arange(rows, dtype="int32"), self.max_length
        )

    def loss_of(self, memory, tokens, advantages, states=None):
        """Computes the loss of sampled captions on this replica, and logs.

        Args:
            memory: Output of the model's `encode`.
            tokens: int32 `(batch * K, T)`, up to EOS, then PAD.
            advantages: float32 `(batch * K,)`.
            states: Of the model's `read_hooks`, or `None`.
        """
        # Up to the end of the longest sample; hooks may depend on the greatest length.
        if shapes_may_change() and not states:
            lengths = ops.sum(ops.cast(tokens != PAD, "int32"), axis=1)
            tokens = tokens[:, : ops.max(lengths, initial=1)]  # replicas may have none
        logits = self.model.logits(shift_right(tokens), memory)
        if states:
            hooks = self.model.hooks_of(self.sampling)
            states = repeat_rows(states, self.samples)
            logits = with_hooks_everywhere(hooks, logits, tokens, states)
        # `policy` of the sampled tokens alone, in one operation over the vocabulary.
        scaled = logits / self.temperature + forbidden_log_probs(logits.shape[-1])
        log_p = -cross_entropies(tokens, scaled)
        terms = log_p * ops.expand_dims(advantages, 1)
        logs = {
            "length": ops.sum(ops.cast(tokens > EOS, "float32"), axis=1),
            "entropy": -part_of_mean(log_p, tokens != PAD),
        }
        return -part_of_mean(terms, tokens != PAD), logs

    def loss_of_references(self, memory, references):
        """Computes the cross-entropy of the references, averaged over their tokens."""
        tokens = ops.reshape(references, (-1, ops.shape(references)[-1]))
        logits = self.model.logits(shift_right(tokens), memory)
        return part_of_mean(cross_entropies(tokens, logits), tokens != PAD)


def cross_entropies(tokens, logits):
    """Computes the cross-entropy of tokens `(rows, T)`, float32 `(rows, T)`."""
    # Of a matrix: TensorFlow would assert shapes of more axes, with a message, in the
    # graph.
    flat = ops.reshape(tokens, (-1,)), ops.reshape(logits, (-1, logits.shape[-1]))
    losses = ops.sparse_categorical_crossentropy(*flat, from_logits=True)
    return ops.reshape(losses, ops.shape(tokens))


def numbers_of(rewards, count):
    """Converts what a reward returns to float32; rewards that count are integers.

    Args:
        rewards: What the reward of a user returned.
        count: int, number of the captions, or `None` if unknown in the graph.

    Raises:
        InputError: If the rewards are not one real number for each caption.
    """
    try:
        rewards = ops.convert_to_tensor(rewards)
        kind = keras.backend.standardize_dtype(rewards.dtype)
        is_real = any(name in kind for name in ("bool", "int", "float"))
    except (TypeError, ValueError):
        is_real = False
    shape = tuple(getattr(rewards, "shape", ()))
    is_known = count is not None and None not in shape
    if not is_real or (is_known and math.prod(shape) != count):
        each = f"each of {count} captions" if is_known else "each caption"
        raise InputError(
            f"The reward should return a real number for {each}. Received: "
            f"{rewards!r:.200}"
        )
    return ops.cast(rewards, "float32")


def compare(rewards, baseline):
    """Separates the rewards of sampled captions from their baselines.

    Args:
        rewards: float `(batch, C)`, rewards of all captions of an image. With the
            baseline `"greedy"`, the first caption is the greedy one.
        baseline: `"greedy"` or `"mean"`.

    Returns:
        Rewards and baselines, float `(batch, K)`.
    """
    if baseline == "greedy":
        rewards, greedy = rewards[:, 1:], rewards[:, :1]
        return rewards, ops.broadcast_to(greedy, ops.shape(rewards))
    # Without the sample itself: the baseline must not depend on it, or the gradient is
    # biased.
    others = ops.sum(rewards, axis=1, keepdims=True) - rewards
    return rewards, others / (rewards.shape[1] - 1)


def shift_right(tokens):
    """Shifts tokens `(rows, T)` one step to the right, after BOS."""
    return ops.pad(tokens[:, :-1], ((0, 0), (1, 0)), constant_values=BOS)
