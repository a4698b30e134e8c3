"""YOLOX networks of ONNX, on LiteRT without TensorFlow, and in Keras."""

import hashlib
import http.client
from unittest import mock

import numpy as np
import onnx_detectors
import pytest
from keras_caption.objects import EngineDetector, LiteDetector, Yolox, load_detector

import keras_caption as kc
from keras_caption.apps.objects import yolox_download
from keras_caption.commands import main
from keras_caption.export import engine_cache

pytest.importorskip("ai_edge_litert")
pytest.importorskip("onnxruntime")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("KERAS_CAPTION_CACHE", str(folder))
    engine_cache.engines.cache_clear()
    yield folder
    engine_cache.engines.cache_clear()


@pytest.fixture
def network(tmp_path, rng):
    path = tmp_path / "yolox.onnx"
    return onnx_detectors.write(path, *onnx_detectors.yolox_network(rng))


def test_a_yolox_of_onnx_finds_the_same(network, cache, rng, tmp_path, capsys):
    output = tmp_path / "yolox.keras"
    with pytest.raises(SystemExit, match=r"^$"):
        main(["convert", "yolox", str(network), f"--output={output}"])
    assert "84 cells" in capsys.readouterr().out
    photos = rng.integers(0, 256, (2, 50, 64, 3)).astype("uint8")

    def find(detector):
        found = detector(detector.to_pixels([*photos]))
        return {name: np.asarray(x) for name, x in found.items()}

    expected = find(EngineDetector(network, confidence=0.05))
    lite = LiteDetector(engine_cache.detector_of(str(network)), confidence=0.05)
    for found in find(lite), find(load_detector(str(output), confidence=0.05)):
        count = found["boxes"].shape[1]
        assert count > 5
        for name, values in found.items():
            np.testing.assert_allclose(values, expected[name][:, :count], atol=1e-5)
        assert not np.any(expected["scores"][:, count:])


def test_a_download_is_compared_with_its_digest(network, cache, monkeypatch, capsys):
    digest = hashlib.sha256(network.read_bytes()).hexdigest()
    monkeypatch.setattr(yolox_download, "ADDRESS", network.as_uri())
    monkeypatch.setattr(yolox_download, "SHA_256", digest)
    file = engine_cache.detector_of("yolox_nano")
    assert engine_cache.detector_of("yolox_nano") == file
    detector = load_detector("yolox_nano")
    assert (type(detector), detector.image_size) == (Yolox, 64)
    assert capsys.readouterr().err.count("Downloading yolox_nano, 3.7 MB") == 1
    [kept] = (cache / "detectors").iterdir()
    (kept / network.name).write_bytes(b"")  # is not whole: downloaded anew
    monkeypatch.setattr(yolox_download, "SHA_256", "0" * 64)
    with pytest.raises(kc.InputError, match="has not the file whose SHA-256 is 0000"):
        engine_cache.detector_of("yolox_nano")
    network.unlink()
    with pytest.raises(kc.InputError, match=r"No such file .*; without a network, "):
        engine_cache.detector_of("yolox_nano")
    for error in http.client.BadStatusLine("login"), http.client.IncompleteRead(b""):
        monkeypatch.setattr("urllib.request.urlopen", mock.Mock(side_effect=error))
        with pytest.raises(kc.InputError, match=r"be downloaded: .*; without a"):
            engine_cache.detector_of("yolox_nano")


def test_other_networks_are_refused_in_one_sentence(tmp_path, network, cache, rng):
    nodes, constants, _ = onnx_detectors.yolox_network(rng)
    content = network.read_bytes()
    for number, (file, message) in enumerate(
        (
            (onnx_detectors.detr(), "has a node Identity, which no YOLOX needs"),
            ((nodes, constants, ["rows1"]), r"should return values \(1, 84, 85\) of"),
            (content[: len(content) // 2], "cannot be read"),
            (b"", "is no file of ONNX"),
        )
    ):
        path = tmp_path / f"{number}.onnx"
        if isinstance(file, bytes):
            path.write_bytes(file)
        else:
            onnx_detectors.write(path, *file)
        with pytest.raises(kc.InputError, match=message):
            engine_cache.detector_of(str(path))
    with pytest.raises(kc.InputError, match="There is no file"):
        engine_cache.detector_of("missing.onnx")
