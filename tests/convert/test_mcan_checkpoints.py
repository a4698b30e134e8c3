"""The authors' MCAN, reimplemented in NumPy, and checkpoints of it."""

import json

import keras
import numpy as np
import pytest
import torch_files
from keras_caption.convert import convert_mcan

import keras_caption as kc
from keras_caption.commands import main

DIM, HEADS, LAYERS, EMBEDDING, REGION_DIM = 12, 3, 3, 7, 5
HIDDEN, POOLING, FUSION = 20, 9, 14
WORDS = ["is", "it", "red", "what", "whats", "t", "shirt"]
TOKENS = {"PAD": 0, "UNK": 1} | {word: i for i, word in enumerate(WORDS, start=2)}
ANSWERS = ["net", "", "yes", "no", "2", "red"]


@pytest.fixture
def tensors(rng):
    linear = {
        "img_feat_linear": (DIM, REGION_DIM),
        "proj": (len(ANSWERS), FUSION),
    }
    norms = {"proj_norm": FUSION}
    for part, attentions in (("enc", ["mhatt"]), ("dec", ["mhatt1", "mhatt2"])):
        for i in range(LAYERS):
            name = f"backbone.{part}_list.{i}"
            for attention in attentions:
                for x in ("q", "k", "v", "merge"):
                    linear[f"{name}.{attention}.linear_{x}"] = (DIM, DIM)
            linear[f"{name}.ffn.mlp.fc.linear"] = (HIDDEN, DIM)
            linear[f"{name}.ffn.mlp.linear"] = (DIM, HIDDEN)
            norms |= {f"{name}.norm{j}": DIM for j in range(1, len(attentions) + 2)}
    for name in ("attflat_img", "attflat_lang"):
        linear[f"{name}.mlp.fc.linear"] = (POOLING, DIM)
        linear[f"{name}.mlp.linear"] = (1, POOLING)
        linear[f"{name}.linear_merge"] = (FUSION, DIM)
    tensors = {"embedding.weight": rng.normal(size=(len(TOKENS), EMBEDDING))}
    for name, shape in linear.items():
        tensors[f"{name}.weight"] = 2 * rng.normal(size=shape) / shape[1] ** 0.5
        tensors[f"{name}.bias"] = 0.1 * rng.normal(size=shape[0])
    for name, size in norms.items():
        tensors[f"{name}.a_2"] = 1 + 0.1 * rng.normal(size=size)
        tensors[f"{name}.b_2"] = 0.1 * rng.normal(size=size)
    for part, width in (("ih", EMBEDDING), ("hh", DIM)):
        weight = 2 * rng.normal(size=(4 * DIM, width)) / width**0.5
        tensors[f"lstm.weight_{part}_l0"] = weight
        tensors[f"lstm.bias_{part}_l0"] = 0.1 * rng.normal(size=4 * DIM)
    return {name: tensor.astype("float32") for name, tensor in tensors.items()}


class Official:
    """The forward pass of the authors' model for one question, in float64.

    Only valid words and regions are given: there is no mask to get wrong.
    """

    def __init__(self, tensors):
        self.w = {name: tensor.astype("float64") for name, tensor in tensors.items()}

    def __call__(self, tokens, regions):
        x = self.lstm(self.w["embedding.weight"][tokens])
        y = self.linear("img_feat_linear", regions.astype("float64"))
        for i in range(LAYERS):
            name = f"backbone.enc_list.{i}"
            x = self.norm(f"{name}.norm1", x + self.attend(f"{name}.mhatt", x, x))
            x = self.norm(f"{name}.norm2", x + self.mlp(f"{name}.ffn.mlp", x))
        for i in range(LAYERS):
            name = f"backbone.dec_list.{i}"
            y = self.norm(f"{name}.norm1", y + self.attend(f"{name}.mhatt1", y, y))
            y = self.norm(f"{name}.norm2", y + self.attend(f"{name}.mhatt2", y, x))
            y = self.norm(f"{name}.norm3", y + self.mlp(f"{name}.ffn.mlp", y))
        pooled = self.pool("attflat_lang", x) + self.pool("attflat_img", y)
        return self.linear("proj", self.norm("proj_norm", pooled))

    def linear(self, name, x):
        return x @ self.w[f"{name}.weight"].T + self.w[f"{name}.bias"]

    def mlp(self, name, x):
        hidden = np.maximum(self.linear(f"{name}.fc.linear", x), 0)
        return self.linear(f"{name}.linear", hidden)

    def norm(self, name, x):
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / (x.std(-1, ddof=1, keepdims=True) + 1e-6)
        return self.w[f"{name}.a_2"] * scaled + self.w[f"{name}.b_2"]

    def attend(self, name, queries, items):
        q = self.linear(f"{name}.linear_q", queries)
        k, v = (self.linear(f"{name}.linear_{x}", items) for x in "kv")
        out = []
        for head in np.split(np.arange(DIM), HEADS):
            weights = np.exp(q[:, head] @ k[:, head].T / (DIM // HEADS) ** 0.5)
            out.append(weights / weights.sum(-1, keepdims=True) @ v[:, head])
        return self.linear(f"{name}.linear_merge", np.concatenate(out, axis=-1))

    def pool(self, name, x):
        weights = np.exp(self.mlp(f"{name}.mlp", x))
        return self.linear(f"{name}.linear_merge", (weights / weights.sum() * x).sum(0))

    def lstm(self, words):
        hidden, cell, outputs = np.zeros(DIM), np.zeros(DIM), []
        for x in words:
            gates = self.w["lstm.weight_ih_l0"] @ x + self.w["lstm.bias_ih_l0"]
            gates += self.w["lstm.weight_hh_l0"] @ hidden + self.w["lstm.bias_hh_l0"]
            i, f, g, o = np.split(gates, 4)
            i, f, o = (1 / (1 + np.exp(-gate)) for gate in (i, f, o))
            cell = f * cell + i * np.tanh(g)
            hidden = o * np.tanh(cell)
            outputs.append(hidden)
        return np.stack(outputs)


def check(model, tensors, rng):
    questions = ["What's it?", "is the T-shirt red", "red " * 20, "zebra"]
    tokens = [[6, 3], [2, 1, 7, 8, 4], [4] * 14, [1]]
    regions = rng.normal(size=(4, 6, REGION_DIM)).astype("float32")
    counts = [6, 2, 4, 1]
    mask = np.arange(6) < np.array(counts)[:, None]
    images = {"regions": regions, "region_mask": mask}
    official = Official(tensors)
    expected = [
        official(ids, of_one[:count])
        for ids, of_one, count in zip(tokens, regions, counts, strict=True)
    ]
    logits = model({**images, "question": model.question_tokens(questions)})
    np.testing.assert_allclose(logits, expected, atol=1e-4)
    best = [ANSWERS[row.argmax()] for row in expected]
    assert model.answer(images, questions) == best
    assert len(set(best)) > 1


def test_a_converted_checkpoint_computes_the_same(tensors, rng):
    parallel = {f"module.{name}": x for name, x in tensors.items()}
    for of_one in (tensors, parallel):
        check(convert_mcan(of_one, TOKENS, ANSWERS, HEADS), tensors, rng)


def test_the_command_converts_files(tensors, tmp_path, monkeypatch, capsys, rng):
    state = torch_files.tensors_of(tensors)
    saved = {"state_dict": state, "optimizer": {"state": {}}, "lr_base": 1e-4}
    torch_files.write(tmp_path / "epoch13.pkl", saved, is_archive=False)
    inverse = {str(i): answer for i, answer in enumerate(ANSWERS)}
    answers = [{answer: i for i, answer in enumerate(ANSWERS)}, inverse]
    (tmp_path / "answer_dict.json").write_text(json.dumps(answers))
    (tmp_path / "tokens.json").write_text(json.dumps(TOKENS))
    monkeypatch.chdir(tmp_path)
    command = ["convert", "mcan", "epoch13.pkl", "--answers", "answer_dict.json"]
    command += ["--num_heads", str(HEADS), "--output", "mcan.keras"]
    with pytest.raises(SystemExit, match="mcan needs --tokens"):
        main(command)
    with pytest.raises(SystemExit) as end:
        main([*command, "--tokens", "tokens.json"])
    assert end.value.code is None
    assert "11 words, 6 answers" in capsys.readouterr().out
    check(keras.models.load_model(tmp_path / "mcan.keras"), tensors, rng)


def test_what_does_not_fit_is_named(tensors):
    with pytest.raises(kc.InputError, match="of 6 answers; there are 5"):
        convert_mcan(tensors, TOKENS, ANSWERS[1:])
    with pytest.raises(kc.InputError, match="should be PAD and UNK"):
        convert_mcan(tensors, {**TOKENS, "PAD": 1, "UNK": 0}, ANSWERS)
    with pytest.raises(kc.InputError, match="should have the ids 0 to 8"):
        convert_mcan(tensors, {**TOKENS, "red": 3}, ANSWERS)
    with pytest.raises(kc.InputError, match="cannot be divided among num_heads=8"):
        convert_mcan(tensors, TOKENS, ANSWERS)
    with pytest.raises(kc.InputError, match=r"img_feat_linear\.weight should have 2"):
        convert_mcan({"a": np.zeros(3)}, TOKENS, ANSWERS)
    # A model of terabytes, which the tensors do not have.
    wide = {**tensors, "img_feat_linear.weight": np.zeros((10**7, 1))}
    with pytest.raises(kc.InputError, match=r"weight_ih_l0 should have .*40000000, 7"):
        convert_mcan(wide, TOKENS, ANSWERS, HEADS)
    # Two glimpses, as of no released model.
    tensors["attflat_img.mlp.linear.weight"] = np.zeros((2, POOLING))
    tensors["linear_x.weight"] = tensors.pop("proj_norm.a_2")
    with pytest.raises(kc.InputError) as caught:
        convert_mcan(tensors, TOKENS, ANSWERS, HEADS)
    for problem in (
        "attflat_img.mlp.linear.weight has shape (2, 9), not (1, 9)",
        "proj_norm.a_2 is missing",
        "linear_x.weight is unknown",
    ):
        assert problem in str(caught.value)
