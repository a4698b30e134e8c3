r"""Spatial self-attention's training on COCO 2014: section 3 of the paper.

Features are a layer of VGG-11 of 14 x 14 x 512 (section 2.1), pre-trained. Keras has no
pre-trained VGG-11; VGG16 has a layer of the same shape, `block5_conv3`:

    keras-caption prepare --backbone VGG16 --layer block5_conv3 \
        --photos coco --captions dataset_coco.json --output_dir prepared/coco_vgg
    python experiments/run.py --config experiments/configs/captioning/spatial_coco.py

The paper gives no split, batch size, number of epochs, vocabulary or search: values
marked as ours. It trains with cross-entropy only.

Reaches: BLEU-4 22.6 in the paper (spatial_1); not measured here: the data is not at
    hand.
Takes: not measured here: the data is not at hand.
"""


def get_config():
    return {
        "data": {
            "dataset": "prepared",
            "data_dir": "prepared/coco_vgg",
            "tokenizer": "words",
            "captions_per_image": 5,  # all that an image has
            "max_words": 14,  # 3; that longer captions are cut is ours
            "min_count": 5,  # ours
            "vocabulary_split": "train",  # ours
        },
        # Dropout: 3; on embeddings, features and weights only.
        "model": {"name": "spatial", "dropout": 0.1},
        "training": {
            "epochs": 15,  # ours
            "batch_size": 32,  # ours
            "learning_rate": 3e-4,  # 3, constant
            "warmup_epochs": 1,  # none
            "decay_after": 1,  # none
            "decay_every": 1,  # none
            "decay_rate": 1.0,  # none
            "label_smoothing": 0.0,  # none is mentioned
            "scheduled_sampling": 0.0,  # 2.2: "permanent teacher forcing"
            "clip_value": 0.0,  # none is mentioned
        },
        "decoding": {
            "beam_size": 3,  # ours
            "max_length": 20,  # ours
            "length_penalty": 0.0,  # ours
        },
        "evaluation": {"validation_beam_size": 1, "spice": False},  # ours
    }
