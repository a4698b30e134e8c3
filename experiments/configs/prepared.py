"""Features of photos, at a size that fits about a thousand of them."""

import ml_collections
from configs.defaults import DECODING, SELF_CRITICAL, TRAINING


def get_config():
    return ml_collections.ConfigDict(
        {
            "model": {
                "num_layers": 2,
                "model_dim": 256,
                "embedding_dim": 256,
                "num_heads": 8,
                "feedforward_dim": 1024,
                "geometry_dim": 32,
                "dropout": 0.2,
            },
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
