"""NG-SAN's training on COCO: Section 5.1 of the paper, Implementation Details.

The values marked as ours are not in the paper; the rate of self-critical training
lies amid those reported to work, 5e-6 to 2e-5.
"""

import ml_collections
from configs.defaults import DECODING, SELF_CRITICAL


def get_config():
    return ml_collections.ConfigDict(
        {
            "model": {},  # the models' defaults are the papers' sizes
            "training": {
                "epochs": 15,  # 5.1
                "batch_size": 10,  # 5.1, images
                "captions_per_image": 5,  # all that an image has
                "max_words": 16,  # ours, AoANet's
                "min_count": 5,  # 5.1, for its 9,487 words
                "learning_rate": 3e-4,  # 5.1
                "warmup_epochs": 3,  # 5.1
                "decay_after": 6,  # 5.1
                "decay_every": 3,  # 5.1
                "decay_rate": 0.5,  # 5.1
                "label_smoothing": 0.0,
                "scheduled_sampling": 0.0,
                "clip_value": 0.0,
                "validation_beam_size": 1,  # ours
            },
            "self_critical": {
                **SELF_CRITICAL,  # 5 captions drawn, the greedy one as baseline
                "epochs": 15,  # 5.1
                "batch_size": 10,  # 5.1
                "learning_rate": 1e-5,  # ours
            },
            "decoding": {**DECODING, "beam_size": 3},  # 5.1
        }
    )
