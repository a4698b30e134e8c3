"""The built-in data: a small model, trained in minutes on two cores."""

import ml_collections


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
                "validation_beam_size": 1,
            },
            "self_critical": {
                "epochs": 0,
                "batch_size": 16,
                "learning_rate": 5e-5,
                "baseline": "greedy",
                "samples": 5,
                "temperature": 1.0,
                "cross_entropy": 0.0,
            },
            "decoding": {"beam_size": 3, "max_length": 20, "length_penalty": 0.0},
        }
    )
