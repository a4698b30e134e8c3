r"""Questions about any photo: VQA v2 and COCO-QA, about a few thousand COCO photos.

    keras-caption prepare --photos images --questions questions questions/cocoqa.json \
        --backbone coloured_objects --detector yolox_nano.keras --output_dir coloured
    python experiments/run.py \
        --config experiments/configs/question_answering/photos.py \
        --data_dir questions --config.data.images_dir=coloured

`questions` is a folder with VQA's files of questions and annotations for train, val and
test, and COCO-QA's cocoqa.json. All values are ours, for two cores.

Reaches: accuracy 42.6 on COCO-QA's questions, mean of three seeds
(docs/results/photos_coco_qa.csv).
Takes: 75 s on two cores, and the features before.
"""


def get_config():
    return {
        "data": {
            "dataset": "vqa_coco_qa",
            "data_dir": None,  # the folder of both
            "images": "prepared",
            "images_dir": None,
            "min_count": 1,
            "vocabulary_split": "train",
            "word_vectors": None,  # a file of GloVe helps
        },
        "model": {  # those of these sizes that a model has
            "name": "mcan",
            "num_layers": 1,
            "model_dim": 64,
            "num_heads": 4,
            "feedforward_dim": 256,
            "embedding_dim": 100,
            "pooling_dim": 64,
            "fusion_dim": 128,
            "geometry_dim": 16,
            "dropout": 0.2,
            "multi_label": False,  # with sigmoids, so few questions teach little
        },
        "training": {
            "epochs": 8,
            "batch_size": 64,
            "learning_rate": 1e-3,  # reached after the first epoch
            "warmup_epochs": 1,
            "decay_after": 4,  # then halved every epoch
            "decay_every": 1,
            "decay_rate": 0.5,
            "curriculum": False,  # all kinds from the start
        },
    }
