import contextlib
import types

import keras
import numpy as np
import onnx_detectors
import pytest
import tensorflow as tf
from conftest import data_folder, tiny
from keras_caption.objects import (
    CATEGORIES,
    HubDetector,
    LiteDetector,
    Yolox,
    load_detector,
)
from retinanet import small_retinanet
from yolox_file import photo, white_yolox

import keras_caption as kc
from keras_caption.apps.objects.suppression import Suppression
from keras_caption.apps.prepare.photos import ObjectExamples
from keras_caption.decoding import compile_function
from keras_caption.formats import apart
from keras_caption.formats.coco_categories import COCO_IDS

WIDTH = {"alpha": 0.25}


def test_boxes_are_shares_of_photos_of_any_proportions(tmp_path):
    white_yolox(image_size=None).save(tmp_path / "network.keras")
    detector = Yolox(keras.models.load_model(tmp_path / "network.keras"), image_size=64)
    # Twice as high as wide, then enlarged by two, then without a white cell.
    photos = [photo(64, 32, [(1, 2), (7, 0)]), photo(32, 32, [(0, 0)], 16)]
    photos.append(photo(20, 30, []))
    found = {k: np.array(x) for k, x in detector(detector.to_pixels(photos)).items()}
    assert found["regions"].shape == (3, 36, 80)
    first = found["boxes"][0][np.argsort(found["boxes"][0, :2, 1])]
    np.testing.assert_allclose(
        first, [[0.5, 0.125, 0.75, 0.25], [0, 0.875, 0.25, 1]], atol=1e-5
    )
    assert found["regions"][0].sum() == found["regions"][0, :2, 16].sum() == 2
    corners = found["boxes"][1][found["scores"][1] > 0]
    np.testing.assert_allclose(corners.min(axis=0)[:2], 0, atol=1e-5)
    np.testing.assert_allclose(corners.max(axis=0)[2:], 0.5, atol=0.01)
    np.testing.assert_array_equal(found["boxes"][2, :2], [[0, 0, 1, 1], [0] * 4])
    assert not found["regions"][2].any()
    [dog, _] = detector.objects_of(found, 0)
    assert dog["category"] == CATEGORIES[16] == "dog"
    assert 0.9 < dog["score"] < 1
    assert detector.objects_of(found, 2) == []

    captioner = kc.models.create(
        "san",
        vocabulary=kc.text.Vocabulary(["dog"]),
        region_dim=80,
        num_layers=1,
        model_dim=8,
        num_heads=2,
        feedforward_dim=8,
    )
    captioner.extractor = detector
    captioner.save(tmp_path / "captioner.keras")
    loaded = keras.models.load_model(tmp_path / "captioner.keras")
    assert loaded.generate(photos) == captioner.generate(photos)
    for name, values in loaded.extract(photos).items():
        np.testing.assert_allclose(values, found[name], atol=1e-5)


def test_objects_have_scores_and_colours():
    objects = Yolox(white_yolox(), image_size=64)
    detector = kc.objects.ColouredObjects(objects)
    shot = photo(64, 32, [(1, 2), (7, 0)])
    shot[32:, 16:] = (200, 30, 30)
    inputs = detector.to_pixels([shot, photo(20, 30, [])])
    found = {k: np.array(x) for k, x in detector(inputs).items()}
    plain = {k: np.array(x) for k, x in objects(inputs).items()}
    assert found["regions"].shape == (2, 37, 112) == (2, 37, len(detector.dimensions))
    np.testing.assert_array_equal(found["boxes"][:, 0], [[0, 0, 1, 1]] * 2)
    np.testing.assert_array_equal(found["boxes"][0, 1:], plain["boxes"][0])
    assert not found["boxes"][1, 1:].any()
    scores = plain["regions"] * plain["scores"][..., None]
    np.testing.assert_allclose(found["regions"][:, 1:, :80], scores, atol=1e-6)
    assert not found["regions"][:, 0, :80].any()

    def share(region, colour):
        return found["regions"][0, region, detector.dimensions.index(colour)]

    np.testing.assert_allclose(
        [share(0, "red"), share(0, "white"), share(0, "black")],
        [1 / 4, 2 / 32, 1 - 1 / 4 - 2 / 32],
        atol=0.06,  # at edges are other colours
    )
    assert min(share(i, "white in the middle") for i in (1, 2)) > 0.75
    valid = found["boxes"].any(axis=-1)
    np.testing.assert_allclose(found["regions"][valid][:, 80:].sum(-1), 2, atol=1e-5)
    assert not found["regions"][~valid].any()
    assert [x["category"] for x in detector.objects_of(found, 0)] == ["dog", "dog"]


@contextlib.contextmanager
def set_by_others():
    """What another program, or a training, has set in Keras for the process."""
    policy = keras.config.dtype_policy()
    keras.config.set_image_data_format("channels_first")
    keras.config.set_dtype_policy("mixed_float16")
    try:
        yield
        assert keras.config.image_data_format() == "channels_first"
        assert keras.config.dtype_policy().name == "mixed_float16"
    finally:
        keras.config.set_image_data_format("channels_last")
        keras.config.set_dtype_policy(policy)


def test_pixels_of_objects_or_windows_come_last(tmp_path):
    network = kc.features.Extractor("MobileNet", image_size=32, arguments=WIDTH)
    coloured = kc.objects.ColouredObjects(Yolox(white_yolox(), image_size=64))
    detector = kc.objects.ColouredObjects(coloured.detector, network)
    photos = [photo(64, 32, [(1, 2), (7, 0)]), photo(32, 32, [])]
    inputs = detector.to_pixels(photos)
    detect = compile_function(detector, detector.variables)
    found = {k: np.array(x) for k, x in detect(inputs).items()}
    expected = {k: np.array(x) for k, x in coloured(inputs).items()}
    assert found["regions"].shape == (2, 37, len(detector.dimensions)) == (2, 37, 368)
    np.testing.assert_array_equal(found["boxes"][0], expected["boxes"][0])
    np.testing.assert_allclose(
        found["regions"][0, :, :112], expected["regions"][0], atol=1e-6
    )
    np.testing.assert_allclose(found["boxes"][1, :30], kc.features.windows())
    assert not found["boxes"][1, 30:].any()
    assert not found["scores"][1].any()
    pooled = network(network.to_pixels(photos), found["boxes"])["regions"]
    valid = found["boxes"].any(axis=-1)
    np.testing.assert_allclose(
        found["regions"][valid][:, 112:], np.array(pooled)[valid], atol=1e-5
    )
    assert not found["regions"][~valid].any()

    detector.save(tmp_path / "detector.keras")
    loaded = keras.models.load_model(tmp_path / "detector.keras")
    assert loaded.dimensions == detector.dimensions
    for name, values in loaded(inputs).items():
        np.testing.assert_allclose(values, found[name], atol=1e-5)
    with set_by_others():
        loaded = keras.models.load_model(tmp_path / "detector.keras")
        inputs = loaded.to_pixels(photos)
        for name, values in loaded(inputs).items():
            np.testing.assert_allclose(values, found[name], atol=1e-5)


@pytest.mark.parametrize(("width", "count"), [(3.0, 2), (6.0, 1)])
def test_of_overlapping_boxes_the_best_remains(width, count):
    # Two cells side by side overlap by 1/2 of their union, and by 5/7.
    detector = Yolox(white_yolox(width=width), image_size=64)
    found = detector(detector.to_pixels([photo(64, 64, [(3, 3), (3, 4)])]))
    assert np.count_nonzero(found["scores"]) == count


def test_what_litert_lacks_numpy_does_alike(rng):
    detector = Yolox(white_yolox(), image_size=64)
    for size in ((91, 64), (30, 77), (1, 9)):
        pixels = rng.integers(0, 256, (*size, 3)).astype("uint8")
        placed = LiteDetector.place(detector, pixels)  # which reads its sizes alone
        for name, expected in detector.place(pixels).items():
            np.testing.assert_array_equal(placed[name], expected)
    corners = rng.uniform(0, 50, (200, 2)).astype("float32")
    boxes = np.concatenate([corners, corners + rng.uniform(5, 30, (200, 2))], axis=1)
    scores, boxes = rng.permutation(200).astype("float32"), boxes.astype("float32")
    for overlap in 0.2, 0.65:
        expected = tf.image.non_max_suppression(boxes, scores, 30, overlap)
        suppress = Suppression(overlap, by_category=False)
        found = suppress(boxes, scores, rng.integers(0, 9, 200), 30)
        np.testing.assert_array_equal(found, expected)
    kinds = rng.integers(0, 3, 200)
    apart = Suppression(0.2, by_category=True)(boxes, scores, kinds, 200)
    for kind in range(3):
        places = np.flatnonzero(kinds == kind)
        of_kind = boxes[places], scores[places]
        expected = places[tf.image.non_max_suppression(*of_kind, 200, 0.2)]
        np.testing.assert_array_equal([i for i in apart if kinds[i] == kind], expected)


def test_detectors_of_kerashub_find_the_same_as_by_themselves(rng, tmp_path):
    keras.utils.set_random_seed(0)
    network = small_retinanet(91)
    for head, scale in (network.box_head, 0.0), (network.classification_head, 0.2):
        head.set_weights([scale * w for w in head.get_weights()])
    network.save_to_preset(tmp_path / "detector")
    path = str(tmp_path / "detector")
    assert load_detector(path, coloured=True).network is None  # no pixels of another
    detector = load_detector(path, confidence=0.01)
    pixels = rng.integers(0, 256, (1, 64, 64, 3)).astype("uint8")
    boxes, scores, categories = detector.find(detector.to_pixels(list(pixels)))
    network.prediction_decoder.confidence_threshold = 0.01
    images = network.preprocessor(pixels.astype("float32"))
    expected = network.decode_predictions(network(images), images)
    ids, places = (np.array(expected[name][0]) for name in ("labels", "boxes"))
    known = {
        (COCO_IDS.index(i), *(place[[1, 0, 3, 2]] / 64).clip(0, 1))
        for i, place in zip(ids, places, strict=True)
        if i in COCO_IDS
    }
    valid = np.array(scores[0]) > 0
    assert valid.any()
    assert ((np.array(categories[0]) >= 0) == valid).all()
    assert (np.diff(scores[0]) <= 0).all()
    for category, place in zip(categories[0], boxes[0], strict=True):
        near = [k[1:] for k in known if k[0] == category]
        assert category < 0 or np.abs(np.array(near) - place).max(axis=1).min() < 1e-5

    with set_by_others():
        again = load_detector(path, confidence=0.01)
        found = again.find(again.to_pixels(list(pixels)))
    for values, expected in zip(found, (boxes, scores, categories), strict=True):
        np.testing.assert_allclose(values, expected, atol=1e-5)

    with pytest.raises(kc.InputError, match=r"80 or 91 classes\. Received: 3"):
        HubDetector(small_retinanet(3))


@pytest.mark.parametrize(
    ("network", "boxes"),
    [
        (onnx_detectors.yolox(), [[0.5, 0.125, 0.75, 0.25], [0, 0.875, 0.25, 1]]),
        (onnx_detectors.nanodet(), [[0.25, 0, 0.5, 0.25], [0.5, 0.5, 0.75, 0.75]]),
        (onnx_detectors.detr(), [[0.5, 0, 1, 0.5]]),
        (onnx_detectors.detr(80, 16), [[0.5, 0, 1, 0.5]]),
    ],
    ids=["yolox", "nanodet", "detr", "rt_detr"],
)
def test_detectors_in_files_of_onnx_are_read(network, boxes, tmp_path):
    """Each as its own code exports it; all find dogs."""
    path = onnx_detectors.write(tmp_path / "detector.onnx", *network)
    detector = load_detector(str(path))
    if "output" in network[-1]:
        # Of YOLOX as high as the square, and half as wide; of NanoDet it fills it.
        wide = 32 if detector.keeps_proportions else 64
        cells = [(1, 2), (7, 0)] if wide == 32 else [(1, 3), (5, 5)]
        image = photo(64, wide, cells)
    else:
        image = photo(64, 64, [(0, 1)], 32)
    found = detector(detector.to_pixels([image, photo(64, 64, [])]))
    objects = detector.objects_of(found, 0)
    assert {x["category"] for x in objects} == {"dog"}
    assert all(0.8 < x["score"] <= 1 for x in objects)
    corners = sorted((x["box"] for x in objects), key=lambda box: box[1])
    np.testing.assert_allclose(corners, boxes, atol=1e-3)
    assert detector.objects_of(found, 1) == []


def test_a_detector_of_another_engine_stays_out_of_graphs(tmp_path):
    path = onnx_detectors.write(tmp_path / "detector.onnx", *onnx_detectors.yolox())
    sizes = {"num_layers": 1, "model_dim": 8, "num_heads": 2, "feedforward_dim": 8}
    sizes |= {"vocabulary": kc.text.Vocabulary(["dog"]), "region_dim": 80}
    captioner = kc.models.create("san", categories=[*CATEGORIES], **sizes)
    predictor = kc.serving.Predictor(captioner, str(path))
    record = {"photo": photo(64, 64, [(1, 2)])}
    for _ in range(2):  # the second batch would be compiled
        found, other = predictor([record, {"photo": photo(64, 64, [])}])
        assert [x["category"] for x in found.objects] == ["dog"]
        assert not other.objects
    assert "photos" not in predictor.signatures
    captioner.extractor = predictor.model.extractor
    with pytest.raises(kc.InputError, match=r"detector\.onnx is a file of another"):
        captioner.save(tmp_path / "captioner.keras")
    with pytest.raises(kc.InputError, match="of another engine, which runs outside"):
        kc.serving.export(captioner, tmp_path / "export")


def test_other_files_of_onnx_are_no_detectors(tmp_path, monkeypatch):
    nodes, constants, outputs = onnx_detectors.detr()
    path = onnx_detectors.write(tmp_path / "a.onnx", nodes, constants, outputs[:1])
    with pytest.raises(kc.InputError, match=r"returns \(1, 4, 92\) of 64 x 64 pixels"):
        load_detector(str(path))
    image = onnx_detectors.detr()
    image[1]["boxes"][0, 1, 2] = np.nan  # of one box
    path = onnx_detectors.write(tmp_path / "a.onnx", *image)
    with pytest.raises(kc.InputError, match=r"a\.onnx returns values that are no num"):
        load_detector(str(path))
    path = onnx_detectors.write(path, *onnx_detectors.detr(), size=5000)
    with pytest.raises(kc.InputError, match=r"reads images of 5,000 x 5,000 pixels"):
        load_detector(str(path))
    path = onnx_detectors.write(path, *onnx_detectors.endless())
    with monkeypatch.context() as patch:
        patch.setattr(apart, "SECONDS", 5.0)
        with pytest.raises(kc.InputError, match=r"a\.onnx .* was not read within 5 s"):
            load_detector(str(path))
    path.write_bytes(b"none")
    with pytest.raises(kc.InputError, match=r"a\.onnx cannot be read"):
        load_detector(str(path))
    with pytest.raises(kc.InputError, match=r"There is no file nowhere\.tflite"):
        load_detector("nowhere.tflite")


@pytest.mark.parametrize("kind", ["yolox", "hub"])
def test_nan_of_a_network_of_keras_is_an_error(kind):
    """It was "nothing is detected"."""
    if kind == "yolox":
        detector = Yolox(white_yolox(image_size=64), image_size=64)
    else:
        detector = HubDetector(small_retinanet(80))
    weights = detector.network.get_weights()
    weights[0].flat[0] = np.nan
    detector.network.set_weights(weights)
    captioner = kc.models.create("san", vocabulary_size=9, **tiny("san"))
    captioner.extractor = detector
    for _ in range(2):  # the second batch is compiled
        with pytest.raises(kc.InputError, match="returns values that are no numbers"):
            captioner.extract([photo(64, 64, [(1, 2)])])
    examples = ObjectExamples(detector, 1)
    record = types.SimpleNamespace(
        **{"read": lambda: photo(64, 64, []), "image_id": 1},
        **{"boxes": None, "captions": ["a dog"], "objects": None},
    )
    with pytest.raises(kc.InputError, match="returns values that are no numbers"):
        list(examples([record]))


def test_a_file_without_a_detector_is_refused_in_one_sentence(tmp_path, captioner):
    captioner.save(tmp_path / "captioner.keras")
    white_yolox(image_size=48).save(tmp_path / "small.keras")
    for name, message in [
        ("nowhere.keras", "There is no saved model nowhere.keras"),
        (tmp_path / "captioner.keras", "A YOLOX network should turn 416 x 416 pixels"),
        (tmp_path / "small.keras", r"48 pixels into 49 x 85 .* Received: white_yolox"),
        ("nowhere", "There is no object detector 'nowhere'"),
        ("dfine_nano_cocoo", r"no folder\. Did you mean dfine_nano_coco or [\w ]+\?$"),
    ]:
        with pytest.raises(kc.InputError, match=message):
            load_detector(str(name))


@pytest.mark.parametrize("confidence", [30, 2.0, float("nan"), -1])
def test_confidence_is_a_share(confidence):
    with pytest.raises(kc.InputError, match=r"^`confidence`: .*received"):
        Yolox(white_yolox(), image_size=64, confidence=confidence)


def test_a_download_is_announced_and_without_a_network_one_sentence(
    monkeypatch, capsys, tmp_path
):
    import keras_hub
    import requests

    def fail(preset):
        raise requests.exceptions.ConnectionError("Max retries exceeded")

    monkeypatch.setattr(keras_hub.models.ObjectDetector, "from_preset", fail)
    monkeypatch.setenv("KAGGLEHUB_CACHE", str(tmp_path))
    page = "https://www.kaggle.com/models/keras/d-fine/keras/dfine_nano_coco/1"
    with pytest.raises(kc.InputError) as error:
        load_detector("dfine_nano_coco")
    assert str(error.value) == (
        "The preset 'dfine_nano_coco' could not be loaded from "
        f"{page}: there is no connection; without a network, fetch "
        "https://www.kaggle.com/api/v1/models/keras/d-fine/keras/dfine_nano_coco/1/"
        "download (its files, as .tar.gz) where there is one, put them into a folder "
        "here, and name that, such as ./folder, as --detector; or use "
        "--detector yolox_nano, 3.7 MB from GitHub."
    )
    announced = f"Downloading dfine_nano_coco, about 15 MB, from {page}\n"
    assert capsys.readouterr().err == announced
    here = tmp_path / "models/keras/d-fine/keras/dfine_nano_coco/1"
    here.mkdir(parents=True)
    (here / "task.weights.h5").touch()
    with pytest.raises(kc.InputError, match="cannot be used: "):
        load_detector("dfine_nano_coco")
    assert not capsys.readouterr().err


def test_yolox_nano_has_its_average_precision():
    import tensorflow as tf
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    network = keras.models.load_model(data_folder("yolox_nano") / "yolox_nano.keras")
    detector = Yolox(network, confidence=0.01, max_objects=100)
    find = tf.function(detector.find, autograph=False)
    folder = data_folder("coco_mini")
    truth, found = COCO(folder / "instances_val2017.json"), []
    for image in truth.imgs.values():
        pixels = detector.to_pixels([folder / "val2017" / image["file_name"]])
        boxes, scores, categories = (np.array(x[0]) for x in find(pixels))
        boxes *= np.tile([image["width"], image["height"]], 2)
        boxes[:, 2:] -= boxes[:, :2]
        found += [
            {
                "image_id": image["id"],
                "category_id": COCO_IDS[category],
                "bbox": box.tolist(),
                "score": float(score),
            }
            for box, score, category in zip(boxes, scores, categories, strict=True)
            if score > 0
        ]
    evaluation = COCOeval(truth, truth.loadRes(found), "bbox")
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    assert evaluation.stats[0] == pytest.approx(0.259, abs=0.005)
