"""Translators in CTranslate2: the same log-probabilities and translations."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_caption as kc
from keras_caption.commands import main
from keras_caption.text import BOS, EOS

ctranslate2 = pytest.importorskip("ctranslate2")
WORDS = [f"w{i}" for i in range(12)]
SIZES = {
    "num_layers": 1,
    "decoder_layers": 2,
    "model_dim": 16,
    "num_heads": 2,
    "feedforward_dim": 32,
    "dropout": 0.0,
}


@pytest.mark.parametrize("shared", [True, False])
def test_log_probabilities_and_translations_are_ours(shared, tmp_path):
    keras.utils.set_random_seed(1)
    source = kc.text.WordTokenizer(WORDS)
    target = source if shared else kc.text.WordTokenizer([*WORDS, "w12"])
    model = kc.models.TransformerTranslator(
        source, target, shared_embeddings=shared, **SIZES
    )
    model.save(tmp_path / "model.keras")
    tokens = np.random.default_rng(0).integers(4, 16, (2, 20, 5)).astype("int32")
    sources, targets = (
        np.pad(x, ((0, 0), (0, 1)), constant_values=EOS) for x in tokens
    )
    before = np.pad(targets[:, :-1], ((0, 0), (1, 0)), constant_values=BOS)
    logits = np.array(model({"source": sources, "tokens": before}))
    log_probs = np.array(ops.log_softmax(logits))
    expected = np.take_along_axis(log_probs, targets[..., None], axis=-1)[..., 0]
    texts = [[[str(i) for i in row] for row in side.tolist()] for side in tokens]
    for precision, tolerance in (("float32", 1e-5), ("int8", 0.2)):
        folder = str(tmp_path / precision)
        command = [
            *("export", str(tmp_path / "model.keras"), "--format=ctranslate2"),
            *(f"--output={folder}", f"--precision={precision}"),
        ]
        with pytest.raises(SystemExit) as end:
            main(command)
        assert not end.value.code
        engine = ctranslate2.Translator(folder, intra_threads=1)
        scores = [result.log_probs for result in engine.score_batch(*texts)]
        np.testing.assert_allclose(scores, expected, atol=tolerance)
        if precision == "int8":
            continue
        sentences = [source.to_text(ids) for ids in tokens[0].tolist()]
        for width in (1, 3):
            results = engine.translate_batch(
                texts[0],
                beam_size=width,
                length_penalty=0,
                max_decoding_length=6,
                min_decoding_length=0,
                return_scores=True,
                suppress_sequences=[["<pad>"], ["<bos>"]],
                disable_unk=True,
            )
            options = {"beam_size": width, "max_length": 6, "renormalize": True}
            options |= {"length_penalty": 0.0} if width > 1 else {}
            ours = model.generate(sentences, n=width, **options)
            for result, best in zip(results, ours, strict=True):
                found = [int(token) for token in result.hypotheses[0]]
                _, score = best[0]
                assert result.scores[0] == pytest.approx(score, abs=1e-4)
                ties = [text for text, other in best if score - other < 1e-4]
                assert model.target.to_text(found) in ties


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"input_area": 2}, "plain attention only.* has a memory, AreaMemory"),
        ({"query_norm": "instance"}, "has a query norm, InstanceNormalization"),
    ],
)
def test_other_attention_is_refused(options, problem, tmp_path):
    model = kc.models.TransformerTranslator(
        source_size=9, target_size=9, **SIZES, **options
    )
    with pytest.raises(kc.InputError, match=problem):
        kc.serving.export_ctranslate2(model, tmp_path / "engine")
    assert not (tmp_path / "engine").exists()


def test_other_models_and_formats_are_refused(captioner, tmp_path):
    captioner.save(tmp_path / "model.keras")
    for more, problem in (
        (
            ["--format=ctranslate2"],
            "Transformers that translate, and 'ngsan' is a NGSAN",
        ),
        (
            ["--format=saved_model", "--precision=int8"],
            "saved_model has no --precision",
        ),
    ):
        with pytest.raises(SystemExit, match=problem):
            main(
                [
                    *("export", str(tmp_path / "model.keras")),
                    *(f"--output={tmp_path / 'engine'}", *more),
                ]
            )
