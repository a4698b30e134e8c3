"""Spatial self-attention's training on COCO 2014: section 3 of the paper.

Features are a layer of VGG-11 of 14 x 14 x 512 (section 2.1), pre-trained. Keras has no
pre-trained VGG-11; VGG16 has a layer of the same shape, `block5_conv3`:

    python experiments/prepare.py --backbone VGG16 --layer block5_conv3 \
        --photos coco --captions dataset_coco.json --output_dir prepared/coco_vgg

The paper gives no split, batch size, number of epochs, vocabulary or search: values
marked as ours. It trains with cross-entropy only.
"""

import ml_collections
from configs.defaults import DECODING, SELF_CRITICAL


def get_config():
    return ml_collections.ConfigDict(
        {
            "model": {"dropout": 0.1},  # 3; on embeddings, features and weights only
            "training": {
                "epochs": 15,  # ours
                "batch_size": 32,  # ours
                "captions_per_image": 5,  # all that an image has
                "max_words": 14,  # 3; that longer captions are cut is ours
                "min_count": 5,  # ours
                "vocabulary_split": "train",  # ours
                "learning_rate": 3e-4,  # 3, constant
                "warmup_epochs": 1,  # none
                "decay_after": 1,  # none
                "decay_every": 1,  # none
                "decay_rate": 1.0,  # none
                "label_smoothing": 0.0,  # none is mentioned
                "scheduled_sampling": 0.0,  # 2.2: "permanent teacher forcing"
                "clip_value": 0.0,  # none is mentioned
                "validation_beam_size": 1,  # ours
            },
            "self_critical": SELF_CRITICAL,  # 0 epochs of it
            "decoding": {**DECODING, "beam_size": 3},  # ours
        }
    )
