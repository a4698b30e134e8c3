"""Features of photos, at a size that fits about a thousand of them."""

import ml_collections
from configs.defaults import DECODING, SELF_CRITICAL, TRAINING, small_model


def get_config():
    return ml_collections.ConfigDict(
        {
            "model": small_model(256, num_heads=8, dropout=0.2),
            "training": {
                **TRAINING,
                "epochs": 12,
                "batch_size": 16,
                "min_count": 3,
                "learning_rate": 5e-4,
                "warmup_epochs": 2,
                "decay_after": 8,
                "decay_every": 3,
            },
            "self_critical": SELF_CRITICAL,
            "decoding": DECODING,
        }
    )
