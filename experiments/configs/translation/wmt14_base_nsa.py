r"""NG-SAN's translation of WMT14, English to German: section 6.2 of the paper.

    python experiments/run.py --config experiments/configs/translation/wmt14_base_nsa.py

TFDS downloads the text, which is validated on newstest2013 and tested on newstest2014
as in 6.2; --model transformer_base is the paper's baseline. The paper follows fairseq
and gives nothing but the text, the model and its layers: values marked as ours.

Reaches: BLEU 27.92 in the paper (ngsan_8); not measured here: the data is not at hand.
Takes: not measured here: the data is not at hand.
"""


def get_config():
    return {
        "data": {
            "dataset": "wmt14_translate",  # 6.2
            "data_dir": None,
            "source": "en",  # 6.2
            "target": "de",  # 6.2
            "tokenizer": "subwords",  # ours
            "vocabulary_size": 37000,  # ours, that of Vaswani et al.
            "joint": True,  # ours
            "max_tokens": 256,  # ours
        },
        "model": {
            # Transformer-Base, 6 + 6 layers, with NSA in the encoder (6.2).
            "name": "transformer_base_nsa",
            "shared_embeddings": True,  # ours
        },
        "training": {  # ours, as Vaswani et al. train
            "epochs": 20,
            "max_steps": None,
            "tokens_per_batch": 25000,
            "learning_rate": None,  # (512 * 4000) ** -0.5, by the model's size
            "warmup_steps": 4000,
            "label_smoothing": 0.1,
            "accumulation": 1,
            "average": 1,
            "patience": 0,
            "stop_on": "val_bleu",
        },
        "decoding": {  # ours, as above
            "beam_size": 4,
            "max_length": 256,
            "length_ratio": 2.0,
            "length_margin": 10,
            "length_penalty": 0.6,
        },
        "evaluation": {"validation_beam_size": 1, "tokenized": False},  # ours
    }
