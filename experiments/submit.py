r"""Writes the results files that COCO's caption server takes.

    python experiments/submit.py saved_models/ngsan_prepared --name ngsan \
        --val2014 prepared/val2014 --test2014 prepared/test2014

captions all images of the two datasets, which experiments/prepare.py makes of
captions_val2014.json and image_info_test2014.json, and writes
captions_val2014_ngsan_results.json and captions_test2014_ngsan_results.json. Several
models, separated by commas, caption as an ensemble. What is written is scored against
--references, the server's c5 and c40 captions, say, where there are any. A file of
before is scored with

    python -m keras_caption.evaluation C5.json C40.json RESULTS.json
"""

import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from absl import flags
from command import start
from tqdm import tqdm

import keras_caption as kc

SETS = {"val2014": 40_504, "test2014": 40_775}
FLAGS = flags.FLAGS
flags.DEFINE_string("name", None, "Of the algorithm, in the files' names.")
for name, count in SETS.items():
    flags.DEFINE_string(name, None, f"Prepared dataset of the {count:,} images.")
flags.DEFINE_list("references", [], "COCO's captions_*.json to score against.")
flags.DEFINE_bool(
    "spice", False, "Compute SPICE too; its first use downloads several hundred MB."
)
flags.DEFINE_string("output_dir", ".", "Where the files go.")
flags.DEFINE_integer("beam_size", 3, "Of the search; 1 is greedy.", lower_bound=1)
flags.DEFINE_integer("batch_size", 50, "Images captioned at once.", lower_bound=1)
flags.mark_flag_as_required("name")


def main(argv):
    if len(argv) != 2:
        sys.exit("error: name one saved model, or several separated by commas.")
    submit(argv[1].split(","))


def submit(paths):
    if not any(FLAGS[name].value for name in SETS):
        raise kc.InputError("Give --val2014, --test2014 or both.")
    model = kc.models.Ensemble(paths)
    for name, expected in SETS.items():
        if not FLAGS[name].value:
            continue
        builder = kc.data.load("prepared", FLAGS[name].value)
        examples = kc.data.read(builder, "+".join(builder.info.splits))
        batches = kc.data.image_batches(examples, FLAGS.batch_size, model.image_specs)
        count = -(-len(examples) // FLAGS.batch_size)
        captions = model.caption(
            tqdm(batches, name, count, unit=" batches"), beam_size=FLAGS.beam_size
        )
        path = pathlib.Path(FLAGS.output_dir)
        path /= f"captions_{name}_{FLAGS.name}_results.json"
        kc.evaluation.write_results(path, captions)
        print(f"Wrote {path}, {len(captions):,} captions")
        if len(captions) != expected:
            print(f"The server expects {expected:,}.")
        known = [
            reference
            for reference in FLAGS.references
            if kc.data.read_captions(reference).keys() & captions.keys()
        ]
        if known:
            print(kc.evaluation.score_table(known, path, FLAGS.spice))


if __name__ == "__main__":
    start(main)
