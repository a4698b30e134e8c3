"""NanoDet-Plus in ncnn's files, held to what ncnn computes."""

import shutil

import numpy as np
import pytest
from conftest import data_folder

import keras_caption as kc
from keras_caption.commands import main
from keras_caption.features import NanoDet, load_detector, nanodet_download
from keras_caption.formats.engine_files import open_engine
from keras_caption.serving import engine_cache

NAME = "nanodet-plus-m-1.5x_416_int8"
# Of cells of all strides for `pattern`: three scores and four logits, by the package
# ncnn 1.0.20261020 with floats in place of int8.
EXPECTED = {
    0: [0.02802, 0.00336, 0.0116, 1.7134, -1.9313, -5.478, -6.2684],
    1400: [0.00926, 0.00131, 0.00586, -1.7743, -0.8171, -0.4374, -1.1766],
    3000: [0.00378, 0.00171, 0.00605, -1.8627, -1.4155, -0.6832, -0.4435],
    3400: [0.00283, 0.00093, 0.00354, -2.4246, -2.8351, -1.5601, -1.7369],
    3549: [0.00573, 0.003, 0.00607, -0.1278, -1.2056, -0.44060, -0.7168],
    3597: [0.01371, 0.0039, 0.0065, -1.4499, -1.1676, -0.6238, -0.7132],
}


def pattern():
    """A normalized image, `(1, 416, 416, 3)`."""
    i, j = np.mgrid[:416, :416]
    waves = np.sin(i / 20) + np.cos(j / 30), np.sin((i + j) / 25)
    waves = *waves, np.cos(i / 15) * np.sin(j / 10)
    return 1.5 * np.stack(waves, axis=-1)[None].astype("float32")


def test_a_nanodet_of_ncnn_computes_the_same(tmp_path, capsys, monkeypatch, rng):
    checkpoint = data_folder("nanodet_plus") / f"{NAME}.param"
    output = tmp_path / "nanodet.keras"
    with pytest.raises(SystemExit, match=r"^$"):
        main(["convert", "nanodet", str(checkpoint), f"--output={output}"])
    assert "2,461,080 parameters, 3,598 cells" in capsys.readouterr().out
    detector = load_detector(str(output))
    assert isinstance(detector, NanoDet)
    [cells] = np.array(detector.network(pattern()))
    for cell, expected in EXPECTED.items():
        found = np.r_[cells[cell, :3], cells[cell, 80:84]]
        np.testing.assert_allclose(found, expected, atol=1e-4)
    # Written for LiteRT without TensorFlow, it finds the same.
    pytest.importorskip("ai_edge_litert")
    monkeypatch.setattr(engine_cache, "kept_folder", lambda: tmp_path / "engines")
    run = open_engine(engine_cache.detector_of(str(checkpoint)))
    image = rng.uniform(0, 255, (1, 416, 416, 3)).astype("float32")
    boxes, scores, categories = map(np.array, detector.candidates(image))
    found = run({"images": image})
    np.testing.assert_allclose(found["boxes"], boxes, atol=0.01)
    np.testing.assert_allclose(found["scores"], scores, atol=1e-5)
    np.testing.assert_array_equal(found["categories"], categories)
    with pytest.raises(kc.InputError, match="is for LiteRT, on which"):
        load_detector(str(checkpoint))


def test_a_download_is_compared_with_its_digest(tmp_path, monkeypatch, capsys):
    for name in nanodet_download.DIGESTS:
        shutil.copy(data_folder("nanodet_plus") / name, tmp_path)
    monkeypatch.setattr(nanodet_download, "ADDRESS", f"{tmp_path.as_uri()}/")
    monkeypatch.setattr(engine_cache, "kept_folder", lambda: tmp_path / "engines")
    file = engine_cache.detector_of("nanodet_plus")
    assert engine_cache.detector_of("nanodet_plus") == file
    assert capsys.readouterr().err.count("Downloading nanodet_plus, 2.6 MB") == 1
    weights = tmp_path / f"{NAME}.bin"
    weights.chmod(0o600)
    weights.write_bytes(weights.read_bytes()[:-1] + b"!")
    shutil.rmtree(tmp_path / "engines")
    with pytest.raises(kc.InputError, match="is another file than that whose SHA-256"):
        engine_cache.detector_of("nanodet_plus")
    weights.unlink()
    message = r"No such file .*; without a network, fetch it and .*\.param beside it"
    with pytest.raises(kc.InputError, match=message):
        engine_cache.detector_of("nanodet_plus")
    assert not (tmp_path / "engines").exists()


def test_damaged_files_of_ncnn_are_named(tmp_path):
    folder = data_folder("nanodet_plus")
    for suffix in ".param", ".bin":
        shutil.copy(folder / f"{NAME}{suffix}", tmp_path)
    param, weights = tmp_path / f"{NAME}.param", tmp_path / f"{NAME}.bin"
    weights.chmod(0o600), param.chmod(0o600)
    content, text = weights.read_bytes(), param.read_text()
    weights.write_bytes(content[:-5000])
    with pytest.raises(
        kc.InputError, match=r"\.bin cannot be read: it ends within the weights of conv"
    ):
        kc.convert.read_ncnn(param)
    weights.write_bytes(content + b"more")
    with pytest.raises(kc.InputError, match=r"has 2,582,320 bytes, and the layers of"):
        kc.convert.read_ncnn(param)
    weights.write_bytes(content)
    param.write_text(text.replace("ShuffleChannel", "Softmax"))
    with pytest.raises(kc.InputError, match="channelshuffle_4 is a Softmax: unknown"):
        kc.convert.convert_nanodet(kc.convert.read_ncnn(param))
    with pytest.raises(kc.InputError, match="channelshuffle_4 is a Softmax: unknown"):
        engine_cache.detector_of(str(param))
    param.write_text(text.replace("cls8", "cls7"))
    with pytest.raises(kc.InputError, match="has cls8 and dis8_pre of 80 and 32 val"):
        kc.convert.convert_nanodet(kc.convert.read_ncnn(param))
    with pytest.raises(kc.InputError, match="has an output cls8 of 80 values"):
        engine_cache.detector_of(str(param))
    param.write_text("no network")
    with pytest.raises(kc.InputError, match=r"is no \.param file of ncnn"):
        kc.convert.read_ncnn(param)
