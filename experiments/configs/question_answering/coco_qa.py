r"""COCO-QA about COCO's annotated objects, at a size that fits a few thousand images.

    python experiments/run.py \
        --config experiments/configs/question_answering/coco_qa.py \
        --data_dir cocoqa_val2017.json --config.data.images_dir=coco

The questions are split as their images are. All values are ours, for two cores.

Reaches: accuracy 45.7 ± 1.2 on val2017 (docs/results/coco_qa.csv).
Takes: four minutes on two cores, 10 s of them an epoch.
"""


def get_config():
    return {
        "data": {
            "dataset": "coco_qa",
            "data_dir": None,  # the JSON file
            "images": "coco_objects",
            "images_dir": None,  # TFDS downloads coco_captions
            "min_count": 1,
            "vocabulary_split": "train",
            "word_vectors": None,  # a file of GloVe helps
        },
        "model": {  # those of these sizes that a model has
            "name": "mcan",
            "num_layers": 2,
            "model_dim": 128,
            "num_heads": 4,
            "feedforward_dim": 512,
            "embedding_dim": 100,
            "pooling_dim": 128,
            "fusion_dim": 256,
            "geometry_dim": 32,
            "dropout": 0.3,
        },
        "training": {
            "epochs": 20,
            "batch_size": 32,
            "learning_rate": 3e-4,  # reached after the second epoch
            "warmup_epochs": 2,
            "decay_after": 12,  # then halved every second epoch
            "decay_every": 2,
            "decay_rate": 0.5,
            "curriculum": False,  # all kinds from the start
        },
    }
