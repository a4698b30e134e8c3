"""NG-SAN's training on COCO: section 5.1 of the paper.

The paper gives neither the batch size nor what decides which words are known; it
"follows" Transformer-Base and MT, another captioner, in what it does not state. Values
marked as ours are not in the paper.
"""

import ml_collections
from configs.defaults import CONTINUED, DECODING, SELF_CRITICAL


def get_config():
    return ml_collections.ConfigDict(
        {
            "model": {},  # the models' defaults are the papers' sizes; d_g is ours
            "training": {
                "epochs": 15,  # 5.1
                "batch_size": 10,  # images; ours, AoANet's
                "captions_per_image": 5,  # all that an image has
                "max_words": 16,  # ours, that of AoANet's released code
                # 9,487 words (5.1), as the toolkit that most captioners use counts
                # them: more than five times, in all of Karpathy's splits.
                "min_count": 6,
                "vocabulary_split": "all",
                "learning_rate": 3e-4,  # 5.1
                "warmup_epochs": 3,  # 5.1
                "decay_after": 6,  # 5.1
                "decay_every": 3,  # 5.1
                "decay_rate": 0.5,  # 5.1
                "label_smoothing": 0.0,  # ours: none is mentioned
                "scheduled_sampling": 0.0,  # ours: none is mentioned
                "clip_value": 0.0,  # ours: none is mentioned
                "validation_beam_size": 1,  # ours
            },
            "self_critical": {
                **SELF_CRITICAL,  # ours: 5 sampled captions, the greedy as baseline
                "epochs": 15,  # 5.1
                "batch_size": 10,  # ours, as above
                # 5.1 has one schedule, of the epoch t, and no other rate: 1.875e-5 in
                # epochs 16 to 18, halved every 3.
                "learning_rate": CONTINUED,
            },
            "decoding": {**DECODING, "beam_size": 3},  # 5.1; the length is ours
        }
    )
