r"""AoANet's training on MSR-VTT: section 4.6 of the paper.

Features are ResNet-101's, of 20 frames of each video:

    keras-caption prepare --videos videos --num_frames 20 \
        --backbone ResNet101 --captions videodatainfo.json --output_dir prepared/msrvtt
    python experiments/run.py --config experiments/configs/captioning/msrvtt.py

The paper gives no sizes, and does not say how it trains. Values marked as 3.4 are those
of its captioner of images, and that they hold here is ours; those of the authors'
released code are likewise of that captioner, see aoanet_coco.py. --model video_base is
the paper's "base".

Reaches: CIDEr-D 42.44 in the paper (aoanet_video); not measured here: the data is not
    at hand.
Takes: not measured here: the data is not at hand.
"""


def get_config():
    return {
        "data": {
            "dataset": "prepared",
            "data_dir": "prepared/msrvtt",
            "tokenizer": "words",
            "captions_per_image": 5,  # ours: of 20, others each epoch
            "max_words": 20,  # ours
            "min_count": 5,  # 4.1, of COCO
            "vocabulary_split": "train",  # ours
        },
        "model": {"name": "video_aoa"},  # its defaults are the sizes of 3.4
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
        "self_critical": {
            "epochs": 0,  # ours: 4.6 mentions none
            "batch_size": 10,  # 3.4 gives it for cross-entropy
            "learning_rate": 2e-5,  # 3.4
            "reward": "cider_d",
            "baseline": "greedy",  # 3.3
            "samples": 5,  # released code
            "temperature": 1.0,  # ours
            "cross_entropy": 0.0,  # ours
            "halved_after": 1,  # 3.4, see aoanet_coco.py
            "clip_value": 0.1,  # released code
        },
        "decoding": {
            "beam_size": 2,  # released code
            "max_length": 20,  # released code
            "length_penalty": 0.0,  # released code
        },
        "evaluation": {"validation_beam_size": 1, "spice": False},  # ours
    }
