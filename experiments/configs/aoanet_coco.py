"""AoANet's training on COCO: section 4.2 of the paper and its released script."""

import ml_collections
from configs.defaults import DECODING, SELF_CRITICAL


def get_config():
    return ml_collections.ConfigDict(
        {
            "model": {},  # the papers' sizes
            "training": {
                "epochs": 30,
                "batch_size": 10,
                "captions_per_image": 5,
                "max_words": 16,
                "min_count": 5,
                "learning_rate": 2e-4,
                "warmup_epochs": 1,
                "decay_after": 3,
                "decay_every": 3,
                "decay_rate": 0.8,
                "label_smoothing": 0.2,  # of the script
                "scheduled_sampling": 0.05,  # more every 5 epochs
                "clip_value": 0.1,  # of the script
                "validation_beam_size": 1,
            },
            "self_critical": {
                **SELF_CRITICAL,
                "epochs": 15,
                "batch_size": 10,
                "learning_rate": 2e-5,
                "halved_after": 1,  # the script looks every 3,000 steps, thrice
            },
            "decoding": {**DECODING, "beam_size": 2},
        }
    )
