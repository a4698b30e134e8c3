r"""Features of photos, at a size that fits about a thousand of them.

    python experiments/run.py --config experiments/configs/captioning/prepared.py \
        --data_dir prepared/flickr8k

All values are ours, for two cores.

Reaches: CIDEr-D 37.1 over windows of 1,000 photos of Flickr8k
(docs/results/photos.md).
Takes: three minutes on two cores, 12 s of them an epoch.
"""


def get_config():
    return {
        "data": {
            "dataset": "prepared",
            "data_dir": "prepared/flickr8k",
            "tokenizer": "words",
            "captions_per_image": 5,  # all that an image has
            "max_words": 16,
            "min_count": 3,
            "vocabulary_split": "train",
        },
        "model": {  # those of these sizes that a model has
            "name": "ngsan",
            "num_layers": 2,
            "model_dim": 256,
            "embedding_dim": 256,
            "num_heads": 8,
            "feedforward_dim": 1024,
            "geometry_dim": 32,
            "dropout": 0.2,
        },
        "training": {
            "epochs": 12,
            "batch_size": 16,
            "learning_rate": 5e-4,  # reached after two epochs
            "warmup_epochs": 2,
            "decay_after": 8,  # then halved every third epoch
            "decay_every": 3,
            "decay_rate": 0.5,
            "label_smoothing": 0.0,
            "scheduled_sampling": 0.0,
            "clip_value": 0.0,
        },
        "decoding": {
            "beam_size": 3,
            "max_length": 20,
            "length_penalty": 0.0,
        },
        "evaluation": {"validation_beam_size": 1, "spice": False},
    }
