import pytest

from keras_caption.base import progress
from keras_caption.base.progress import ProgressLines


@pytest.mark.parametrize("leave", [False, True])
def test_a_line_every_30_seconds_says_the_share_and_the_time_left(
    monkeypatch, capsys, leave
):
    seconds = [0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: seconds[0])
    for _ in ProgressLines(range(5), "Epoch 2", 7, "steps", leave, done=2):
        seconds[0] += 20
    lines = [
        "Epoch 2: 4/7 steps (57%), after 0:00:40, 0:01:00 left",
        "Epoch 2: 6/7 steps (86%), after 0:01:20, 0:00:20 left",
        "Epoch 2: 7/7 steps (100%), after 0:01:40",
    ]
    assert capsys.readouterr().out.splitlines() == lines[: 2 + leave]


def test_what_the_first_item_compiles_is_not_expected_of_the_others(
    monkeypatch, capsys
):
    seconds = [0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: seconds[0])
    with ProgressLines(None, "Epoch 1", 250, "steps") as steps:
        for duration in (60, 1, 29):
            seconds[0] += duration
            steps.update()
    lines = [
        "Epoch 1: 1/250 steps (0%), after 0:01:00",
        "Epoch 1: 3/250 steps (1%), after 0:01:30, 1:01:45 left",
    ]
    assert capsys.readouterr().out.splitlines() == lines


def test_without_a_total_or_an_item_done_nothing_is_promised(monkeypatch, capsys):
    monkeypatch.setattr(progress, "EVERY", 0)
    with progress.progress(total=3000, unit="records", leave=False) as records:
        records.update(0)
    list(progress.progress((x for x in "a"), unit="lines", leave=False))
    lines = ["0/3,000 records (0%), after 0:00:00", "1 lines, after 0:00:00"]
    assert capsys.readouterr().err.splitlines() == lines
