"""COCO's annotated objects, at a size that fits a few thousand images."""

import ml_collections
from configs.defaults import DECODING, SELF_CRITICAL, TRAINING, small_model


def get_config():
    return ml_collections.ConfigDict(
        {
            "model": small_model(256, num_heads=8),
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
