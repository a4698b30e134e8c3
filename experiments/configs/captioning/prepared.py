r"""Features of photos, at a size that fits about a thousand of them.

    python experiments/run.py --config experiments/configs/captioning/prepared.py \
        --data_dir prepared/flickr8k

All values are ours, for two cores; those that are not here are of the built-in scenes.

Reaches: CIDEr-D 37.1 over windows of 1,000 photos of Flickr8k
(docs/results/photos.md).
Takes: three minutes on two cores, 12 s of them an epoch.
"""

from keras_caption.tasks.captioning import get_config as built_in


def get_config():
    config = built_in("ngsan")
    config["data"] |= {
        "dataset": "prepared",
        "data_dir": "prepared/flickr8k",
        "max_words": 16,
        "min_count": 3,
    }
    config["model"] |= {
        "model_dim": 256,
        "embedding_dim": 256,
        "num_heads": 8,
        "feedforward_dim": 1024,
        "dropout": 0.2,
    }
    config["training"] |= {
        "epochs": 12,
        "learning_rate": 5e-4,  # reached after two epochs
        "warmup_epochs": 2,
        "decay_every": 3,  # after epoch 8, halved
    }
    return config
