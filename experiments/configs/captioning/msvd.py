r"""Features of videos, at a size that fits about a hundred of them.

    keras-caption prepare --frames features --captions captions.json \
        --output_dir prepared/msvd
    python experiments/run.py --config experiments/configs/captioning/msvd.py

All values are ours, for two cores.

Reaches: CIDEr-D 20.0 ± 18.2, 27.6 ± 7.1 with --model video_aoa, on 100 videos
    (docs/results/msvd.csv).
Takes: 55 s of CPU time.
"""


def get_config():
    return {
        "data": {
            "dataset": "prepared",
            "data_dir": "prepared/msvd",
            "tokenizer": "words",
            "captions_per_image": 10,  # of about thirty; others each epoch
            "max_words": 16,
            "min_count": 3,
            "vocabulary_split": "train",
        },
        "model": {  # those of these sizes that a model has
            "name": "video_nsa",
            "num_layers": 1,
            "model_dim": 256,
            "embedding_dim": 256,
            "num_heads": 8,
            "feedforward_dim": 512,
            "dropout": 0.3,
        },
        "training": {
            "epochs": 20,
            "batch_size": 10,
            "learning_rate": 5e-4,  # reached after two epochs
            "warmup_epochs": 2,
            "decay_after": 12,  # then halved every third epoch
            "decay_every": 3,
            "decay_rate": 0.5,
            "label_smoothing": 0.1,
            "scheduled_sampling": 0.0,
            "clip_value": 0.0,
        },
        "self_critical": {
            "epochs": 0,  # none, unless asked for
            "batch_size": 10,
            "learning_rate": 1e-4,
            "reward": "cider_d",
            "baseline": "greedy",
            "samples": 5,
            "temperature": 1.0,
            "cross_entropy": 0.0,
            "halved_after": 0,
            "clip_value": 0.0,
        },
        "decoding": {
            "beam_size": 3,
            "max_length": 20,
            "length_penalty": 0.0,
        },
        "evaluation": {"validation_beam_size": 1, "spice": False},
    }
