r"""Features of videos, at a size that fits about a hundred of them.

    keras-caption prepare --frames features --captions captions.json \
        --output_dir prepared/msvd
    python experiments/run.py --config experiments/configs/captioning/msvd.py

All values are ours, for two cores; those that are not here are of the built-in clips.

Reaches: CIDEr-D 20.0 ± 18.2, 27.6 ± 7.1 with --model video_aoa, on 100 videos
    (docs/results/msvd.csv).
Takes: 55 s of CPU time.
"""

from keras_caption.tasks.captioning import get_config as built_in


def get_config():
    config = built_in("video_nsa")
    config["data"] |= {
        "dataset": "prepared",
        "data_dir": "prepared/msvd",
        "captions_per_image": 10,  # of about thirty; others each epoch
        "max_words": 16,
        "min_count": 3,
    }
    config["model"] |= {"num_heads": 8, "dropout": 0.3}
    config["training"] |= {
        "epochs": 20,
        "batch_size": 10,
        "learning_rate": 5e-4,  # reached after two epochs
        "warmup_epochs": 2,
        "decay_every": 3,  # after epoch 12, halved
        "label_smoothing": 0.1,
    }
    config["self_critical"]["batch_size"] = 10
    config["decoding"]["max_length"] = 20
    return config
