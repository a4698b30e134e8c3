"""AoANet's training on COCO: Section 4.2 of the paper, Implementation Details.

Where the paper is silent it is that of the released train.sh and opts.py.
"""

import ml_collections
from configs.defaults import DECODING, SELF_CRITICAL


def get_config():
    return ml_collections.ConfigDict(
        {
            "model": {},  # the models' defaults are the papers' sizes
            "training": {
                "epochs": 30,  # 4.2
                "batch_size": 10,  # 4.2
                "captions_per_image": 5,  # train.sh
                "max_words": 16,  # of the toolkit's data
                "min_count": 5,  # 4.1
                "learning_rate": 2e-4,  # 4.2
                "warmup_epochs": 1,  # none
                "decay_after": 3,  # 4.2
                "decay_every": 3,  # 4.2
                "decay_rate": 0.8,  # 4.2
                "label_smoothing": 0.2,  # train.sh
                "scheduled_sampling": 0.05,  # 4.2, more every 5 epochs
                "clip_value": 0.1,  # opts.py
                "validation_beam_size": 1,  # train.sh
            },
            "self_critical": {
                **SELF_CRITICAL,  # 5 captions drawn, the greedy one as baseline
                "epochs": 15,  # 4.2
                "batch_size": 10,  # 4.2
                "learning_rate": 2e-5,  # 4.2
                "halved_after": 1,  # 4.2; train.sh looks every 3,000 steps, thrice
            },
            "decoding": {**DECODING, "beam_size": 2},  # of its command for scoring
        }
    )
