r"""Area attention's LSTMs on characters of WMT14: section 3.1.2 of the paper, Table 3.

    python experiments/run.py \
        --config experiments/configs/translation/wmt14_area_lstm.py
    python experiments/tables.py --table area_3 --run -- --config wmt14_area_lstm

TFDS downloads the text. The second command trains all models, to German and, with a
dropout of 0.1, to French. The paper gives the layers, cells and iterations; what it
does not give is that of the authors' released code in tensor2tensor, in the attention
too, or else marked as ours. In two things the model differs from that code, which feeds
attended vectors back, and whose heads share one attention.

Reaches: log perplexity -0.7981 in the paper (area_3); not measured here: the data is
    not at hand.
Takes: not measured here: the data is not at hand.
"""


def get_config():
    return {
        "data": {
            "dataset": "wmt14_translate",  # 3.1
            "data_dir": None,
            "source": "en",
            "target": "de",
            "tokenizer": "characters",  # 3.1.2
            "vocabulary_size": 37000,  # of subwords only
            "joint": True,  # ours
            "max_tokens": 1024,  # ours
        },
        "model": {
            "name": "lstm_256_area",  # 2 layers (3.1.2); areas of 2: released code
            "num_heads": 4,  # released code
            "dropout": 0.2,  # released code, to German
            "score": "product",  # released code, without a divisor
            "projected": "keys",  # released code
            "reversed_source": True,  # released code
            "first_states": "last",  # released code
        },
        "training": {
            "epochs": 1000,  # `max_steps` ends training
            "max_steps": 80_000,  # 3.1.2
            "tokens_per_batch": 20480,  # released code; 16,384 of subwords
            "learning_rate": None,  # ours, with its schedule: Vaswani et al.
            "warmup_steps": 4000,
            "label_smoothing": 0.0,  # ours: none is mentioned
            "accumulation": 1,  # none is mentioned
            "average": 1,  # none is mentioned
            "patience": 0,  # none is mentioned
            "stop_on": "val_bleu",
        },
        "decoding": {  # ours
            "beam_size": 4,
            "max_length": 1024,
            "length_ratio": 2.0,
            "length_margin": 10,
            "length_penalty": 0.6,
        },
        "evaluation": {"validation_beam_size": 1, "tokenized": False},  # ours
    }
