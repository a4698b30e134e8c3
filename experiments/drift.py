r"""Measures the drift of the queries of a captioner's encoder during training.

    python experiments/drift.py --model san --config.model.num_layers=1 \
        --config experiments/configs/captioning/coco_objects.py --data_dir coco

takes the arguments of `keras-caption run`, trains with cross-entropy, and writes no
files. According to NG-SAN's section 4.1, the distribution of the queries Q shifts as
parameters change, and the weights that read Q must follow. After each epoch, the script
measures Q of the first layer over the validation images, before any norm:

- drift: the change of a channel's mean since the last epoch, as a share of the
  channel's standard deviation (root mean square over channels);
- scale: the ratio of a channel's standard deviation to that of the last epoch
  (geometric mean over channels);
- mean of images: the share of the squared norm of Q in the mean over an image's
  regions, which centring removes.
"""

import keras
import numpy as np

import keras_caption as kc
from keras_caption.commands.command_line import start
from keras_caption.commands.configuration import make_config
from keras_caption.commands.run import set_up
from keras_caption.commands.run_arguments import parse
from keras_caption.tasks import Captioning
from keras_caption.training.callbacks import EpochSeeds

BATCH_SIZE = 100


class Drift(keras.callbacks.Callback):
    """Measures the queries of the first layer before training and after each epoch.

    Args:
        model: Captioner whose encoder begins with self-attention.
        batches: List of inputs.

    Attributes:
        rows: List with drift, scale, and share of the mean of images for each epoch.
    """

    def __init__(self, model, batches):
        super().__init__()
        encoder, self.batches = model.encoder, batches
        [block] = [x for x in encoder.layers if x.name == "encoder_0"]
        self.embedding = keras.Model(encoder.inputs, block.input[0])
        self.block, self.before, self.rows = block, None, []

    def on_train_begin(self, logs=None):
        self.before = self.measure()[:2]

    def on_epoch_end(self, epoch, logs=None):
        mean, deviation, share = self.measure()
        old_mean, old_deviation = self.before
        drift = np.sqrt(np.mean(((mean - old_mean) / deviation) ** 2))
        scale = np.exp(np.mean(np.log(deviation / old_deviation)))
        self.rows.append([drift, scale, share])
        self.before = mean, deviation

    def measure(self):
        """Mean and deviation of each channel, and the share of the means of images."""
        queries, squares_of_means = [], 0.0
        for inputs in self.batches:
            x = self.block.before(self.block.attention_norm, self.embedding(inputs))
            x = np.array(self.block.attention.query_dense(x), "float64")
            for image, valid in zip(x, inputs["region_mask"], strict=True):
                image = image[np.asarray(valid, bool)]
                squares_of_means += len(image) * np.sum(image.mean(axis=0) ** 2)
                queries.append(image)
        queries = np.concatenate(queries)
        share = squares_of_means / np.sum(queries**2)
        return queries.mean(axis=0), queries.std(axis=0), share


def main(arguments):
    options, settings = parse(arguments, __doc__)
    task, config = make_config(options.config, settings)
    if task is not Captioning:
        raise kc.InputError("Only captioners of regions have queries to measure.")
    set_up(config)
    task = task(config)
    keras.utils.set_random_seed(config["seed"])
    model = task.create_model(task.build_vocabularies())
    steps = task.steps_per_epoch("training")
    optimizer = task.make_optimizer("training", steps)
    model.compile(optimizer, task.make_loss(), jit_compile=False)
    names = model.encoder.input
    images = kc.batches.image_batches(task.read("val"), BATCH_SIZE, model.input_specs)
    drift = Drift(model, [*images.map(lambda x: {k: x[k] for k in names})])
    model.fit(
        task.train_batches(model, "training", 0),
        epochs=config["training"]["epochs"],
        steps_per_epoch=steps,
        verbose=2,
        callbacks=[EpochSeeds(config["seed"]), drift],
    )
    rows = [
        [str(epoch), f"{moved:.3f}", f"{scale:.3f}", f"{100 * share:.0f} %"]
        for epoch, (moved, scale, share) in enumerate(drift.rows, 1)
    ]
    print(
        kc.evaluation.markdown_table(
            ["epoch", "drift", "scale", "mean of images"], rows
        )
    )


if __name__ == "__main__":
    start(main)
