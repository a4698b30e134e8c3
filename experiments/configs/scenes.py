"""The built-in data: a small model, trained in minutes on two cores."""

import ml_collections
from configs.defaults import DECODING, SELF_CRITICAL, TRAINING


def get_config():
    return ml_collections.ConfigDict(
        {
            "model": {
                "num_layers": 2,
                "model_dim": 128,
                "embedding_dim": 128,
                "num_heads": 4,
                "feedforward_dim": 512,
                "geometry_dim": 32,
                "dropout": 0.1,
            },
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
