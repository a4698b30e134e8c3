r"""Questions about any photo: VQA v2 and COCO-QA, about a few thousand COCO photos.

    keras-caption prepare --photos images --questions questions questions/cocoqa.json \
        --backbone coloured_objects --detector yolox_nano.keras --output_dir coloured
    python experiments/run.py \
        --config experiments/configs/question_answering/photos.py \
        --data_dir questions --config.data.images_dir=coloured

`questions` is a folder with VQA's files of questions and annotations for train, val and
test, and COCO-QA's cocoqa.json. All values are ours, for two cores; those that are not
here are of the built-in questions about scenes.

Reaches: accuracy 42.6 on COCO-QA's questions, mean of three seeds
(docs/results/photos_coco_qa.csv).
Takes: 75 s on two cores, and the features before.
"""

from keras_caption.tasks.question_answering import get_config as built_in


def get_config():
    config = built_in("mcan")
    config["data"] |= {
        "dataset": "vqa_coco_qa",
        "images": "prepared",
        "word_vectors": None,  # a file of GloVe helps
    }
    config["model"] |= {
        "num_layers": 1,
        "embedding_dim": 100,
        "dropout": 0.2,
        "multi_label": False,  # with sigmoids, so few questions teach little
    }
    config["training"] |= {
        "epochs": 8,
        "batch_size": 64,
        "learning_rate": 1e-3,  # reached after the first epoch
        "decay_after": 4,  # then halved every epoch
        "curriculum": False,  # all kinds from the start
    }
    return config
