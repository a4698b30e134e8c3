"""The command `translate`, as a person runs it."""

import io
import types

import keras
import pytest

import keras_caption as kc
from keras_caption.commands import main
from keras_caption.commands.translate import show


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    keras.utils.set_random_seed(1)
    tokenizer = kc.text.CharacterTokenizer("abc")
    model = kc.models.LSTMTranslator(tokenizer, tokenizer, num_layers=1, model_dim=8)
    path = tmp_path_factory.mktemp("translate") / "model.keras"
    model.save(path)
    return path


def call(capsys, *arguments):
    with pytest.raises(SystemExit) as end:
        main(["translate", *map(str, arguments)])
    return end.value.code, *capsys.readouterr()


def test_sentences_files_and_pipes_are_translated_alike(
    saved, tmp_path, capsys, monkeypatch
):
    sentences = ["ab", "c", "狗 a"]
    code, by_argument, _ = call(capsys, saved, *sentences)
    assert code == 0
    model = kc.models.load(saved)
    expected = model.translate(
        sentences,
        beam_size=4,
        max_length=64,
        length_penalty=0.6,
        length_ratio=2.0,
        length_margin=10,
    )
    assert by_argument.splitlines() == [kc.text.one_line(x) for x in expected]
    content = "\n".join(["ab", "", "c\r", "a" * 10_000, "狗 a"])
    (tmp_path / "in").write_bytes(content.encode("utf-8-sig"))
    output = tmp_path / "out"
    code, _, errors = call(
        capsys, saved, "--input", tmp_path / "in", "--output", output
    )
    assert code == 1
    assert "unknown words only" not in errors
    assert "in, line 4 has more than 1,024 tokens and is not translated." in errors
    assert "5/5 lines (100%)" in errors
    a, b, c = by_argument.splitlines()
    assert output.read_text().splitlines() == [a, "", b, "", c]
    monkeypatch.setattr(
        "sys.stdin", types.SimpleNamespace(buffer=io.BytesIO(b"ab\n\nc\n"))
    )
    code, piped, errors = call(capsys, saved, "--n_best", 2)
    assert "unknown words only" not in errors
    rows = [line.split("\t") for line in piped.splitlines()]
    assert [row[0] for row in rows] == ["1", "1", "3", "3"]
    assert [rows[0][2], rows[2][2]] == [a, b]
    assert float(rows[0][1]) < 0
    (tmp_path / "in").write_text("ab\n狗\n猫 狗\n")
    code, by_file, errors = call(capsys, saved, "--input", tmp_path / "in")
    assert (code, len(by_file.splitlines())) == (0, 3)
    assert "note: 2 of the sentences have unknown words only: " in errors
    assert errors.endswith("in, line 2, for instance.\n")


def test_a_terminal_shows_translations_while_they_grow(saved, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "4")
    code, printed, errors = call(
        capsys, saved, "--stream", "ab", "", "a" * 2000, "\u732b", "--max_length=9"
    )
    assert code == 1
    assert "Sentence 3 has more than 1,024 tokens and is not translated." in errors
    assert "Sentence 4, for instance" in errors
    texts = kc.models.load(saved).generate(["ab"], stream=True, max_length=9)
    show(text for [text] in texts)
    assert printed.startswith(f"{capsys.readouterr().out}\n\n")
    show(["ab", "abcdefgh", "xy", "x\nyz"])
    assert capsys.readouterr().out == "abcdefgh\r\x1b[1A\x1b[Jxy\r\x1b[Jx yz\n"


def test_sentences_that_options_leave_no_translation_are_skipped(
    saved, tmp_path, capsys, monkeypatch
):
    options = ["--length_ratio=1", "--length_margin=0", "--required=abc"]
    (tmp_path / "in").write_text("a\nabcabc\n")
    code, printed, errors = call(capsys, saved, "--input", tmp_path / "in", *options)
    assert code == 1
    first, second, _ = printed.split("\n")
    assert (first, "abc" in second) == ("", True)
    assert "in, line 1 has no translation: `required`, `length_ratio` and a" in errors
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    code, printed, errors = call(capsys, saved, "--stream", "a", "abcabc", *options)
    assert (code, "abc" in printed) == (1, True)
    assert "Sentence 1 has no translation: `required`, `length_ratio` and a" in errors
    code, _, errors = call(capsys, saved, "a", "--required=abc", "--forbidden=b")
    assert code == "error: `required`: 'abc' is `forbidden`."


def test_mistakes_are_one_sentence_and_write_nothing(
    saved, tmp_path, capsys, captioner
):
    captioner.save(tmp_path / "captioner.keras")
    (tmp_path / "latin").write_bytes(b"ab\nf\xfcr\n")
    output = tmp_path / "out"
    for arguments, message in [
        ([saved, "--input", tmp_path / "latin"], "line 2, is not UTF-8 at byte 2"),
        ([saved, "--input", tmp_path / "no"], "cannot be read: No such"),
        ([saved, "a", "--input", tmp_path / "latin"], "not both"),
        ([saved, "--beam_size=0", "a"], "argument --beam_size: Input"),
        ([saved, "--n_best=0", "a"], "argument --n_best: Input"),
        (
            [saved, "--stream", "a"],
            "--stream cannot be combined with --output",
        ),
        ([",", "a"], "argument model: there is no name in ','"),
        ([tmp_path / "captioner.keras", "a"], "translates no sentences"),
        ([tmp_path / "none", "a"], "There is no saved"),
    ]:
        code, _, _ = call(capsys, *arguments, "--output", output)
        assert message in code
        assert not output.exists()
    content = saved.read_bytes()
    code, _, _ = call(capsys, saved, "a", "--output", saved)
    assert "exists already and is not replaced" in code
    assert saved.read_bytes() == content
    with pytest.raises(SystemExit, match="use keras-caption translate"):
        main(["caption", __file__, "--model", str(saved)])


def test_a_file_a_run_and_a_preset_are_models_alike(saved, tmp_path, capsys):
    model = kc.models.load(saved)
    model.save(tmp_path / "run" / "best.keras")
    model.save_to_preset(tmp_path / "preset")
    outputs = {
        call(capsys, path, "ab", "--beam_size=1", "--max_length=4")[:2]
        for path in (saved, tmp_path / "run", tmp_path / "preset")
    }
    assert len(outputs) == 1
    assert outputs.pop()[0] == 0
    code, _, _ = call(capsys, tmp_path, "ab")
    assert "no best.keras, as a run has, no model.weights.h5, as a preset has" in code
