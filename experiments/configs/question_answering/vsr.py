r"""Statements about where COCO's annotated objects are, true or false.

    python experiments/run.py \
        --config experiments/configs/question_answering/vsr.py \
        --data_dir vsr_val2017.json --config.data.images_dir=coco

Statements are split as their images are. All values are ours, for a few hundred
statements.

Reaches: accuracy 51.0 ± 11.1, chance, on 330 statements (docs/results/vsr.csv).
Takes: 40 s on two cores.
"""


def get_config():
    return {
        "data": {
            "dataset": "vsr",
            "data_dir": None,  # the JSON file
            "images": "coco_objects",
            "images_dir": None,  # TFDS downloads coco_captions
            "min_count": 1,
            "vocabulary_split": "train",
            "word_vectors": None,  # a file of GloVe helps
        },
        "model": {  # those of these sizes that a model has
            "name": "mcan_gsa",
            "num_layers": 1,
            "model_dim": 64,
            "num_heads": 4,
            "feedforward_dim": 256,
            "embedding_dim": 100,
            "pooling_dim": 64,
            "fusion_dim": 128,
            "geometry_dim": 16,
            "dropout": 0.3,
        },
        "training": {
            "epochs": 20,
            "batch_size": 16,
            "learning_rate": 5e-4,  # reached after the second epoch
            "warmup_epochs": 2,
            "decay_after": 12,  # then halved every second epoch
            "decay_every": 2,
            "decay_rate": 0.5,
            "curriculum": False,  # all kinds from the start
        },
    }
