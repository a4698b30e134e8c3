"""COCO's annotated objects, at a size that fits a few thousand images."""

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
                "dropout": 0.1,
            },
            "training": {
                **TRAINING,
                "epochs": 10,
                "batch_size": 32,
                "learning_rate": 5e-4,
                "decay_after": 6,
            },
            "self_critical": SELF_CRITICAL,
            "decoding": DECODING,
        }
    )
