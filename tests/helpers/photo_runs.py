"""Finished runs of photos that are made up, without training."""

import numpy as np
from keras_caption.results import Attention, Example, Line, Outcome

from keras_caption.apps.report.run_report import FinishedRun

WORDS = ["a", "</script>", "ball"]


class Photos:
    """A task of photos: example i is `</script>` i times wrong."""

    metrics = ("CIDEr-D", "BLEU-4")
    monitor = "val_cider"

    def __init__(self, count, offset=0.0):
        self.scores = {
            i: (i * 7 % count) / count + offset * (i % 3) for i in range(count)
        }

    def outcome(self, model, folder):
        outputs = [" ".join(WORDS)] * len(self.scores)
        references = [["A red ball.", "One ball & no more."]] * len(outputs)
        return Outcome(outputs, references, self.scores, "CIDEr-D")

    def examples(self, model, folder, scores, keys):
        rng = np.random.default_rng(0)
        weights = np.float32([[0.5, 0.3, 0.2], [0.02, 0.97, 0.01], [0, 0, 1]])
        areas = np.float32([[0, 0, 0.5, 1], [0.5, 0, 1, 0.5], [0.2, 0.2, 0.9, 0.9]])
        attention = Attention(areas, weights, ["dog", "<b>", "ball"])
        return {
            key: Example(
                [Line(WORDS, score=scores[key], attention=attention)],
                ["A red ball.", "One ball & no more."],
                image=rng.integers(200, 256, (120, 160, 3), "uint8"),
            )
            for key in keys
        }


def finished(folder, count, seed=0, offset=0.0):
    description = {
        "model": "san",
        "objective": "self-critical",
        "config": {"seed": seed, "data": {"dataset": "photos"}},
    }
    scores = {"CIDEr-D": 1.234, "BLEU-4": 0.3, "statements": {"colour": 0.8}}
    return FinishedRun(folder, description, scores, Photos(count, offset), None)
