"""The built-in data: a small model, trained in minutes on two cores."""

import ml_collections
from configs.defaults import DECODING, SELF_CRITICAL, TRAINING, small_model


def get_config():
    return ml_collections.ConfigDict(
        {
            "model": small_model(128, num_heads=4),
            "training": {
                **TRAINING,
                "epochs": 14,
                "batch_size": 16,
                "max_words": 20,
                "learning_rate": 8e-4,
                "decay_after": 8,
            },
            "self_critical": SELF_CRITICAL,
            "decoding": DECODING,
        }
    )
