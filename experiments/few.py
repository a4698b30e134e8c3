r"""Measures new captioners that are trained on few images.

    C=experiments/configs/captioning
    python experiments/few.py --config $C/detected_objects.py --data_dir coco \
        --images 64,125,250,500,1000

trains on the first images of the training split, with a vocabulary of their captions,
and captions the validation split greedily. Prints the number of different captions, the
share of the commonest caption, the share of captions that repeat a phrase, and CIDEr-D.
--updates sets a least number of weight updates: with few images there are more epochs.
"""

import collections
import math

import keras

import keras_caption as kc
from keras_caption.commands.command_line import Parser, count, names, start
from keras_caption.commands.configuration import make_config
from keras_caption.evaluation.outputs import repeats
from keras_caption.tasks import Captioning

BATCH_SIZE = 50


class FirstImages(Captioning):
    """A captioning experiment with the first images of its training split."""

    images: int

    def read(self, split):
        examples = super().read(split)
        return examples.take(self.images) if split == "train" else examples

    def build_vocabularies(self):
        captions = kc.datasets.references(self.read("train")).values()
        texts = [caption for of_image in captions for caption in of_image]
        vocabulary = kc.text.Vocabulary.build(texts, self.data["min_count"])
        return {"vocabulary": vocabulary}


def main(arguments):
    parser = Parser("experiments/few.py", __doc__)
    parser.add_argument("--config", required=True, help="a captioning experiment")
    parser.add_argument("--data_dir", help="folder of its data")
    parser.add_argument("--images", type=names, required=True, help="numbers of images")
    parser.add_argument(
        "--updates", type=count, default=0, help="least number of weight updates"
    )
    options = parser.parse_args(arguments)
    _, config = make_config(options.config, {"data.data_dir": options.data_dir})
    rows = []
    for images in map(count, options.images):
        task = FirstImages(config)
        task.images = images
        rows.append([f"{images:,}", *outcome(task, options.updates)])
    columns = "vocabulary", "updates", "different", "alike", "repeat", "CIDEr-D"
    print(kc.evaluation.markdown_table(["training images", *columns], rows))


def outcome(task, updates):
    """Trains a new model; returns the cells of its row."""
    keras.utils.set_random_seed(task.config["seed"])
    steps = task.steps_per_epoch("training")
    values = task.config["training"]
    epochs = max(values["epochs"], math.ceil(updates / steps))
    model = task.create_model(task.build_vocabularies())
    model.compile(task.make_optimizer("training", steps), task.make_loss())
    batches = task.train_batches(model, "training", 0)
    model.fit(batches, epochs=epochs, steps_per_epoch=steps, verbose=0)
    examples = task.read("val")
    batches = kc.batches.image_batches(examples, BATCH_SIZE, model.input_specs)
    captions = model.caption(batches, beam_size=1)
    texts = [*captions.values()]
    commonest = max(collections.Counter(texts).values())
    cider = kc.evaluation.cider(captions, kc.datasets.references(examples))
    shares = commonest / len(texts), sum(map(repeats, texts)) / len(texts), cider
    return [
        f"{len(model.vocabulary):,}",
        f"{steps * epochs:,}",
        f"{len(set(texts)):,}",
        *(f"{100 * share:.1f}" for share in shares),
    ]


if __name__ == "__main__":
    start(main)
