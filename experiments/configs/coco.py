"""NG-SAN's training on COCO: section 5.1 of the paper, L = 4 as in its tables.

The rate of self-critical training lies amid those reported to work, 5e-6 to 2e-5.
"""

import ml_collections
from configs.defaults import DECODING, SELF_CRITICAL


def get_config():
    return ml_collections.ConfigDict(
        {
            "model": {},  # the papers' sizes
            "training": {
                "epochs": 15,
                "batch_size": 10,
                "captions_per_image": 5,
                "max_words": 16,
                "min_count": 5,
                "learning_rate": 3e-4,
                "warmup_epochs": 3,
                "decay_after": 6,
                "decay_every": 3,
                "decay_rate": 0.5,
                "label_smoothing": 0.0,
                "scheduled_sampling": 0.0,
                "clip_value": 0.0,
                "validation_beam_size": 1,
            },
            "self_critical": {
                **SELF_CRITICAL,
                "epochs": 15,
                "batch_size": 10,
                "learning_rate": 1e-5,
            },
            "decoding": DECODING,
        }
    )
