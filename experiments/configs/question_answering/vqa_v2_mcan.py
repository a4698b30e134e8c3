r"""MCAN's training on VQA v2, as in its released code, the small model.

    python experiments/run.py \
        --config experiments/configs/question_answering/vqa_v2_mcan.py

`vqa_v2` holds the official JSON files, `prepared/coco` bottom-up attention features of
the images of train2014, val2014 and test2015, 10 to 100 regions of each. Scores are of
the validation questions, for which the released code trains on train alone, as here;
the server's, of NG-SAN's Table 9, are of models that were trained on val and Visual
Genome too. Answers to test questions without annotations are in server_results.json.

The loss is the mean over a batch; the released code sums, which changes nothing with
Adam. Values marked as ours are not in the released code. NG-SAN's GSA: --model
mcan_gsa.

Reaches: accuracy 70.54 on test-dev in NG-SAN's paper, with more data (ngsan_9); not
    measured here: the data is not at hand.
Takes: not measured here: the data is not at hand.
"""


def get_config():
    return {
        "data": {
            "dataset": "vqa",
            "data_dir": "vqa_v2",
            "images": "prepared",
            "images_dir": "prepared/coco",
            "min_count": 9,  # answers that occur more than 8 times
            "vocabulary_split": "all",  # answers of train and val, words of test too
            "word_vectors": "glove.6B.300d.txt",  # ours: it uses those of spaCy
        },
        "model": {"name": "mcan"},  # its defaults are the released sizes
        "training": {
            "epochs": 13,
            "batch_size": 64,
            "learning_rate": 1e-4,  # 1/4, 2/4 and 3/4 of it in the first epochs
            "warmup_epochs": 4,
            "decay_after": 10,
            "decay_every": 2,
            "decay_rate": 0.2,
            "curriculum": False,  # all kinds from the start
        },
    }
