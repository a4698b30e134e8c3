from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_caption.base.compilation import setting_of
from keras_caption.decoding import scheduled_sampling
from keras_caption.models.replica_training import ReplicaTraining


class ScheduledSamplingTrainer(ReplicaTraining, keras.Model):
    """Trains a model with cross-entropy, partly on tokens that it sampled.

    Some input tokens of the decoder are replaced by samples from the model; the targets
    stay. Train with `fit` on the same data as the model; it uses the model's optimizer
    and loss. `compile` replaces them in both the trainer and the model.

    Args:
        model: `keras_caption.models.Captioner` or `Translator`.
        schedule: Function from the number of training steps done to the probability
            that a token is replaced, such as
            `keras_caption.training.ScheduledSampling`.

    Example:

    ```python
    schedule = kc.training.ScheduledSampling(steps_per_epoch=1000)
    kc.training.ScheduledSamplingTrainer(model, schedule).fit(dataset)
    ```

    Reference:
        Bengio et al., "Scheduled Sampling for Sequence Prediction with Recurrent
        Neural Networks", NeurIPS 2015.
    """

    def __init__(self, model: Any, schedule: Callable, **kwargs):
        super().__init__(dtype=model.dtype_policy, autocast=False, **kwargs)
        self.model = model
        self.schedule = schedule
        self.seeds = keras.random.SeedGenerator()
        self.built = True
        if model.compiled:
            self.compile(model.optimizer, model.loss, jit_compile=setting_of(model))

    def compile(self, optimizer, loss, **kwargs):
        """Compiles the model too, which saves optimizer and loss."""
        super().compile(optimizer, loss, **kwargs)
        self.model.compile(self.optimizer, loss, **kwargs)

    def call(self, inputs, training=None):
        return self.model(inputs, training=training)

    def train_step(self, *args):
        replaced = self.stateless(self.replace, *args)
        if keras.backend.backend() != "jax":
            return super().train_step(replaced)
        data, state = replaced
        return super().train_step(state, data)

    def replace(self, data: Any) -> Any:
        """Replaces some input tokens of a batch of inputs, targets and weights."""
        inputs, targets, weights = keras.utils.unpack_x_y_sample_weight(data)
        inputs = {**inputs, "tokens": self.on_replica(self.sample, inputs)}
        return inputs, targets, weights

    def sample(self, inputs: dict[str, Any]) -> Any:
        """Replaces some tokens of a batch by samples from the model.

        Args:
            inputs: dict of the model's inputs and `tokens`, int `(..., T)`.

        Returns:
            int32, of the shape of the tokens.
        """
        tokens = ops.convert_to_tensor(inputs["tokens"], "int32")
        shape = ops.shape(tokens)
        probability = self.schedule(self.optimizer.iterations)
        flat = ops.reshape(tokens, (-1, shape[-1]))
        coins, numbers = (
            keras.random.uniform(ops.shape(flat), seed=self.seeds) for _ in range(2)
        )

        def replace():
            memory = self.model.encode(self.model.read(inputs))
            replaced = scheduled_sampling(
                self.model, memory, flat, coins, numbers, probability
            )
            return ops.reshape(replaced, shape)

        # The first epochs have probability 0: they skip the decoding loop.
        return ops.cond(probability > 0, replace, lambda: tokens)
