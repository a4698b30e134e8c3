"""Files are written completely or not at all, and never over other files."""

import errno
import os
import subprocess
import sys

import pytest

import keras_caption as kc
from keras_caption.base.atomic import (
    creating,
    exclusive,
    exclusive_file,
    naming,
    replacing,
    write_json,
)
from keras_caption.formats.json_files import read_json

EXPORT = ("saved_model.pb", "variables/variables.*")


def export(path):
    with replacing(path, EXPORT) as partial:
        (partial / "variables").mkdir(parents=True)
        (partial / "variables/variables.index").write_text("0")
        (partial / "saved_model.pb").write_text(str(path))


def files(folder):
    return sorted(str(f.relative_to(folder)) for f in folder.rglob("*") if f.is_file())


@pytest.mark.parametrize("write", [export, lambda path: write_json(path, [])])
@pytest.mark.parametrize(
    "existing",
    ["best.keras", "1/saved_model.pb", "variables/variables.index", "saved_model.pb/x"],
)
def test_a_folder_of_other_files_is_not_replaced(tmp_path, existing, write):
    run = tmp_path / "run"
    (run / existing).parent.mkdir(parents=True)
    (run / existing).write_text("kept")
    with pytest.raises(kc.InputError, match=r"run is not"):
        write(run)
    assert files(tmp_path) == [f"run/{existing}"]


def test_a_writer_replaces_what_it_wrote(tmp_path):
    for _ in range(2):
        export(tmp_path / "1")
        write_json(tmp_path / "a.json", [])
    whole = ["1/saved_model.pb", "1/variables/variables.index", "a.json"]
    assert files(tmp_path) == whole
    (tmp_path / "1/notes.txt").write_text("mine")
    with pytest.raises(kc.InputError, match=r"such as notes\.txt"):
        export(tmp_path / "1")
    with pytest.raises(kc.InputError, match=r"a\.json is not a folder"):
        export(tmp_path / "a.json")
    with pytest.raises(kc.InputError, match="null is not a file"):
        write_json("/dev/null", [])


def test_a_failed_writer_keeps_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    (tmp_path / ".a.partial.txt").write_text("of another")

    def write():
        with replacing(path) as partial:
            partial.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert path.read_text() == "old"
    assert files(tmp_path) == [".a.partial.txt", "a.txt"]


def test_two_writers_share_no_partial_file(tmp_path):
    path = tmp_path / "a.txt"
    with replacing(path) as first:
        first.write_text("first")
        with replacing(path) as second:
            second.write_text("second")
        assert path.read_text() == "second"
    assert path.read_text() == "first"


def test_the_mode_is_that_of_a_new_file_and_links_are_followed(tmp_path):
    (tmp_path / "link.json").symlink_to(tmp_path / "a.json")
    before = os.umask(0o027)
    try:
        write_json(tmp_path / "link.json", [])
    finally:
        os.umask(before)
    assert (tmp_path / "a.json").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "link.json").is_symlink()


def test_one_process_at_a_time_writes_to_a_folder(tmp_path):
    code = (
        "import filelock, sys\n"
        "with filelock.FileLock(sys.argv[1]): print('locked', flush=True), input()"
    )
    folder = tmp_path / "run"
    folder.mkdir()
    other = subprocess.Popen(
        [sys.executable, "-c", code, folder / ".lock"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    other.stdout.readline()
    try:
        with pytest.raises(kc.InputError, match=r"writing to .*run"), exclusive(folder):
            pass
    finally:
        other.kill()
        other.communicate()
    with exclusive(folder):  # the other process was killed
        (folder / "a.txt").write_text("")
    assert files(folder) == [".lock", "a.txt"]


def test_a_folder_left_empty_is_removed(tmp_path):
    path = tmp_path / "deep" / "er" / "run"
    for write in exclusive, exclusive_file, replacing:
        with pytest.raises(ValueError, match="wrong"), write(path):
            raise ValueError("wrong")
        assert list(tmp_path.iterdir()) == []
    path = tmp_path / "file"
    path.touch()
    with pytest.raises(kc.InputError, match="file is not a folder"), exclusive(path):
        pass


def test_a_new_file_replaces_none(tmp_path):
    path = tmp_path / "new" / "a.txt"
    with creating(path) as partial:
        partial.write_text("a")
        with pytest.raises(kc.InputError, match=r"process is writing to .*a\.txt"):
            creating(tmp_path / "new" / ".." / "new" / "a.txt").__enter__()
    with pytest.raises(kc.InputError, match="exists already"), creating(path):
        pass
    later = tmp_path / "b.txt"

    def write():
        with creating(later) as partial:
            partial.write_text("b")
            later.write_text("of another")

    with pytest.raises(kc.InputError, match="exists already"):
        write()
    assert later.read_text() == "of another"
    assert files(tmp_path) == ["b.txt", "new/a.txt"]


def test_a_lock_of_a_file_leaves_nothing(tmp_path):
    with exclusive_file(tmp_path / "deep" / "er" / "a.csv"):
        assert files(tmp_path) == ["deep/er/.a.csv.lock"]
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "a").touch()
    with (
        pytest.raises(kc.InputError, match=r"a is not a folder"),
        exclusive_file(tmp_path / "a" / "b.csv"),
    ):
        pass


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
@pytest.mark.filterwarnings("ignore:flock not supported")
def test_a_file_system_without_locks_has_files_for_them(tmp_path, monkeypatch, number):
    def flock(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", flock)
    folder, path = tmp_path / "run", tmp_path / "deep" / "a.csv"
    with exclusive(folder), exclusive_file(path):
        (folder / "a.txt").touch()
        for lock, name in (exclusive, folder), (exclusive_file, path):
            with pytest.raises(kc.InputError, match="process is writing to"):
                lock(name).__enter__()
    assert files(tmp_path) == ["run/a.txt"]
    # A holder that was killed, which no process of this machine is any longer.
    dead = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    with exclusive_file(path):
        marker = (path.parent / ".a.csv.lock").read_text()
    path.parent.mkdir()
    held = path.parent / ".a.csv.lock"
    held.write_text(marker.replace(str(os.getpid()), str(dead.pid)))
    dead.kill()
    dead.wait()
    with exclusive_file(path):
        pass


def test_errors_of_writing_name_the_file(tmp_path):
    path = tmp_path / "a.csv"
    full = r"^\[Errno 28\] No space left on device: '.*a\.csv'$"
    with pytest.raises(OSError, match=full), naming(path):
        raise OSError(28, "Can't write data (file write failed:\n, errno = 28)")
    with pytest.raises(OSError, match=r"a\.csv cannot be written: HDF"), naming(path):
        raise OSError("HDF5: write failed")
    with pytest.raises(OSError, match=r"^.*a\.csv is full$"), naming(path):
        raise OSError(f"{path} is full")
    with pytest.raises(OSError, match="'other'"), naming(path), open("other"):
        pass
    with pytest.raises(OSError, match=r"a\.csv'$"), replacing(path) as partial:
        raise OSError(28, "No space left on device", str(partial))


def test_json_of_names_that_are_not_utf_8_can_be_read(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, {"caf\udce9.jpg": ["\U0001f436 caf\udce9", 1.5]})
    found = read_json(path, dict[str, list[str | float]])
    assert found == {r"caf\udce9.jpg": ["\U0001f436 caf\\udce9", 1.5]}
