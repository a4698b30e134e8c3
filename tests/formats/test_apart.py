"""Files whose libraries may end their process, take all memory or never end."""

import gc
import os
import signal

import pytest

import keras_caption as kc
from keras_caption.formats import apart


def open_file(path):
    """Opens what does as it is asked."""

    def do(what, amount=0):
        if what == "allocate":
            return len(bytes(amount))
        if what == "signal":
            os.kill(os.getpid(), amount)
        while what == "loop":
            pass
        return f"{path}: {what}"

    return do


def open_endless(path):
    while True:
        pass


def open_none(path):
    os._exit(3)


def test_a_file_harms_no_other_call(tmp_path, monkeypatch):
    monkeypatch.setattr(apart, "MEMORY", 2**30)
    file = apart.Apart(open_file, tmp_path)
    assert file("a") == f"{tmp_path}: a"
    with pytest.raises(kc.InputError, match="cannot be read: MemoryError"):
        file("allocate", 2**31)
    assert file("allocate", 2**20) == 2**20
    with pytest.raises(kc.InputError, match="reading it ended the process by SIGBUS"):
        file("signal", signal.SIGBUS)
    monkeypatch.setattr(apart, "SECONDS", 1.0)
    with pytest.raises(kc.InputError, match="it was not read within 1 s"):
        apart.Apart(open_endless, tmp_path)
    with pytest.raises(kc.InputError, match=r"cannot be read: (it|reading it)"):
        apart.Apart(open_none, tmp_path)
    monkeypatch.setattr(apart, "SECONDS", 60.0)
    assert file("b") == f"{tmp_path}: b"  # by a new process
    process = file._process
    del file
    gc.collect()
    assert process.wait(60) is not None
