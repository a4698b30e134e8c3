r"""Raw text of Multi30k, at a size that two cores train.

    python experiments/run.py --config experiments/configs/translation/multi30k.py \
        --data_dir multi30k --config.data.target=fr

The folder holds train.en, train.de, val.en, val.de, test_2016_flickr.en and
test_2016_flickr.de, or another second language. All values are ours but the model's
sizes, Tiny of section 3.1.1 of the area paper. For characters, which make sentences
four times as long:

    --config.data.tokenizer=characters --config.data.max_tokens=256 \
        --config.decoding.max_length=256

Reaches: BLEU 35.2 ± 0.7, to French 52.2 ± 0.2 (docs/results/area_2.csv).
Takes: 13 to 19 minutes on one core (docs/results/translation.md).
"""


def get_config():
    return {
        "data": {
            "dataset": "parallel",
            "data_dir": "multi30k",
            "source": "en",
            "target": "de",
            "tokenizer": "subwords",
            "vocabulary_size": 6000,
            "joint": True,
            "max_tokens": 64,  # longer pairs are dropped
        },
        "model": {  # those of these values that a model has
            "name": "transformer_tiny",
            "dropout": 0.2,
            "shared_embeddings": True,
        },
        "training": {
            "epochs": 15,
            "max_steps": None,
            "tokens_per_batch": 4096,
            "learning_rate": 3e-3,
            "warmup_steps": 400,
            "label_smoothing": 0.1,
            "accumulation": 1,
            "average": 1,
            "patience": 0,
            "stop_on": "val_bleu",
        },
        "decoding": {
            "beam_size": 5,
            "max_length": 64,
            "length_ratio": 2.0,
            "length_margin": 10,
            "length_penalty": 0.6,
        },
        "evaluation": {"validation_beam_size": 1, "tokenized": False},
    }
