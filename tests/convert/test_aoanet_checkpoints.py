"""The authors' AoANet, reimplemented in NumPy, and checkpoints of it."""

import argparse
import json
import pickle

import keras
import numpy as np
import pytest
from keras import ops
from keras_caption.convert import convert_aoanet, read_infos

import keras_caption as kc
from keras_caption.commands import main

DIM, EMBEDDING, HEADS, REGION_DIM = 16, 12, 4, 10
WORDS = [f"w{i}" for i in range(14)] + ["UNK"] + [f"x{i}" for i in range(3)]
OPTIONS = {
    "rnn_size": DIM,
    "input_encoding_size": EMBEDDING,
    "num_heads": HEADS,
    "att_feat_size": REGION_DIM,
    "use_multi_head": 2,
    "refine": 1,
    "decoder_type": "AoA",
    "drop_prob_lm": 0.5,
}


@pytest.fixture
def tensors(rng):
    shapes = {"att_embed.0": (DIM, REGION_DIM), "ctx2att": (2 * DIM, DIM)}
    shapes |= {"logit": (len(WORDS) + 1, DIM), "core.att2ctx.0": (2 * DIM, 2 * DIM)}
    shapes["core.attention.linears.0"] = (DIM, DIM)
    norms = ["refiner.norm", "core.attention.norm"]
    for i in range(6):
        name = f"refiner.layers.{i}"
        shapes |= {f"{name}.self_attn.linears.{j}": (DIM, DIM) for j in range(3)}
        shapes[f"{name}.self_attn.aoa_layer.0"] = (2 * DIM, 2 * DIM)
        norms.append(f"{name}.sublayer.0.norm")
    tensors = {"embed.0.weight": rng.normal(size=(len(WORDS) + 1, EMBEDDING))}
    for name, shape in shapes.items():
        tensors[f"{name}.weight"] = rng.normal(size=shape) / shape[1] ** 0.5
        tensors[f"{name}.bias"] = 0.1 * rng.normal(size=shape[0])
    for name in norms:
        tensors[f"{name}.a_2"] = 1 + 0.1 * rng.normal(size=DIM)
        tensors[f"{name}.b_2"] = 0.1 * rng.normal(size=DIM)
    for part, width in (("ih", EMBEDDING + DIM), ("hh", DIM)):
        weight = rng.normal(size=(4 * DIM, width)) / width**0.5
        tensors[f"core.att_lstm.weight_{part}"] = weight
        tensors[f"core.att_lstm.bias_{part}"] = 0.1 * rng.normal(size=4 * DIM)
    tensors["logit.weight"] *= 3
    tensors["logit.bias"][1 + WORDS.index("UNK")] = -20  # never the most likely
    return {name: tensor.astype("float32") for name, tensor in tensors.items()}


class Official:
    """The forward pass of the authors' model for one image, in float64."""

    def __init__(self, tensors, regions):
        self.w = {name: tensor.astype("float64") for name, tensor in tensors.items()}
        x = np.maximum(self.linear("att_embed.0", regions.astype("float64")), 0)
        for i in range(6):
            name = f"refiner.layers.{i}"
            q = self.norm(f"{name}.sublayer.0.norm", x)
            qkv = [self.linear(f"{name}.self_attn.linears.{j}", q) for j in range(3)]
            attended = self.attend(*qkv)
            both = np.concatenate([attended, q], axis=-1)
            x = x + self.glu(self.linear(f"{name}.self_attn.aoa_layer.0", both))
        x = self.norm("refiner.norm", x)
        self.mean = x.mean(axis=0)
        self.values, self.keys = np.split(self.linear("ctx2att", x), 2, axis=-1)

    def linear(self, name, x):
        return x @ self.w[f"{name}.weight"].T + self.w[f"{name}.bias"]

    def norm(self, name, x):
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / (x.std(-1, ddof=1, keepdims=True) + 1e-6)
        return self.w[f"{name}.a_2"] * scaled + self.w[f"{name}.b_2"]

    def attend(self, queries, keys, values):
        heads = [np.split(x, HEADS, axis=-1) for x in (queries, keys, values)]
        out = []
        for q, k, v in zip(*heads, strict=True):
            weights = np.exp(q @ k.T / (DIM // HEADS) ** 0.5)
            out.append(weights / weights.sum(-1, keepdims=True) @ v)
        return np.concatenate(out, axis=-1)

    def glu(self, x):
        information, gate = np.split(x, 2, axis=-1)
        return information / (1 + np.exp(-gate))

    def start(self):
        return np.zeros((3, DIM))

    def beams(self, size, length):
        """The best caption of the authors' beam search, as tokens without EOS."""
        live, done = [(0.0, [], 0, self.start())], []
        for index in range(length):
            candidates = []
            for score, words, last, state in live:
                log_probs, state = self.step(last, state)
                for word in np.argsort(-log_probs)[:size].tolist():
                    total = score + log_probs[word]
                    candidates.append((total, [*words, word], word, state))
            best = sorted(candidates, key=lambda beam: -beam[0])[:size]
            ends = [beam[2] == 0 or index == length - 1 for beam in best]
            done += [beam for beam, end in zip(best, ends, strict=True) if end]
            live = [beam for beam, end in zip(best, ends, strict=True) if not end]
        words = max(done, key=lambda beam: beam[0])[1]
        return [word for word in words if word != 0]

    def step(self, token, state):
        """Log-probabilities after a token, and the state (h, c, context)."""
        hidden, cell, context = state
        word = np.maximum(self.w["embed.0.weight"][token], 0)
        x = np.concatenate([word, self.mean + context])
        name = "core.att_lstm"
        gates = self.w[f"{name}.weight_ih"] @ x + self.w[f"{name}.bias_ih"]
        gates += self.w[f"{name}.weight_hh"] @ hidden + self.w[f"{name}.bias_hh"]
        i, f, g, o = np.split(gates, 4)
        i, f, o = (1 / (1 + np.exp(-gate)) for gate in (i, f, o))
        cell = f * cell + i * np.tanh(g)
        hidden = o * np.tanh(cell)
        query = self.norm("core.attention.norm", hidden[None])
        query = self.linear("core.attention.linears.0", query)
        attended = self.attend(query, self.keys, self.values)[0]
        both = np.concatenate([attended, hidden])
        context = self.glu(self.linear("core.att2ctx.0", both))
        logits = self.linear("logit", context)
        log_probs = logits - np.log(np.exp(logits).sum())
        return log_probs, np.stack([hidden, cell, context])


def sentence(tokens):
    return " ".join(WORDS[token - 1] for token in tokens)


def test_a_converted_checkpoint_computes_the_same(tensors, rng):
    model = convert_aoanet(tensors, WORDS, OPTIONS)
    regions = rng.normal(size=(3, 6, REGION_DIM)).astype("float32")
    mask = np.arange(6) < np.array([[6], [4], [1]])
    images = {"regions": regions, "boxes": np.zeros((3, 6, 4)), "region_mask": mask}
    captions = model.generate(images, beam_size=1, max_length=8)
    beams = {
        size: model.generate(images, beam_size=size, max_length=8) for size in (2, 5)
    }
    ours = [model.vocabulary.words.index(word) for word in WORDS if word != "UNK"]
    theirs = [i for i, word in enumerate(WORDS, start=1) if word != "UNK"]
    for image in range(3):
        official = Official(tensors, regions[image][mask[image]])
        token, state, generated, rows = 0, official.start(), [], []
        for _ in range(8):
            log_probs, state = official.step(token, state)
            rows.append(log_probs)
            token = int(log_probs.argmax())
            if token == 0:
                break
            generated.append(token)
        assert captions[image] == sentence(generated)
        for size, captions_of_size in beams.items():
            assert captions_of_size[image] == sentence(official.beams(size, 8))
        shown = [1, *(ours[theirs.index(token)] for token in generated)][: len(rows)]
        one = {name: value[image : image + 1] for name, value in images.items()}
        logits = model({**one, "tokens": np.array([shown], "int32")})
        log_probs = np.array(ops.log_softmax(logits))[0]
        expected = np.array(rows)
        np.testing.assert_allclose(log_probs[:, ours], expected[:, theirs], atol=1e-4)
        np.testing.assert_allclose(log_probs[:, 2], expected[:, 0], atol=1e-4)  # EOS


@pytest.mark.parametrize("infos", ["pkl", "json"])
def test_the_command_converts_files(tensors, tmp_path, infos, monkeypatch, capsys):
    np.savez(tmp_path / "model.npz", **tensors)
    vocabulary = {str(i): word for i, word in enumerate(WORDS, start=1)}
    path = tmp_path / f"infos.{infos}"
    if infos == "json":
        path.write_text(json.dumps({"vocab": vocabulary, "opt": OPTIONS}))
    else:
        # As the authors' code writes it: the score is a NumPy number.
        saved = {
            "vocab": vocabulary,
            "opt": argparse.Namespace(**OPTIONS),
            "best_val_score": np.float64(1.178),
        }
        path.write_bytes(pickle.dumps(saved, protocol=2))
    monkeypatch.chdir(tmp_path)
    options = ["--infos", path.name, "--output", "model.keras"]
    with pytest.raises(SystemExit) as end:
        main(["convert", "aoanet", "model.npz", *options])
    assert end.value.code is None
    assert "21 words" in capsys.readouterr().out
    model = keras.models.load_model(tmp_path / "model.keras")
    direct = convert_aoanet(tensors, WORDS, OPTIONS)
    for a, b in zip(model.get_weights(), direct.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_tensors_that_do_not_fit_are_named(tensors):
    del tensors["refiner.norm.a_2"]
    tensors["logit.bias"] = tensors["logit.bias"][1:]
    tensors["fc_embed.0.weight"] = np.zeros((2, 2))
    with pytest.raises(kc.InputError) as caught:
        convert_aoanet(tensors, WORDS, OPTIONS)
    for problem in (
        "refiner.norm.a_2 is missing",
        "logit.bias has shape (18,), not (19,)",
        "fc_embed.0.weight is unknown",
    ):
        assert problem in str(caught.value)
    with pytest.raises(kc.InputError, match="Only models with decoder_type=AoA"):
        convert_aoanet(tensors, WORDS, {**OPTIONS, "decoder_type": "LSTM"})
    with pytest.raises(kc.InputError, match=r"with caption_model=aoa .*=transformer"):
        convert_aoanet(tensors, WORDS, {"caption_model": "transformer"})
    # A model of terabytes, which the tensors do not have.
    with pytest.raises(kc.InputError, match=r"att_embed\.0\.weight should have shape"):
        convert_aoanet(tensors, WORDS, {**OPTIONS, "rnn_size": 10**8})
    with pytest.raises(kc.InputError, match="`model_dim`: Input should be a valid int"):
        convert_aoanet(tensors, WORDS, {**OPTIONS, "rnn_size": None})


class Evil:
    def __reduce__(self):
        return print, ("this must not run",)


def test_pickles_may_hold_plain_data_only(tmp_path, capsys):
    path = tmp_path / "infos.pkl"
    path.write_bytes(pickle.dumps({"vocab": Evil(), "opt": {}}))
    with pytest.raises(kc.InputError, match=r"it holds a builtins\.print"):
        read_infos(path)
    assert not capsys.readouterr().out
    path.write_bytes(b"\x80\x04nonsense")
    with pytest.raises(kc.InputError, match=r"infos\.pkl cannot be read"):
        read_infos(path)
    path.write_bytes(pickle.dumps({"vocab": {}}))
    with pytest.raises(kc.InputError, match="contains no infos"):
        read_infos(path)
