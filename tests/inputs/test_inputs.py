import itertools
import warnings

import numpy as np
import pytest
import tensorflow as tf
from conftest import random_images, tiny
from faulty_images import FAULTS, PADDINGS, pad_images, spoil
from matplotlib import font_manager
from matplotlib.figure import Figure

import keras_caption as kc
from keras_caption.apps.report.visualization.drawing import frame_boxes

LENGTHS = (5, 3, 1)


@pytest.fixture(scope="module")
def aoanet(vocabulary):
    return kc.models.create("aoanet", vocabulary=vocabulary, **tiny("aoanet"))


def logits(model, images):
    tokens = np.full((len(images["regions"]), 3), 5, "int32")
    return np.array(model({**images, "tokens": tokens}))


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("name", ["captioner", "aoanet"])
def test_a_region_whose_box_has_no_area_is_padding(name, padding, request, rng):
    model = request.getfixturevalue(name)
    images = [random_images(rng, 1, number) for number in LENGTHS]
    batch = pad_images(images, padding)
    found = logits(model, batch)
    mask = np.arange(5) < np.array(LENGTHS)[:, None]
    np.testing.assert_array_equal(found, logits(model, {**batch, "region_mask": mask}))
    for i, image in enumerate(images):
        np.testing.assert_allclose(found[i], logits(model, image)[0], atol=1e-5)
    # In models that read boxes, as in exported ones, even if the mask differs.
    all_valid = logits(model, {**batch, "region_mask": np.ones_like(mask)})
    assert np.array_equal(all_valid, found) == model.kinds[0].reads_boxes


def test_a_box_without_width_or_height_has_no_area():
    boxes = np.float32([[[0, 0, 1, 1], [0.2, 0.1, 0.2, 0.9], [0.1, 0.3, 0.5, 0.3]]])
    regions = kc.inputs.Regions(kc.inputs.Regions.symbolic(2))
    inputs = {"regions": np.ones((1, 3, 2), "float32"), "boxes": boxes}
    valid = regions.complete(inputs)["region_mask"]
    np.testing.assert_array_equal(valid, [[True, False, False]])


def test_models_that_read_no_boxes_need_none(aoanet, captioner, vocabulary, rng):
    assert captioner.kinds[0].reads_boxes
    san = kc.models.create("san", vocabulary=vocabulary, **tiny("san"))
    assert not san.kinds[0].reads_boxes
    images = random_images(rng)
    expected = logits(aoanet, images)
    del images["boxes"]
    np.testing.assert_array_equal(logits(aoanet, images), expected)
    # Training data without boxes: all regions are valid.
    regions = {"regions": images["regions"]}
    zeros = {**regions, "boxes": np.zeros((3, 5, 4), "float32")}
    np.testing.assert_array_equal(logits(aoanet, zeros), logits(aoanet, regions))
    masked = {**zeros, "region_mask": images["region_mask"]}
    np.testing.assert_array_equal(logits(aoanet, masked), expected)
    aoanet.generate(masked, beam_size=1, max_length=2)
    with pytest.raises(kc.InputError, match="Image 0 of the batch has no valid region"):
        aoanet.generate(zeros)
    with pytest.raises(kc.InputError, match="Image 0 of the batch has no valid region"):
        captioner.generate(masked)
    # An ensemble never takes missing boxes for zeros.
    with pytest.raises(kc.InputError, match="Missing from the batch: boxes"):
        kc.models.Ensemble([aoanet, captioner]).generate(regions)


def test_images_that_cannot_be_captioned_are_named(captioner, rng):
    count = len(FAULTS) + 1
    images, image_ids = random_images(rng, count, 3), tf.range(7, 7 + count)
    images["region_mask"][:] = True
    faulty = spoil(images)
    problems = [problem for problem, _, _ in FAULTS] + ["no valid region"]
    for index, problem in enumerate(problems):
        batch = {name: values.copy() for name, values in images.items()}
        for name, values in faulty.items():
            batch[name][index] = values[index]
        expected = rf"Image {index} of the batch \(id {7 + index}\).* {problem}"
        with pytest.raises(kc.InputError, match=expected):
            captioner.generate({**batch, "image_id": image_ids})
    images["region_mask"][1] = False
    with pytest.raises(kc.InputError, match="Image 1 of the batch has no valid region"):
        kc.models.Ensemble([captioner] * 2).generate_tokens(images, temperature=1.0)


def test_values_of_padded_rows_do_not_matter(captioner, rng):
    images = random_images(rng)
    captions = captioner.generate(images, beam_size=1, max_length=3)
    images["regions"][~images["region_mask"]] = np.nan
    images["boxes"][~images["region_mask"]] = 500.0
    assert captioner.generate(images, beam_size=1, max_length=3) == captions


def test_grids_are_checked(vocabulary):
    size = {"grid_height": 2, "grid_width": 2, "grid_dim": 4, "num_layers": 1}
    size |= {"model_dim": 8, "num_heads": 2, "feedforward_dim": 8}
    model = kc.models.create("spatial", vocabulary=vocabulary, **size)
    grid = np.zeros((2, 2, 2, 4), "float32")
    grid[1, 0, 1, 2] = np.nan
    with pytest.raises(kc.InputError, match="Image 1 of the batch has grid that"):
        model.generate({"grid": grid})


def test_attention_frames_the_cells_of_a_grid(vocabulary, rng):
    size = {"grid_height": 2, "grid_width": 3, "grid_dim": 4, "num_layers": 1}
    size |= {"model_dim": 8, "num_heads": 2, "feedforward_dim": 8}
    model = kc.models.create("spatial", vocabulary=vocabulary, **size)
    inputs = {"grid": rng.normal(size=(1, 2, 3, 4)).astype("float32")}
    tokens = [5, 6, kc.text.EOS]
    image = rng.integers(0, 256, (20, 60, 3)).astype("uint8")
    panel = kc.visualization.attention_over_words(model, inputs, tokens, image).axes[0]
    shown = np.array(panel.images[0].get_array())
    np.testing.assert_array_equal(shown, image)  # in its own colours
    weights = kc.visualization.attention_over_memory(model, inputs, tokens)[1]
    most = np.argsort(weights[:2].mean(axis=0))[-3:]  # of all words but <eos>
    corners = [(20.0 * (cell % 3), 10.0 * (cell // 3)) for cell in most]
    assert [frame.get_xy() for frame in panel.patches] == corners
    assert {(x.get_width(), x.get_height()) for x in panel.patches} == {(20, 10)}


def test_words_are_in_a_font_of_the_machine_or_a_sentence(rng, monkeypatch):
    own = [x for x in font_manager.fontManager.ttflist if "matplotlib" in x.fname]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", own)
    words = kc.text.WordTokenizer(["रुको", "ᶄ‍d"])  # of none, and of STIX
    size = {"grid_height": 2, "grid_width": 3, "grid_dim": 4, "num_layers": 1}
    size |= {"model_dim": 8, "num_heads": 2, "feedforward_dim": 8}
    model = kc.models.create("spatial", vocabulary=words, **size)
    inputs = {"grid": rng.normal(size=(1, 2, 3, 4)).astype("float32")}
    figure = kc.visualization.attention_over_captions(model, [(inputs, [5], None)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.canvas.draw()
    with pytest.raises(kc.InputError, match=r"No font .* has '.{4}' \(DEVANAGARI\)"):
        kc.visualization.attention_over_words(model, inputs, [4, 5])


def test_labels_of_objects_within_each_other_do_not_cover_each_other():
    panel = Figure().subplots()
    panel.imshow(np.zeros((100, 150, 3)))
    boxes = np.array([[0.0, 0.0, 1.0, 1.0], [0.1, 0.0, 0.9, 0.9], [0.0, 0.1, 1.0, 0.8]])
    labels = ["dining table 40%", "cup 35%", "person 25%"]
    frame_boxes(panel, boxes, labels, np.array([1.0, 0.9, 0.6]), (100, 150))
    panel.figure.draw_without_rendering()
    extents = [text.get_window_extent() for text in panel.texts]
    assert len(extents) == 3
    assert not any(a.overlaps(b) for a, b in itertools.combinations(extents, 2))


def test_inputs_of_another_kind_are_named(captioner, rng):
    images = random_images(rng)
    for inputs in ("a.jpg", np.zeros((2, 3)), [], ["a.jpg"]):
        with pytest.raises(kc.InputError, match=r"a dict of regions, boxes: .*extract"):
            captioner.generate(inputs)
    for values in ([[1.0], [1.0, 2.0]], "abc"):
        with pytest.raises(kc.InputError, match="`regions` should be an array of num"):
            captioner.generate({**images, "regions": values})
    with pytest.raises(kc.InputError, match="holds no image"):
        captioner.generate({name: values[:0] for name, values in images.items()})


@pytest.fixture(scope="module")
def video_model(vocabulary):
    sizes = {"frame_dim": 3, "model_dim": 8, "num_heads": 2, "feedforward_dim": 8}
    return kc.models.create("video_nsa", vocabulary=vocabulary, **sizes)


def test_videos_that_cannot_be_captioned_are_named(video_model):
    frames = np.zeros((2, 4, 3), "float32")
    mask = np.ones((2, 4), bool)
    mask[1, 2:] = False
    broken = frames.copy()
    broken[1, :2, 1] = -np.inf
    long = np.zeros((1, 1025, 3), "float32")
    for videos, problem in (
        ({"frames": frames[:, :0]}, "Video 0 of the batch has no valid frame"),
        ({"frames": frames, "frame_mask": ~mask}, "Video 0 .* has no valid frame"),
        ({"frames": broken, "frame_mask": mask}, "Video 1 .* frames that are not fin"),
        ({"frames": long}, "Video 0 .* has more than 1,024 frames"),
        ({"frames": frames[:0]}, "holds no video"),
        ({"frames": frames[0]}, r"frames of shape \('batch', None, 3\)"),
        ({"frames": frames, "frame_mask": mask[:, :3]}, "as many frame_mask as frames"),
        ({"frame_mask": mask}, "Missing from the batch: frames"),
    ):
        with pytest.raises(kc.InputError, match=problem):
            video_model.generate(videos, beam_size=1, max_length=2)
    # What stands in padded frames is no fault, and neither are many of them.
    broken[1] = frames[1]
    broken[1, 2:] = np.nan
    videos = {"frames": broken, "frame_mask": mask}
    assert video_model.read(videos, check=True)
    mask = np.arange(1025) < 3
    assert video_model.read({"frames": long, "frame_mask": mask[None]}, True)
