"""The drift of the queries of a captioner's encoder during training.

According to NG-SAN's section 4.1, the distribution of the queries Q shifts as
parameters change, and the weights that read Q must follow. `Drift` measures Q of the
first layer over validation images, before any norm.
"""

import keras
import numpy as np

from keras_caption.batches import image_batches

IMAGES = 200  # of the validation split


class Drift:
    """Measures the queries of an encoder's first layer, now and after each epoch.

    Args:
        model: Captioner whose encoder begins with self-attention over `regions`.
        batches: List of inputs.
    """

    def __init__(self, model, batches):
        encoder, self.batches = model.encoder, batches
        [block] = [x for x in encoder.layers if x.name == "encoder_0"]
        self.embedding = keras.Model(encoder.inputs, block.input[0])
        self.block = block
        self.mean, self.deviation, _ = self.measure()

    def of_epoch(self):
        """How queries moved since the last call, a dict from name to float.

        - drift: the change of a channel's mean, as a share of the channel's standard
          deviation (root mean square over channels);
        - query_scale: the ratio of a channel's standard deviation to that of before
          (geometric mean over channels);
        - mean_of_images: the share of the squared norm of Q in the mean over an image's
          regions, which centring removes.
        """
        mean, deviation, share = self.measure()
        drift = np.sqrt(np.mean(((mean - self.mean) / deviation) ** 2))
        scale = np.exp(np.mean(np.log(deviation / self.deviation)))
        self.mean, self.deviation = mean, deviation
        return {
            "drift": float(drift),
            "query_scale": float(scale),
            "mean_of_images": float(share),
        }

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


def images_of(task, model):
    """The inputs of the first validation images, a list."""
    examples, names = task.read("val").take(IMAGES), model.encoder.input
    batches = image_batches(examples, IMAGES, model.input_specs)
    return [{name: batch[name] for name in names} for batch in batches]
