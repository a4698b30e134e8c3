"""What the configurations of all datasets begin with."""

import ml_collections


def small_model(dim, num_heads, dropout=0.1):
    """Sizes that two cores train in minutes."""
    return {
        "num_layers": 2,
        "model_dim": dim,
        "embedding_dim": dim,
        "num_heads": num_heads,
        "feedforward_dim": 4 * dim,
        "geometry_dim": 32,
        "dropout": dropout,
    }


TRAINING = {
    "captions_per_image": 5,
    "max_words": 16,
    "min_count": 5,
    "vocabulary_split": "train",
    "warmup_epochs": 1,
    "decay_every": 2,
    "decay_rate": 0.5,
    "label_smoothing": 0.0,
    "scheduled_sampling": 0.0,
    "clip_value": 0.0,
    "validation_beam_size": 1,
}
SELF_CRITICAL = {
    "epochs": 0,
    "batch_size": 16,
    "learning_rate": 1e-4,
    "baseline": "greedy",
    "samples": 5,
    "temperature": 1.0,
    "cross_entropy": 0.0,
    "halved_after": 0,
    "clip_value": 0.0,
}
# A learning rate of self-critical training that continues the schedule of the phase
# before it.
CONTINUED = ml_collections.config_dict.placeholder(float)
DECODING = {"beam_size": 3, "max_length": 20, "length_penalty": 0.0}
