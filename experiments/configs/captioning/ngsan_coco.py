"""NG-SAN's training on COCO: section 5.1 of the paper.

    python experiments/run.py --config experiments/configs/captioning/ngsan_coco.py

The paper gives neither the batch size nor what decides which words are known; it
"follows" Transformer-Base and MT, another captioner, in what it does not state. Values
marked as ours are not in the paper. All models of the paper train so: --model san,
gsan and others.

Reaches: CIDEr-D 132.1 in the paper (ngsan_6); not measured here: the data is not at
    hand.
Takes: not measured here: the data is not at hand.
"""


def get_config():
    return {
        "data": {
            "dataset": "prepared",  # bottom-up attention features
            "data_dir": "prepared/coco",
            "tokenizer": "words",
            "captions_per_image": 5,  # all that an image has
            "max_words": 16,  # ours, that of AoANet's released code
            # 9,487 words (5.1), as the toolkit that most captioners use counts them:
            # more than five times, in all of Karpathy's splits.
            "min_count": 6,
            "vocabulary_split": "all",
        },
        # The paper's sizes; d_g is inferred, and how kernels begin is ours.
        "model": {"name": "ngsan"},
        "training": {
            "epochs": 15,  # 5.1
            "batch_size": 10,  # images; ours, AoANet's
            "learning_rate": 3e-4,  # 5.1
            "warmup_epochs": 3,  # 5.1
            "decay_after": 6,  # 5.1
            "decay_every": 3,  # 5.1
            "decay_rate": 0.5,  # 5.1
            "label_smoothing": 0.0,  # ours: none is mentioned
            "scheduled_sampling": 0.0,  # ours: none is mentioned
            "clip_value": 0.0,  # ours: none is mentioned
        },
        # Ours: it begins with the best model and a new Adam, and has no dropout.
        "self_critical": {
            "epochs": 15,  # 5.1
            "batch_size": 10,  # ours, as above
            # 5.1 has one schedule, of the epoch t, and no other rate: 1.875e-5 in
            # epochs 16 to 18, halved every 3. None continues it.
            "learning_rate": None,
            "reward": "cider_d",
            "baseline": "greedy",  # 5.1: the reward is "[28]"'s, Rennie et al.
            "samples": 5,  # ours
            "temperature": 1.0,  # ours
            "cross_entropy": 0.0,  # ours
            "halved_after": 0,
            "clip_value": 0.0,  # ours: none is mentioned
        },
        "decoding": {
            "beam_size": 3,  # 5.1
            "max_length": 20,  # ours
            "length_penalty": 0.0,  # ours
        },
        "evaluation": {"validation_beam_size": 1, "spice": False},  # ours
    }
