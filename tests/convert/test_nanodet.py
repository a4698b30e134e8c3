"""NanoDet-Plus in ncnn's files, held to what ncnn computes."""

import shutil

import numpy as np
import pytest
from conftest import data_folder
from keras_caption.objects import NanoDet, load_detector

import keras_caption as kc
from keras_caption.commands import main

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


def test_a_nanodet_of_ncnn_computes_the_same(tmp_path, capsys):
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
    param.write_text(text.replace("cls8", "cls7"))
    with pytest.raises(kc.InputError, match="has cls8 and dis8_pre of 80 and 32 val"):
        kc.convert.convert_nanodet(kc.convert.read_ncnn(param))
    param.write_text("no network")
    with pytest.raises(kc.InputError, match=r"is no \.param file of ncnn"):
        kc.convert.read_ncnn(param)
    with pytest.raises(kc.InputError, match=r"bin should be a \.param file of ncnn"):
        kc.convert.read_ncnn(weights)
