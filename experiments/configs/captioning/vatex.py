r"""NG-SAN's training on VATEX: section 6.1 of the paper.

Features are I3D's, of the dataset's authors: 1,000 numbers for each frame, of clips
read at 25 frames a second. With VATEX's captions of three splits:

    keras-caption prepare --frames i3d --num_frames 32 \
        --captions training.json,validation.json,public_test.json \
        --output_dir prepared/vatex
    python experiments/run.py --config experiments/configs/captioning/vatex.py

"A training configuration the same as that of our image captioning model" is that of
section 5.1; what that does not state is as in ngsan_coco.py. The paper gives neither
the vocabulary, nor the greatest length, nor how many frames are kept: values marked as
ours, and 32 above. --model video_transformer is its baseline.

Reaches: CIDEr-D 57.1 in the paper (ngsan_7); not measured here: the data is not at
    hand.
Takes: not measured here: the data is not at hand.
"""


def get_config():
    return {
        "data": {
            "dataset": "prepared",
            "data_dir": "prepared/vatex",
            "tokenizer": "words",
            "captions_per_image": 10,  # all that a video has: 412,500 of 41,250 (6.1)
            "max_words": 30,  # ours: captions of VATEX are longer than those of COCO
            "min_count": 6,  # ours, as of COCO
            "vocabulary_split": "train",  # ours
        },
        # One block each (6.1), the other sizes of 5.1: the model's defaults.
        "model": {"name": "video_nsa"},
        "training": {
            "epochs": 15,  # 5.1
            "batch_size": 10,  # videos; ours
            "learning_rate": 3e-4,  # 5.1
            "warmup_epochs": 3,  # 5.1
            "decay_after": 6,  # 5.1
            "decay_every": 3,  # 5.1
            "decay_rate": 0.5,  # 5.1
            "label_smoothing": 0.0,  # ours: none is mentioned
            "scheduled_sampling": 0.0,  # ours: none is mentioned
            "clip_value": 0.0,  # ours: none is mentioned
        },
        "self_critical": {  # begins as in ngsan_coco.py
            "epochs": 15,  # 5.1
            "batch_size": 10,  # ours, as above
            "learning_rate": None,  # continues 5.1's schedule
            "reward": "cider_d",
            "baseline": "greedy",  # 5.1, by Rennie et al.
            "samples": 5,  # ours
            "temperature": 1.0,  # ours
            "cross_entropy": 0.0,  # ours
            "halved_after": 0,
            "clip_value": 0.0,  # ours: none is mentioned
        },
        "decoding": {
            "beam_size": 3,  # 5.1
            "max_length": 30,  # ours
            "length_penalty": 0.0,  # ours
        },
        "evaluation": {"validation_beam_size": 1, "spice": False},  # ours
    }
