import itertools

from keras_caption import progress
from keras_caption.progress import ProgressLines


def test_a_line_every_30_seconds_says_the_share_and_the_time_left(monkeypatch, capsys):
    clock = itertools.count(step=20)  # seconds; read at the beginning, and by item
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    assert list(ProgressLines("abcdef", "Epoch 2", 8, "steps", done=2)) == [*"abcdef"]
    assert capsys.readouterr().out.splitlines() == [
        "Epoch 2: 50% of 8 steps, 0:01:20 left",
        "Epoch 2: 75% of 8 steps, 0:00:40 left",
        "Epoch 2: 100% of 8 steps, 0:00:00 left",
    ]


def test_without_a_total_or_an_item_done_nothing_is_promised(monkeypatch, capsys):
    monkeypatch.setattr(progress, "EVERY", 0)
    for total in (None, 3000):
        with progress.progress(total=total, unit="records") as records:
            records.update(0)
    list(progress.progress((x for x in "a"), unit="records"))
    lines = ["0 records done", "0% of 3,000 records", "1 records done"]
    assert capsys.readouterr().err.splitlines() == lines
