import numpy as np
import pytest
from keras_caption.synthetic import MovingScenes, MovingScenesConfig

import keras_caption as kc
from keras_caption.apps.scenes import moving_scenes
from keras_caption.apps.scenes.moving_scenes.clip import DIRECTIONS
from keras_caption.apps.scenes.moving_scenes.features import FRAME_DIM, clip_features
from keras_caption.apps.scenes.moving_scenes.rendering import render
from keras_caption.commands.configuration import make_config

SPLITS = {"train": 12, "val": 3, "test": 4}


@pytest.fixture(scope="module")
def builder(tmp_path_factory):
    config = MovingScenesConfig(name="small", **SPLITS)
    builder = MovingScenes(config=config, data_dir=tmp_path_factory.mktemp("clips"))
    builder.download_and_prepare()
    return builder


@pytest.fixture(scope="module")
def clips():
    return [sampled(seed)[0] for seed in range(200)]


def sampled(seed):
    rng = np.random.default_rng(seed)
    return moving_scenes.sample_clip(rng), rng


def outcomes(captions_and_clips):
    """Numbers of true and of all statements, by category."""
    counts = {category: [0, 0] for category in moving_scenes.CATEGORIES}
    for captions, clip in captions_and_clips:
        for caption in captions:
            for category, true in judge(caption, clip):
                counts[category][0] += true
                counts[category][1] += 1
    return counts


def judge(caption, clip):
    return moving_scenes.judge(caption, clip.objects, clip.events)


def captions_of(clips):
    rng = np.random.default_rng(0)
    return [moving_scenes.describe(c.objects, c.events, rng) for c in clips]


def test_clips_depend_on_the_seed_only(builder, tmp_path):
    config = MovingScenesConfig(name="fewer", train=5, val=1, test=2)
    fewer = MovingScenes(config=config, data_dir=tmp_path)
    fewer.download_and_prepare()
    ids = set()
    for split, count in SPLITS.items():
        examples, same = (
            list(kc.datasets.read(b, split, images=True).as_numpy_iterator())
            for b in (builder, fewer)
        )
        assert len(examples) == count
        by_id = {int(example["image_id"]): example for example in examples}
        ids |= by_id.keys()
        for b in same:
            a = by_id[int(b["image_id"])]
            for name in ("name", "frames", "times", "image", "captions"):
                np.testing.assert_array_equal(a[name], b[name])
    assert len(ids) == sum(SPLITS.values())


def test_examples_hold_the_truth(builder):
    [example, *_] = kc.datasets.read(builder, "test", images=True).as_numpy_iterator()
    seed = (0, 2, int(example["image_id"]) % 1_000_000)
    made = moving_scenes.make_example(np.random.default_rng(seed))
    assert example["frames"].shape == (16, FRAME_DIM)
    np.testing.assert_array_equal(example["frames"], made["frames"])
    np.testing.assert_array_equal(example["times"], np.arange(16) / 4)
    assert example["image"].shape == (64, 16 * 64, 3)
    clip, _ = sampled(seed)
    objects, events = moving_scenes.objects_and_events(example)
    assert (tuple(objects), tuple(events)) == (clip.objects, clip.events)


def test_events_are_what_tracks_show(clips):
    seen = set()
    for clip in clips:
        assert len(set(clip.objects)) == len(clip.objects)
        for event, later in zip(clip.events, clip.events[1:], strict=False):
            assert event.end <= later.start
        for event in clip.events:
            seen.add(event.verb)
            before, after = clip.tracks[event.actor, [event.start, event.end]]
            moved = after[:2] - before[:2]
            if event.direction is None:
                np.testing.assert_allclose(moved, 0, atol=1e-9)
            else:
                along = moved @ DIRECTIONS[event.direction]
                assert along > 0.2
                np.testing.assert_allclose(np.abs(moved).sum(), along)
            grown = np.sign(np.round(after[2] - before[2], 6))
            assert grown == {"grow": 1, "shrink": -1}.get(event.verb, 0)
            assert bool(after[3] != before[3]) == (event.verb == "turn")
            for verb, state in (("enter", before), ("leave", after)):
                inside = (np.abs(state[:2] - 0.5) < 0.5 + state[2] / 2 - 1e-6).all()
                assert inside == (event.verb != verb)
            if event.partner is not None:
                near = {"touch": (False, True), "move away": (True, False)}
                other = clip.tracks[event.partner]
                for state, frame, is_near in zip(
                    (before, after),
                    (event.start, event.end),
                    near.get(event.verb, (False, False)),
                    strict=True,
                ):
                    gap = np.abs(state - other[frame])[:2].max()
                    contact = (state[2] + other[frame, 2]) / 2
                    assert (gap < contact) == is_near
    assert seen == set(moving_scenes.VERBS)


def test_captions_are_true_and_of_all_categories(clips):
    captions = captions_of(clips)
    counts = outcomes(zip(captions, clips, strict=True))
    for category, (true, count) in counts.items():
        assert true == count > 300, category
    assert max(len(text.split()) for texts in captions for text in texts) <= 24


def test_whoever_ignores_the_order_of_frames_guesses(clips):
    """The reverse of a clip has its frames; what is true of one is not of the other."""
    for seed in range(3):
        clip, rng = sampled(seed)
        state = rng.bit_generator.state
        frames = render(clip, rng)
        rng.bit_generator.state = state
        back = clip.reverse()
        np.testing.assert_array_equal(render(back, rng), frames[::-1])
        features = clip_features(frames, clip.tracks)
        backwards = clip_features(frames[::-1], back.tracks)
        np.testing.assert_allclose(backwards, features[::-1], atol=1e-5)
    reverses = [clip.reverse() for clip in clips]
    captions = captions_of(clips)
    right = outcomes(zip(captions, clips, strict=True))
    wrong = outcomes(zip(captions, reverses, strict=True))
    for category in ("direction", "order"):
        (true, count), (still_true, again) = right[category], wrong[category]
        assert 0.5 <= (true + still_true) / (count + again) < 0.54


STORY = moving_scenes.MovingScene(
    (
        moving_scenes.MovingObject("star", "red"),
        moving_scenes.MovingObject("ring", "blue"),
        moving_scenes.MovingObject("star", "green"),
    ),
    (
        moving_scenes.Event(0, "touch", "right", 1, 0, 5),
        moving_scenes.Event(1, "leave", "up", None, 6, 10),
        moving_scenes.Event(0, "grow", None, None, 10, 15),
    ),
    np.zeros((3, 16, 4)),
)


@pytest.mark.parametrize(
    ("caption", "expected"),
    [
        ("a red star", "objects+ colours+"),
        ("a blue star", "objects+ colours-"),
        ("a red moon grows", "objects- colours- motion-"),
        ("a star grows", "objects+ motion+"),
        ("a green star grows", "objects+ colours+ motion-"),
        ("the star moves right until it touches a blue ring",
         "objects+ motion+ direction+ motion+ objects+ colours+"),
        ("the star goes to the left", "objects+ motion+ direction-"),
        ("the star touches a green star", "objects+ motion- objects+ colours+"),
        ("the ring goes out at the top", "objects+ motion+ direction+"),
        ("the ring comes in from below", "objects+ motion- direction-"),
        ("first the star touches the ring then the ring leaves upwards",
         "objects+ motion+ objects+ objects+ motion+ direction+ order+"),
        ("the star grows and then the ring leaves",
         "objects+ motion+ objects+ motion+ order-"),
        ("the star grows after it bumps into the ring",
         "objects+ motion+ motion+ objects+ order+"),
        ("the star grows before it bumps into the ring",
         "objects+ motion+ motion+ objects+ order-"),
        ("after the ring leaves the star grows",
         "objects+ motion+ objects+ motion+ order+"),
        ("before the ring leaves the star grows",
         "objects+ motion+ objects+ motion+ order-"),
        # of wrong grammar
        ("grows then left before", ""),
        ("the star touches and then grows then", "objects+ motion+ motion+ order+"),
        ("the star leaves leaves up before before ring grows",
         "objects+ motion- motion- direction- objects+ motion- order-"),
        ("", ""),
    ],
)  # fmt: skip
def test_statements_are_read_and_judged(caption, expected):
    found = [f"{category}{'-+'[true]}" for category, true in judge(caption, STORY)]
    assert sorted(found) == sorted(expected.split())


def test_statements_are_found_by_the_dataset(builder):
    examples = kc.datasets.read(builder, "test")
    captions = {i: x[0] for i, x in kc.datasets.references(examples).items()}
    accuracy = kc.synthetic.statements_of(builder).accuracy
    assert accuracy(captions, examples)["all"][0] == 1.0
    nothing = accuracy(dict.fromkeys(captions, "nobody knows"), examples)
    assert nothing["all"] == (0.0, 0)


def test_models_of_videos_are_trained_on_clips(builder, monkeypatch):
    monkeypatch.setattr(kc.datasets, "load", lambda *_: builder)
    settings = {"model.name": "video_nsa", "self_critical.reward": "truth"}
    task, config = make_config(None, settings)
    assert config["data"]["dataset"] == "moving_scenes"
    assert make_config(None, {"model.name": "san"})[1]["data"]["dataset"] == "scenes"
    with pytest.raises(kc.InputError, match=r"truth.*moving_scenes"):
        task(config).steps_per_epoch("self_critical")
