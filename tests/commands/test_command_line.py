"""How commands end, and what they make of the terminal and of the command line."""

import functools
import io
import os
import pathlib
import signal
import subprocess
import sys
import time
import tomllib

import pytest
from absl import logging
from conftest import PROJECT
from PIL import Image

import keras_caption as kc
import keras_caption_cli
from keras_caption.base.atomic import replacing
from keras_caption.commands import command_line, main
from keras_caption.commands.skipped import Skipped
from keras_caption.features.photos import read_photo
from keras_caption.formats.splits import given_split


def status(command):
    with pytest.raises(SystemExit) as end:
        command_line.start(command, [])
    return end.value.code


def raising(error):
    def command(_):
        raise error

    return command


@pytest.fixture
def interruptible():
    """Hears interruptions, which a shell's background processes ignore."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interruption_is_one_sentence(capsys):
    def resumable(_):
        with command_line.continuing():
            raise KeyboardInterrupt

    def converted(_):
        with command_line.continuing("it continues"):
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:  # as TensorFlow does
                raise TypeError("unknown") from None

    class Collected:
        def __del__(self):  # from where no error leaves
            signal.raise_signal(signal.SIGINT)

    def lost(_):
        Collected()
        time.sleep(5)

    commands = [raising(KeyboardInterrupt()), resumable, converted, lost]
    assert [status(command) for command in commands] == [130, 130, 130, 130]
    assert capsys.readouterr().err.splitlines() == [
        "Interrupted.",
        "Interrupted: the same command continues.",
        "Interrupted: it continues.",
        "Interrupted.",
    ]
    assert status(raising(kc.InputError("No."))) == "error: No."


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_that_ends_leaves_no_partial_file(name, tmp_path, capsys):
    number = getattr(signal, name)

    def writing(_):
        with command_line.continuing(), replacing(tmp_path / "run") as partial:
            partial.write_text("half")
            signal.raise_signal(number)

    ignored = signal.signal(number, signal.SIG_IGN)  # as `nohup` does
    try:
        assert status(writing) is None
        signal.signal(number, signal.SIG_DFL)
        (tmp_path / "run").unlink()
        assert status(writing) == 128 + number
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, ignored)
    assert capsys.readouterr().err == "Interrupted: the same command continues.\n"
    assert not [*tmp_path.iterdir()]


def test_an_interruption_of_the_imports_is_one_sentence(monkeypatch, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    def program(_):
        with monkeypatch.context() as context:
            context.setattr("builtins.__import__", interrupted)
            keras_caption_cli.main()

    assert status(program) == 130
    assert capsys.readouterr().err == "Interrupted.\n"
    monkeypatch.setattr("importlib.import_module", interrupted)
    with pytest.raises(SystemExit) as end:
        keras_caption_cli.main(["caption"])
    assert end.value.code == 130
    assert capsys.readouterr().err == "Interrupted.\n"


# Ends where Keras or TensorFlow would be imported.
WITHOUT_TENSORFLOW = """
import os, sys
import keras_caption_cli

class Finder:
    def find_spec(name, *_):
        if name in ("keras", "tensorflow"):
            print(os.environ["TF_CPP_MIN_LOG_LEVEL"], flush=True)
            os._exit(0)

sys.meta_path.insert(0, Finder)
keras_caption_cli.main(["translate", "model.keras"])
"""


@pytest.mark.parametrize("level", [None, "3", "0"])
def test_the_log_of_tensorflow_is_shown_to_who_asks_for_it(level, monkeypatch, capfd):
    given = {} if level is None else {"TF_CPP_MIN_LOG_LEVEL": level}
    monkeypatch.setattr(os, "environ", given)
    with command_line.quiet():
        os.write(2, b"oneDNN")
    assert capfd.readouterr().err == ("oneDNN" if level == "0" else "")


def test_what_tfds_warns_of_itself_is_not_shown(caplog):
    def command(_):
        logging.warning("`%s.dtype` is deprecated.", "FeatureConnector")
        logging.warning("Disk is nearly full.")

    assert status(command) is None
    assert [x.getMessage() for x in caplog.records] == ["Disk is nearly full."]


def test_photos_that_are_too_large_are_refused_without_a_warning(tmp_path, recwarn):
    path = tmp_path / "large.png"
    Image.new("1", (10_000, 10_000)).save(path)
    assert "large.png has 10000 x 10000 pixels" in status(lambda _: read_photo(path))
    assert not recwarn.list


@pytest.mark.parametrize("given", [{}, {"TF_CPP_MIN_LOG_LEVEL": "0"}])
def test_the_log_level_is_set_before_tensorflow_is_imported(given):
    own = {k: x for k, x in os.environ.items() if k != "TF_CPP_MIN_LOG_LEVEL"}
    command = [sys.executable, "-c", WITHOUT_TENSORFLOW]
    found = subprocess.check_output(command, env={**own, **given}, text=True)
    assert found.strip() == given.get("TF_CPP_MIN_LOG_LEVEL", "3")


def test_errors_are_one_sentence(capsys):
    assert status(raising(kc.InputError("No."))) == "error: No."
    assert "'a.csv'" in status(raising(OSError(28, "No space left", "a.csv")))
    with pytest.raises(RuntimeError):
        command_line.start(raising(RuntimeError("a mistake of ours")), [])
    assert status(lambda _: None) is None
    assert not capsys.readouterr().err


def test_a_pipe_that_is_closed_ends_quietly(monkeypatch, capsys):
    for number, size in enumerate((10, 10_000_000)):  # fails at the end, and before
        reader, writer = os.pipe()
        os.close(reader)
        with open(writer, "w") as pipe, monkeypatch.context() as context:
            context.setattr(sys, "stdout", pipe)
            assert status(lambda _: print("a" * size)) == 141, number  # noqa: B023
    assert not capsys.readouterr().err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux has /dev/full")
def test_a_full_standard_output_is_named(monkeypatch):
    with open("/dev/full", "w") as full, monkeypatch.context() as context:
        context.setattr(sys, "stdout", full)
        code = status(lambda _: print("a"))
    assert code == "error: Standard output: No space left on device"


def test_characters_that_a_terminal_lacks_are_escaped(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    assert status(lambda _: print("狗 Mu\udcf1oz.png")) is None
    assert stream.buffer.getvalue() == rb"\u72d7 Mu\udcf1oz.png" + b"\n"


def test_arguments_are_checked_before_anything_else(tmp_path, capsys):
    used = tmp_path / "a.png"
    used.touch()
    option = functools.partial(functools.partial, command_line.option)
    for kind, text, message in [
        (command_line.names, ", ,", "there is no name in ', ,'"),
        (command_line.new_file, used, "exists already"),
        (command_line.new_file, tmp_path, "exists already"),
        (command_line.new_file, used / "b.csv", "is not a folder"),
        (command_line.new_figure, used, "exists already"),
        (command_line.new_figure, tmp_path / "b.foo", "should end in .png"),
        (command_line.new_figure, tmp_path / "b", "should end in .png"),
        (option("beam_size"), "0", "greater than or equal to 1"),
        (option("beam_size"), "1.5", "valid integer"),
        (option("length_penalty"), "nan", "finite number"),
    ]:
        parser = command_line.Parser("a", "b")
        parser.add_argument("--flag", type=kind)
        with pytest.raises(SystemExit) as end:
            parser.parse_args(["--flag", str(text)])
        assert "error: argument --flag: " in end.value.code
        assert message in end.value.code


def test_names_behind_two_dashes_may_begin_with_one():
    parser = command_line.Parser("a", "b")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--flag")
    for given, files in (
        (["--", "-x.jpg"], ["-x.jpg"]),
        (["--flag=1", "a.jpg", "--", "-x.jpg"], ["a.jpg", "-x.jpg"]),
        (["a.jpg", "--flag=1", "b.jpg"], ["a.jpg", "b.jpg"]),
    ):
        assert parser.parse_intermixed_args(given).files == files


def test_much_that_is_skipped_is_counted_and_listed(tmp_path, capsys):
    output = tmp_path / "captions.csv"
    path = tmp_path / "captions.csv.skipped.csv"

    def skip(count):
        skipped = Skipped.beside(output)
        for i in range(count):
            skipped.add(f"my {i}.jpg", f"my {i}.jpg is empty.")
        skipped.add("image 7", "a.tsv, line 3, has 2 columns.")
        skipped.close()
        return capsys.readouterr().err.splitlines()

    lines = skip(70)
    assert lines == [
        "skipped: my 0.jpg is empty.",
        "skipped: my 1.jpg is empty.",
        "skipped: my 2.jpg is empty.",
        "skipped: image 7: a.tsv, line 3, has 2 columns.",
        "skipped: 71 in all",
        "        70 as: my 0.jpg is empty.",
        "         1 as: image 7: a.tsv, line 3, has 2 columns.",
        f"All are listed in {path}",
    ]
    rows = path.read_text().splitlines()
    assert len(rows) == 1 + 71
    assert rows[70] == "my 69.jpg,my 69.jpg is empty."
    assert len(skip(1)) == 2
    assert not path.exists()  # all is printed
    path.write_text("mine")
    with pytest.raises(kc.InputError, match="is another file"):
        Skipped(path)


def test_the_version_is_that_of_the_package(capsys):
    with pytest.raises(SystemExit, match=r"^$"):
        main(["--version"])
    version = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    assert kc.__version__ == version["version"]
    assert capsys.readouterr().out == f"keras-caption {kc.__version__}\n"


def test_bash_completes_commands_options_and_files(capsys, tmp_path):
    with pytest.raises(SystemExit, match=r"^$"):
        main(["--print-completion", "bash"])
    script = capsys.readouterr().out
    (tmp_path / "dog.jpg").touch()
    for words, expected in [
        (["cap"], {"caption"}),
        (["caption", "--beam"], {"--beam_size"}),
        (["caption", "do"], {"dog.jpg"}),
        (["export", "dog.jpg", "--format", "ctr"], {"ctranslate2"}),
    ]:
        line = " ".join(f"'{word}'" for word in ["keras-caption", *words])
        test = f"COMP_WORDS=({line}); COMP_CWORD={len(words)}; "
        test += "_shtab_keras_caption; printf '%s\\n' \"${COMPREPLY[@]}\""
        done = subprocess.run(
            ["bash", "-c", script + test],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert set(done.stdout.split()) == expected
    with pytest.raises(SystemExit, match="--print-completion needs a shell: bash or"):
        main(["--print-completion", "fish"])


def test_paths_that_exist_are_never_split(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run, other = pathlib.Path("lr=0.001,seed=1"), pathlib.Path("seed=1")
    for folder in (run, other, pathlib.Path("a,b")):
        folder.mkdir()
        (folder / "best.keras").touch()
    for text, expected in (
        ("x.keras,y", ["x.keras", "y"]),
        (f"{run}", [f"{run}"]),
        (f"{run}/best.keras,a,b,c", [f"{run}/best.keras", "a,b", "c"]),
        (f"x,{run},{other}", ["x", f"{run}", "seed=1"]),
        (f"train={run}/best.keras,y", [f"train={run}/best.keras", "y"]),
        ("seed,=1", ["seed", "=1"]),
    ):
        assert command_line.names(text) == expected
    for text, expected in (
        ("seed=1", (None, "seed=1")),
        (f"{run}/best.keras", (None, f"{run}/best.keras")),
        (f"mine={run}", ("mine", f"{run}")),
        ("seed=2", ("seed", "2")),
        ("seed", (None, "seed")),
    ):
        assert command_line.named_path(text) == expected
    pathlib.Path("train=a.json").touch()
    assert given_split("train=a.json") == (pathlib.Path("train=a.json"), None)
    assert given_split(f"val={run}") == (run, "val")
