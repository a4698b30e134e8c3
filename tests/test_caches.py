"""A cache only saves time: what is wrong in it is as if it were not there."""

import errno
import pathlib
import shutil

import pytest

from keras_caption.base.caches import Cache
from keras_caption.export import engine_cache


@pytest.fixture
def made(tmp_path):
    """A file and a folder to keep, by key."""
    (tmp_path / "file").write_text("one")
    (tmp_path / "folder" / "below").mkdir(parents=True)
    (tmp_path / "folder" / "below" / "a.json").write_text("{}")
    (tmp_path / "folder" / "b.bin").write_text("two")
    return {"one-1.pb": tmp_path / "file", "two-1": tmp_path / "folder"}


def empty(path):
    path.write_bytes(b"")


def change(path):
    path.write_bytes(path.read_bytes()[:-1] + b"?")


def replace(path):
    path.unlink()
    path.mkdir()


def remove(path):
    path.unlink()


def rename(path):
    path.rename(path.with_name("other"))


@pytest.mark.parametrize("harm", [empty, change, replace, remove, rename])
def test_what_is_harmed_is_made_anew(harm, made, tmp_path):
    cache = Cache(tmp_path / "cache", "files")
    for key, path in made.items():
        kept = cache.keep(key, path)
        assert Cache(tmp_path / "cache", "files").find(key) == {key: kept}
        for harmed in [kept] if kept.is_file() else sorted(kept.rglob("*.*")):
            harm(harmed)
            assert cache.find(key) == {}
            kept = cache.keep(key, path)
            assert cache.find(key) == {key: kept}
    assert cache.find().keys() == made.keys()


def test_what_another_process_keeps_meanwhile_is_found(made, tmp_path, monkeypatch):
    cache, other = (Cache(tmp_path / "cache", "files") for _ in range(2))
    rename, kept = pathlib.Path.rename, []

    def rename_later(path, target):
        if not kept:
            kept.append(None)
            kept.append(other.keep("two-1", made["two-1"]))
        return rename(path, target)

    monkeypatch.setattr(pathlib.Path, "rename", rename_later)
    assert cache.keep("two-1", made["two-1"]) == kept[1] == cache.find()["two-1"]
    assert [x.name for x in cache.folder.iterdir()] == [kept[1].name]
    assert cache.keep("one-1.pb", made["one-1.pb"])


def test_an_entry_of_another_key_is_none(made, tmp_path):
    cache = Cache(tmp_path / "cache", "files")
    kept = cache.keep("one-1.pb", made["one-1.pb"])
    kept.rename(kept.with_name(kept.name.replace("one", "two")))
    (cache.folder / "notes.txt").write_text("of a user")
    assert cache.find() == {}
    assert [path.name for path in cache.folder.iterdir()] == ["notes.txt"]


def test_what_cannot_be_kept_is_said_once(made, tmp_path, monkeypatch, capsys):
    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    cache = Cache(made["one-1.pb"] / "cache", "files")  # whose parent is a file
    for key, path in made.items():
        assert cache.keep(key, path) is None
    assert cache.find() == {}
    assert capsys.readouterr().err.count("cannot keep files (Not a directory)") == 1
    monkeypatch.setattr(shutil, "copyfile", fail)
    cache = Cache(tmp_path / "full", "files")
    assert cache.keep("one-1.pb", made["one-1.pb"]) is None
    assert "(No space left on device)" in capsys.readouterr().err
    assert [*cache.folder.iterdir()] == []
    assert Cache(None, "files").keep("one-1.pb", made["one-1.pb"]) is None


def test_a_kept_engine_is_converted_again_if_it_is_harmed(
    tmp_path, monkeypatch, capsys
):
    written = []

    def write(folder):
        written.append(folder)
        folder.mkdir()
        (folder / "model.json").write_text("{}")
        (folder / "model.tflite").write_bytes(b"weights")

    def kept(folder, key):
        cache = Cache(folder, "files for engines")
        monkeypatch.setattr(engine_cache, "engines", lambda: cache)
        return engine_cache.kept("model", "litert", key, write)

    file = kept(tmp_path / "cache", "0")
    assert kept(tmp_path / "cache", "0") == file
    assert len(written) == 1
    for harmed in file, file.with_name("model.json"):
        remove(harmed)
        file = kept(tmp_path / "cache", "0")
        assert file.read_bytes() == b"weights"
    assert len(written) == 3
    (tmp_path / "file").touch()
    file = kept(tmp_path / "file", "1")  # which is no folder
    assert file.read_bytes() == b"weights"
    assert capsys.readouterr().err.count("cannot keep files for engines (") == 1
    assert kept(tmp_path / "file", "1") == file  # of this process
    assert len(written) == 4
