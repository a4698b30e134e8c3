"""Clips: which frames are taken, and what is refused."""

import keras
import numpy as np
import pytest
from clip_files import HEIGHT, WIDTH, grey, show, write_clip, write_sound
from conftest import data_folder
from PIL import Image

import keras_caption as kc
from keras_caption.features import ClipExtractor, Extractor, read_clip, sampled_frames

SIZE = 32


def brightness(clip):
    """Brightness of the frames, right of the white bar."""
    return clip.frames[:, SIZE // 2, SIZE // 2 :].mean(axis=(1, 2))


@pytest.mark.parametrize(
    ("total", "count", "expected"),
    [
        (10, 5, [1, 3, 5, 7, 9]),
        (10, 3, [1, 5, 8]),
        (3, 3, [0, 1, 2]),
        (2, 20, [0, 1]),
        (2**40, 2, [2**38, 3 * 2**38]),
    ],
)
def test_the_frame_in_the_middle_of_each_part_is_taken(total, count, expected):
    assert sampled_frames(total, count).tolist() == expected
    if total > count and total < 100:
        rule = [int((i + 0.5) * total / count) for i in range(count)]
        assert rule == expected


@pytest.mark.parametrize("suffix", ["avi", "mp4", "mkv", "mov", "ts"])
def test_frames_are_those_of_the_rule_in_every_format(tmp_path, suffix):
    path = write_clip(tmp_path / f"clip: 1.{suffix}", 23)
    clip = read_clip(path, 5, SIZE)
    numbers = [2, 6, 11, 16, 20]
    assert clip.frames.shape == (5, SIZE, SIZE, 3)
    np.testing.assert_allclose(brightness(clip), list(map(grey, numbers)), atol=4)
    np.testing.assert_allclose(clip.times, np.array(numbers) / 10, atol=1e-3)
    assert (clip.height, clip.width) == (HEIGHT, WIDTH)
    assert len(read_clip(path, 100, SIZE).frames) == 23


def test_at_a_variable_rate_frames_are_counted_and_times_are_of_the_file(tmp_path):
    times = np.cumsum([0, 100, 100, 700, 40, 40, 40, 300, 1000, 50])
    path = write_clip(tmp_path / "a.mkv", 10, milliseconds=times.tolist())
    clip = read_clip(path, 5, SIZE)
    np.testing.assert_allclose(clip.times, times[1::2] / 1000, atol=1e-3)
    np.testing.assert_allclose(
        brightness(clip), list(map(grey, range(1, 10, 2))), atol=4
    )


def test_a_rotated_clip_is_turned(tmp_path):
    clip = read_clip(write_clip(tmp_path / "a.mp4", 4, rotation=90), 4, SIZE)
    assert (clip.height, clip.width) == (WIDTH, HEIGHT)
    white = clip.frames[0].mean(axis=-1) > 200
    # Turned counter-clockwise, what was left is below.
    assert white[-4:].all()
    assert not white[:20].any()


# Frames of which the part begins; how many are shown; and which players show.
PARTS = {"head": (23, 5), "tail": (0, 20), "middle": (9, 12)}


@pytest.mark.parametrize("part", PARTS)
def test_what_an_edit_list_hides_is_no_part_of_a_clip(part, tmp_path):
    first, frames = PARTS[part]
    path = show(write_clip(tmp_path / "a.mp4", 40), first, frames)
    clip = read_clip(path, 40, SIZE)
    shown = range(first, first + frames)
    np.testing.assert_allclose(brightness(clip), list(map(grey, shown)), atol=4)
    np.testing.assert_allclose(clip.times, np.arange(frames) / 10, atol=1e-3)


@pytest.mark.parametrize("suffix", ["mkv", "mp4", "webm"])
def test_sound_may_be_longer_than_the_picture(suffix, tmp_path):
    path = write_clip(tmp_path / f"a.{suffix}", 12, sound=4)
    assert len(read_clip(path, 99, SIZE).frames) == 12
    if suffix != "mp4":
        with pytest.raises(kc.InputError, match=r"is cut: it lasts \d\.\d of 4\.0 s"):
            read_clip(cut(path, 0.5), 99, SIZE)


@pytest.mark.parametrize("suffix", ["mkv", "mp4"])
def test_cover_art_is_not_the_clip(suffix, tmp_path):
    clip = read_clip(write_clip(tmp_path / f"a.{suffix}", 6, cover=True), 9, SIZE)
    np.testing.assert_allclose(brightness(clip), list(map(grey, range(6))), atol=4)


def cut(path, share):
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    return path


def write_list(path):
    write_clip(path.with_name("listed.avi"), 5)
    path.write_text("ffconcat version 1.0\nfile listed.avi\n")


BROKEN = {
    "empty.mp4": (lambda path: path.touch(), "is empty"),
    "text.avi": (
        lambda path: path.write_text("no clip " * 99),
        "is not a clip|Invalid",
    ),
    "photo.mp4": (lambda path: Image.new("RGB", (9, 9)).save(path, "PNG"), "is not a"),
    # A list of clips, which FFmpeg would open.
    "list.avi": (write_list, "is not a clip"),
    "sound.avi": (write_sound, "has no video"),
    "album.mp4": (lambda path: write_sound(path, cover=True), "has no video"),
    "one.avi": (lambda path: write_clip(path, 1), "has 1 frame; a clip needs at least"),
    "cut.avi": (lambda p: cut(write_clip(p, 60), 0.55), r"cut after \d+ frames"),
    "cut.mp4": (lambda p: cut(write_clip(p, 60), 0.6), "cannot be read"),
    "cut.mkv": (lambda p: cut(write_clip(p, 60), 0.6), r"lasts \d\.\d of 6\.0 s"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_clips_are_named(name, tmp_path):
    write, problem = BROKEN[name]
    write(tmp_path / name)
    with pytest.raises(kc.InputError, match=rf"{name}.* ({problem})") as error:
        read_clip(tmp_path / name, 5, SIZE)
    assert "\n" not in str(error.value)


def test_missing_clips_are_named(tmp_path):
    with pytest.raises(kc.InputError, match=r"There is no file .*away\.mp4"):
        read_clip(tmp_path / "away.mp4", 5, SIZE)
    with pytest.raises(kc.InputError, match="There is no clip in"):
        kc.features.find_clips(tmp_path)


@pytest.mark.parametrize("suffix", ["avi", "mkv"])
def test_damaged_clips_give_frames_or_one_sentence(tmp_path, rng, suffix):
    path = write_clip(tmp_path / f"a.{suffix}", 12)
    content, messages = path.read_bytes(), []
    for _ in range(40):
        damaged = bytearray(content)
        for place in rng.integers(len(damaged), size=rng.integers(1, 30)):
            damaged[place] = rng.integers(256)
        path.write_bytes(damaged)
        try:
            clip = read_clip(path, 5, SIZE)
            assert len(clip.frames) == len(clip.times) > 0
        except kc.InputError as error:
            messages.append(str(error))
    assert messages
    assert all(str(path) in message and "\n" not in message for message in messages)


def test_a_film_strip_has_a_column_for_each_frame(tmp_path):
    clip = read_clip(write_clip(tmp_path / "a.avi", 9), 3, SIZE)
    strip = kc.features.film_strip(clip)
    assert strip.shape == (96, 3 * 128, 3)
    found = strip[48, 128 // 2 :: 128].mean(axis=-1)
    np.testing.assert_allclose(found, [grey(1), grey(4), grey(7)], atol=4)
    many = kc.features.Clip(np.zeros((1024, 2, 2, 3), "uint8"), np.zeros(1024), 9, 16)
    assert kc.features.film_strip(many).shape[1] == 63 * 1024  # a JPEG holds it


@pytest.fixture(scope="module")
def extractor():
    keras.utils.set_random_seed(0)
    photos = Extractor("MobileNet", image_size=SIZE, arguments={"alpha": 0.25})
    return ClipExtractor(photos, num_frames=4)


def test_a_frame_is_the_mean_of_its_grid_and_padding_is_masked(tmp_path, extractor):
    paths = [write_clip(tmp_path / f"{n}.avi", n) for n in (8, 3)]
    made = extractor(extractor.to_pixels(paths))
    mask = np.array([[1, 1, 1, 1], [1, 1, 1, 0]], bool)
    np.testing.assert_array_equal(made["frame_mask"], mask)
    assert made["frames"].shape == (2, 4, extractor.frame_dim)
    for row, path in enumerate(paths):
        clip = extractor.read(path)
        grids = extractor.extractor(clip.frames)["grid"]
        expected = np.asarray(grids).mean(axis=(1, 2))
        found = np.asarray(made["frames"])[row, mask[row]]
        np.testing.assert_allclose(found, expected, atol=1e-4)
        np.testing.assert_allclose(
            np.asarray(made["times"])[row, mask[row]], clip.times
        )
    with pytest.raises(kc.InputError, match="a list of at least one path"):
        extractor.to_pixels(str(paths[0]))


def test_it_is_saved_with_its_number_of_frames(tmp_path, extractor):
    extractor.save(tmp_path / "extractor.keras")
    loaded = kc.prepare.load_extractor(tmp_path)
    assert loaded.num_frames == 4
    images = np.zeros((1, 2, SIZE, SIZE, 3), "uint8") + 77
    batch = {
        "images": images,
        "times": np.zeros((1, 2)),
        "frame_mask": images[..., 0, 0, 0] > 0,
    }
    np.testing.assert_array_equal(loaded(batch)["frames"], extractor(batch)["frames"])


def test_real_clips_are_read():
    clips = sorted((data_folder("msvd_mini") / "clips").iterdir())[:3]
    for path in clips:
        clip = read_clip(path, 20, 64)
        assert clip.frames.shape == (20, 64, 64, 3)
        assert (np.diff(clip.times) > 0).all()
        assert clip.frames.std() > 10
        Image.fromarray(kc.features.film_strip(clip))
