import pickle
import tracemalloc

import numpy as np
import pytest
import torch_files
from keras_caption.convert import read_tensors

import keras_caption as kc


@pytest.mark.parametrize("is_archive", [True, False])
def test_state_dicts_are_read_without_pytorch(tmp_path, rng, is_archive):
    shapes = {"a.weight": (3, 4), "a.bias": (3,), "b": (2, 5), "c": (5, 2), "d": (1, 1)}
    arrays = {n: rng.normal(size=s).astype("float32") for n, s in shapes.items()}
    state = torch_files.tensors_of(arrays)
    moments = torch_files.Tensor(
        torch_files.FloatStorage("m", np.ones(4, "float32")), (2, 2), (2, 1)
    )
    optimizer = {"state": {140: {"step": 3, "exp_avg": moments}}, "betas": (0.9, 0.98)}
    path = tmp_path / "epoch13.pkl"
    for content in (
        state,
        {"state_dict": state, "optimizer": optimizer, "lr_base": 1e-4},
    ):
        torch_files.write(path, content, is_archive)
        found = read_tensors(path)
        assert found.keys() == arrays.keys()
        for name, array in arrays.items():
            np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize("is_archive", [True, False])
def test_tensors_of_one_storage_share_its_memory(tmp_path, is_archive):
    numbers = np.arange(10**6, dtype="float32")
    storage = torch_files.FloatStorage("0", numbers)
    state = {f"{i}": torch_files.Tensor(storage, (10**6,), (1,)) for i in range(1000)}
    torch_files.write(tmp_path / "views.pth", state, is_archive)
    tracemalloc.start()  # which NumPy tells what it allocates
    found = read_tensors(tmp_path / "views.pth")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * numbers.nbytes
    assert len(found) == 1000
    np.testing.assert_array_equal(found["999"], numbers)


class Evil:
    def __reduce__(self):
        return print, ("this must not run",)


@pytest.mark.parametrize("is_archive", [True, False])
def test_other_content_is_refused(tmp_path, is_archive, capsys):
    path = tmp_path / "epoch13.pkl"
    storage = torch_files.FloatStorage("0", np.zeros(6, "float32"))
    outside = torch_files.Tensor(storage, (3, 2), (2, 1), 1)
    expanded = torch_files.Tensor(storage, (10**6, 10**6), (0, 0))
    for content, problem in (
        ({"a": Evil()}, r"it holds a (builtins|__builtin__)\.print"),
        ({"a": outside}, r"a tensor of shape \[3, 2\] is not in the file"),
        ({"a": expanded}, r"a tensor of shape .* is not in the file"),
        ({"a": 3}, "'a' is no tensor of a state dict"),
        ([outside], "holds no state dict"),
    ):
        torch_files.write(path, content, is_archive)
        with pytest.raises(kc.InputError, match=rf"epoch13\.pkl.*{problem}"):
            read_tensors(path)
    path.write_bytes(pickle.dumps({"a": 3}))
    with pytest.raises(kc.InputError, match="it is not of PyTorch"):
        read_tensors(path)
    path.write_text("<!DOCTYPE html>")  # of a download that failed
    with pytest.raises(kc.InputError, match="read: it is no pickle, or damaged"):
        read_tensors(path)
    assert not capsys.readouterr().out
