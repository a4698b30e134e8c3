"""COCO's annotated objects, at a size that fits a few thousand images."""

import ml_collections
from configs.defaults import DECODING, SELF_CRITICAL


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
                "epochs": 10,
                "batch_size": 32,
                "captions_per_image": 5,
                "max_words": 16,
                "min_count": 5,
                "learning_rate": 5e-4,
                "warmup_epochs": 1,
                "decay_after": 6,
                "decay_every": 2,
                "decay_rate": 0.5,
                "label_smoothing": 0.0,
                "scheduled_sampling": 0.0,
                "clip_value": 0.0,
                "validation_beam_size": 1,
            },
            "self_critical": SELF_CRITICAL,
            "decoding": DECODING,
        }
    )
