"""AoANet's training on COCO: section 3.4 of the paper, Implementation Details.

    python experiments/run.py --config experiments/configs/captioning/aoanet_coco.py

What the paper does not give is that of the authors' released code (`train.sh`,
`opts.py`). The code differs from the paper in the numbers of epochs: 25 of
cross-entropy, and up to 40 in all.

Reaches: CIDEr-D 129.8 in the paper (aoanet_1); not measured here: the data is not at
    hand.
Takes: not measured here: the data is not at hand.
"""


def get_config():
    return {
        "data": {
            "dataset": "prepared",  # bottom-up attention features
            "data_dir": "prepared/coco",
            "tokenizer": "words",
            "captions_per_image": 5,  # released code
            "max_words": 16,  # released code
            # 10,369 words (4.1): at least five times; that they are counted in all of
            # Karpathy's splits is the released code's.
            "min_count": 5,
            "vocabulary_split": "all",
        },
        "model": {"name": "aoanet"},  # its defaults are the paper's sizes
        "training": {
            "epochs": 30,  # 3.4
            "batch_size": 10,  # 3.4
            "learning_rate": 2e-4,  # 3.4
            "warmup_epochs": 1,  # none
            "decay_after": 3,  # 3.4
            "decay_every": 3,  # 3.4
            "decay_rate": 0.8,  # 3.4
            "label_smoothing": 0.2,  # released code
            "scheduled_sampling": 0.05,  # 3.4, more every 5 epochs
            "clip_value": 0.1,  # released code
        },
        # Ours: it begins with the best model and a new Adam, and has no dropout; the
        # released code samples, and takes the gradient, with dropout.
        "self_critical": {
            "epochs": 15,  # 3.4
            "batch_size": 10,  # 3.4 gives it for cross-entropy
            "learning_rate": 2e-5,  # 3.4
            "reward": "cider_d",
            "baseline": "greedy",  # 3.3
            "samples": 5,  # released code
            "temperature": 1.0,  # ours
            "cross_entropy": 0.0,  # ours
            # 3.4 says "some training steps"; the released code waits for three
            # evaluations, 3,000 steps apart, which are 0.8 epochs.
            "halved_after": 1,
            "clip_value": 0.1,  # released code
        },
        "decoding": {
            "beam_size": 2,  # of the released code's command; the paper gives none
            "max_length": 20,  # released code
            "length_penalty": 0.0,  # released code
        },
        "evaluation": {"validation_beam_size": 1, "spice": False},  # ours
    }
