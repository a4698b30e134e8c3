r"""A small captioner of COCO's annotated objects.

    python experiments/run.py \
        --config experiments/configs/captioning/detected_objects.py --data_dir coco

What it trains captions any photo, given a detector. All values are ours, for two cores.

Reaches: CIDEr-D 83.2 ± 2.9 on val2017 by cross-entropy, `ngsan_signed`, as rewarded for
    the truth about objects 82.8 ± 2.3 (docs/results/detected.csv).
Takes: six minutes on two cores, 22 s of them an epoch.
"""


def get_config():
    return {
        "data": {
            "dataset": "coco_objects",
            "data_dir": None,  # TFDS downloads coco_captions
            "tokenizer": "words",
            "captions_per_image": 5,  # all that an image has
            "max_words": 16,
            "min_count": 5,
            "vocabulary_split": "train",
        },
        "model": {  # those of these sizes that a model has
            "name": "ngsan",
            "num_layers": 2,
            "model_dim": 128,
            "embedding_dim": 128,
            "num_heads": 4,
            "feedforward_dim": 512,
            "geometry_dim": 32,
            "dropout": 0.1,
        },
        "training": {
            "epochs": 12,
            "batch_size": 32,
            "learning_rate": 8e-4,  # reached after the first epoch
            "warmup_epochs": 1,
            "decay_after": 6,  # then halved every second epoch
            "decay_every": 2,
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
