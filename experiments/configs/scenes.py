"""The built-in data: a small model, trained in minutes on two cores."""

import ml_collections
from configs.defaults import DECODING, SELF_CRITICAL


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
                "epochs": 14,
                "batch_size": 16,
                "captions_per_image": 5,
                "max_words": 20,
                "min_count": 5,
                "learning_rate": 8e-4,
                "warmup_epochs": 1,
                "decay_after": 8,
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
