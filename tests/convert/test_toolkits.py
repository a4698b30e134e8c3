"""Checkpoints of Luo's toolkit, MarianMT and JoeyNMT, held to what their code computes.

The checkpoints, with inputs and outputs of the official code, are in `tests/oracles`.
"""

import base64
import shutil

import keras
import numpy as np
import pytest
from conftest import PROJECT, read_oracle
from keras import ops
from keras_caption.convert import (
    convert_joeynmt,
    convert_luo_transformer,
    convert_luo_updown,
    convert_marian,
    read_infos,
    read_joeynmt,
    read_marian,
    read_tensors,
)

import keras_caption as kc
from keras_caption.apps.convert.marian import make_tokenizer
from keras_caption.commands import main
from keras_caption.text import BOS, EOS, PAD, UNK


def oracle(name):
    """The arrays of an oracle, and the folder of its checkpoint."""
    return read_oracle(name), PROJECT / "tests" / "oracles" / f"{name}_ckpt"


LUO = {"transformer": convert_luo_transformer, "updown": convert_luo_updown}


@pytest.fixture(scope="module", params=LUO)
def luo(request):
    """Name, arrays, and what the converter of a captioner reads."""
    data, folder = oracle(f"luo_{request.param}")
    tensors = read_tensors(folder / "model-best.pth")
    return request.param, data, tensors, *read_infos(next(folder.glob("infos*.pkl")))


@pytest.fixture(scope="module")
def captioner(luo):
    name, _, *read = luo
    return LUO[name](*read)


def ours_of(model, words):
    """Our token of each of Luo's ids."""
    known = model.vocabulary.words
    return np.array([EOS, *(UNK if w == "UNK" else known.index(w) for w in words)])


def images_of(data, prefix=""):
    mask = data["att_masks"] > 0
    images = {
        "regions": data["att_feats"],
        "region_mask": np.ones_like(mask) if prefix else mask,
    }
    if "fc_feats" in data:
        images["image_vector"] = data["fc_feats"]
    return images


@pytest.mark.parametrize("prefix", ["", "nomask."])
def test_luos_captioners_compute_the_same(luo, captioner, prefix):
    _, data, _, words, _ = luo
    ours, images = ours_of(captioner, words), images_of(data, prefix)
    tokens = ours[data["labels"][..., :-1]].astype("int32")
    tokens[..., 0] = BOS
    log_probs = ops.log_softmax(captioner({**images, "tokens": tokens}))
    expected = data[f"{prefix}tf.logprobs"].reshape(*tokens.shape, -1)
    is_valid = data["masks"][..., 1:] > 0
    np.testing.assert_allclose(
        np.array(log_probs)[..., ours][is_valid], expected[is_valid], atol=1e-5
    )
    # An image alone, of one region.
    one = {name: x[:1, :1] for name, x in images.items() if "region" in name}
    one |= {name: x[:1] for name, x in images.items() if name not in one}
    assert np.isfinite(np.array(captioner({**one, "tokens": tokens[:1]}))).all()


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("beam3", {"beam_size": 3}),
        ("beam5", {"beam_size": 5}),
        ("beam5_wu0.9", {"beam_size": 5, "length_penalty": 0.9}),
        (
            "beam5_avg0",
            {"beam_size": 5, "length_penalty": 1.0, "length_offset": 0.0},
        ),
        ("greedy", {"beam_size": 1, "allow_unk": True}),
        ("nomask.greedy", {"beam_size": 1, "allow_unk": True}),
    ],
)
def test_luos_captioners_generate_the_same(luo, captioner, name, options):
    _, data, _, words, _ = luo
    tokens, scores = captioner.generate_tokens(
        images_of(data, "nomask" in name),
        max_length=data[f"{name}.seq"].shape[1],
        **options,
    )
    theirs = data[f"{name}.seq"]
    expected = np.where(theirs == 0, PAD, ours_of(captioner, words)[theirs])
    np.testing.assert_array_equal(np.where(tokens == EOS, PAD, tokens), expected)
    if options in ({"beam_size": 3}, {"beam_size": 5}):  # scores not normalized
        np.testing.assert_allclose(scores, data[f"{name}.done_p"][:, 0], atol=1e-4)


def test_a_converted_captioner_is_trained_saved_and_served(
    luo, captioner, tmp_path, monkeypatch, capsys
):
    name, data, *_ = luo
    _, folder = oracle(f"luo_{name}")
    monkeypatch.chdir(tmp_path)
    command = ["convert", name, str(folder / "model-best.pth"), "--infos"]
    command += [str(next(folder.glob("infos*.pkl"))), "--output", "luo.keras"]
    with pytest.raises(SystemExit) as end:
        main(command)
    assert end.value.code is None
    assert "learning_rate_decay_every=" in capsys.readouterr().out
    loaded = keras.models.load_model("luo.keras")
    images = images_of(data)
    short = {"beam_size": 2, "max_length": 4}
    captions = captioner.generate(images, **short)
    assert loaded.generate(images, **short) == captions

    import tensorflow as tf

    kc.serving.export(loaded, "served", **short)
    served = tf.saved_model.load("served").signatures["serving_default"]
    number = tf.constant(images["region_mask"].sum(axis=1), tf.int32)
    features = {n: tf.constant(x) for n, x in images.items() if n != "region_mask"}
    found = served(**features, num_regions=number)
    assert [text.decode() for text in found["captions"].numpy()] == captions

    tokens = np.full((4, 5), EOS + 2, "int32")
    tokens[:, 0] = BOS
    keras.utils.set_random_seed(0)
    adam = keras.optimizers.Adam(0.01)
    loaded.compile(adam, kc.losses.SequenceCrossEntropy(), run_eagerly=True)
    batch = kc.text.teacher_forcing({**images, "tokens": tokens})
    losses = [loaded.train_on_batch(*batch) for _ in range(3)]
    assert losses[-1] < losses[0]

    # Areas, and NSA, start from the weights of the converted model.
    mechanisms = {"query_norm": "instance", "input_area": 2}
    config = captioner.get_config()
    config |= {name: x for name, x in mechanisms.items() if name in config}
    changed = captioner.from_config(config)
    changed.set_weights(captioner.get_weights())
    assert len(changed.generate(images, **short)) == 4


REFUSED = {
    "transformer": (
        ({"caption_model": "updown"}, "caption_model=transformer, not updown"),
        ({"d_model": 64}, "should have shape"),
        ({"N_dec": 4}, r"decoder\.layers\.3\.self_attn.*received nothing"),
        ({"num_att_heads": 5}, "cannot be divided"),
    ),
    "updown": (
        ({"caption_model": "fc"}, "caption_model=updown or topdown, not fc"),
        ({"att_hid_size": 64}, "should have shape"),
        ({"att_hid_size": 0}, "describe no model"),
        ({"fc_feat_size": 22}, r"fc_embed\.0\.weight should have shape"),
    ),
}


def test_checkpoints_of_other_models_are_refused(luo):
    name, _, tensors, words, options = luo
    for changes, message in (
        *REFUSED[name],
        ({"use_bn": 1}, "Only models with use_bn=0"),
        ({"my_option": 3}, "unknown option 'my_option'"),
        ({"length_penalty": "sum_2"}, "length_penalty such as 'wu_0.9'"),
    ):
        with pytest.raises(kc.InputError, match=message):
            LUO[name](tensors, words, {**options, **changes})
    last = {
        "transformer": "model.encoder.norm.a_2",
        "updown": "core.attention.h2att.bias",
    }
    fewer = {n: x for n, x in tensors.items() if n != last[name]}
    with pytest.raises(kc.InputError, match=f"{last[name]} is missing"):
        LUO[name](fewer, words, options)


@pytest.fixture(scope="module")
def translator():
    data, folder = oracle("marian")
    return data, convert_marian(read_marian(folder))


def marian_ours(model):
    """Our token of each of the oracle's 60 ids: the end, UNK, pieces, `<pad>`."""
    return np.array([EOS, UNK, *range(4, len(model.target)), BOS])


def test_marian_computes_the_same(translator):
    data, model = translator
    ours = marian_ours(model)
    source = np.where(data["attention_mask"] > 0, ours[data["input_ids"]], PAD)
    tokens = ours[data["decoder_input_ids"]].astype("int32")
    is_valid = data["labels"] != -100
    for rows in (slice(None), slice(3, 4)):  # the last has three tokens
        longest = data["attention_mask"][rows].sum(axis=1).max()
        batch = {"source": source[rows, :longest], "tokens": tokens[rows]}
        log_probs = np.array(ops.log_softmax(model(batch)))[..., ours]
        np.testing.assert_allclose(
            log_probs[is_valid[rows]],
            data["tf.logprobs"][rows][is_valid[rows]],
            atol=1e-5,
        )


@pytest.mark.parametrize(
    ("name", "options", "others"),
    [
        ("greedy", {"beam_size": 1}, ()),
        # Theirs keeps as many unfinished hypotheses when some are finished.
        ("beam4_lp1.0", {"beam_size": 4}, (1,)),
        ("beam3_lp1.0", {"beam_size": 3}, ()),
        ("beam5_lp1.0", {"beam_size": 5}, ()),
        ("beam4_lp0.6", {"beam_size": 4, "length_penalty": 0.6}, ()),
        # Theirs ends once there are four finished ones.
        ("beam4_lp0.6_early", {"beam_size": 4, "length_penalty": 0.6}, (2,)),
        ("short.beam4_lp1.0", {"beam_size": 4}, ()),
        ("short.beam4_lp0.6", {"beam_size": 4, "length_penalty": 0.6}, ()),
    ],
)
def test_marian_generates_the_same(translator, name, options, others):
    data, model = translator
    ours = marian_ours(model)
    source = np.where(data["attention_mask"] > 0, ours[data["input_ids"]], PAD)
    theirs = data[f"{name}.seq"][:, 0, 1:]
    # Their last token is a forced end, which ours lack.
    length = data[f"{name}.seq"].shape[-1] - 2
    tokens, _ = model.generate_tokens(
        {"source": source}, max_length=length, length_ratio=None, **options
    )
    expected = ours[theirs]
    expected = np.where((expected == EOS) | (expected == BOS), PAD, expected)
    same = (np.where(tokens == EOS, PAD, tokens) == expected[:, :length]).all(axis=1)
    assert [*np.flatnonzero(~same)] == [*others]


def test_marian_splits_and_joins_text_the_same(translator):
    data, model = translator
    ours = marian_ours(model)
    for text, ids, mask in zip(
        data["tok.text"], data["tok.input_ids"], data["tok.attention_mask"], strict=True
    ):
        assert model.source.encode(str(text))[1:] == ours[ids[mask > 0]].tolist()
    in_graph = model.source.tokenize(data["tok.text"].tolist()).to_list()
    assert in_graph == [model.source.encode(str(x))[1:-1] for x in data["tok.text"]]
    for ids, text in zip(
        data["tok.target_ids"], data["tok.target_decoded"], strict=True
    ):
        assert model.target.decode(ours[ids]) == text
    # The language to translate to is one token, as in their tokenizer.
    languages = [">>fra<<", ">>zh_CN<<"]
    pieces = [model.source._processor.id_to_piece(i) for i in range(4, len(ours) + 1)]
    several = make_tokenizer(base64.b64decode(model.source.model), pieces + languages)
    plain = model.source.to_ids("the cat sits")
    for number, language in enumerate(languages, start=len(model.source)):
        text = f"{language} the cat sits"
        assert several.to_ids(text) == [number, *plain]
        assert several.tokenize([text]).to_list() == [[number, *plain]]
    assert several.to_ids("the cat sits") == plain
    # A piece that has no id is UNK.
    short = kc.text.SubwordTokenizer(model.source.model, size=10)
    assert set(short.encode("the cat sits")) <= set(range(10))


@pytest.mark.parametrize("name", ["marian", "joeynmt"])
def test_a_converted_translator_is_saved_served_and_trained(name, request, tmp_path):
    import tensorflow as tf

    if name == "marian":
        data, model = request.getfixturevalue("translator")
        texts = [str(text) for text in data["tok.text"]]
    else:
        model = convert_joeynmt(read_joeynmt(oracle(name)[1]))
        texts = ["sc se so", "sw"]
    short = {"beam_size": 2, "max_length": 4}
    expected = model.generate(texts, **short)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.generate(texts, **short) == expected
    assert loaded.decoding == model.decoding
    kc.serving.export(loaded, tmp_path / "served", **short)
    served = tf.saved_model.load(tmp_path / "served").signatures["serving_default"]
    found = served(source=tf.constant(texts))["translations"].numpy()
    assert [text.decode() for text in found] == expected

    table = loaded.decoder.embedding.embeddings
    before = np.array(table)
    loaded.compile("sgd", kc.losses.SequenceCrossEntropy(), run_eagerly=True)
    known = model.target.decode([5, 6, 7])
    batch = {
        "source": np.array([model.source.encode(texts[0])[1:]], "int32"),
        "tokens": np.array([model.target.encode(known)], "int32"),
    }
    assert np.isfinite(loaded.train_on_batch(*kc.text.teacher_forcing(batch)))
    assert not np.array_equal(before, np.array(table))

    # Areas and NSA have no weights: they start from those of the converted model.
    mechanisms = {"query_norm": "instance", "input_area": 2, "output_area": 2}
    changed = model.from_config({**model.get_config(), **mechanisms})
    changed.set_weights(model.get_weights())
    given = {**batch, "tokens": batch["tokens"][:, :-1]}
    assert not np.allclose(np.array(changed(given)), np.array(model(given)), atol=1e-3)
    assert len(changed.generate(texts, **short)) == len(texts)


def test_folders_of_other_models_are_refused(tmp_path):
    _, folder = oracle("marian")
    read = read_marian(folder)
    for changes, message in (
        ({"scale_embedding": False}, "Only a Marian with scale_embedding=True"),
        ({"activation_function": "mish"}, "activation_function='mish'"),
        ({"encoder_ffn_dim": 45}, r"layers\.0\.fc1\.weight should have shape"),
        ({"decoder_start_token_id": 0}, "starts with <pad>"),
    ):
        with pytest.raises(kc.InputError, match=message):
            convert_marian(read._replace(config={**read.config, **changes}))
    (tmp_path / "marian").mkdir()
    for path in folder.iterdir():
        shutil.copyfile(path, tmp_path / "marian" / path.name)
    (tmp_path / "marian" / "source.spm").write_bytes(b"nothing")
    with pytest.raises(kc.InputError, match=r"source\.spm cannot be read"):
        read_marian(tmp_path / "marian")
    fewer = {n: x for n, x in read.tensors.items() if n != "final_logits_bias"}
    untied = {**read.tensors, "lm_head.weight": np.zeros((61, 32), "float32")}
    gap = {**read.ids, "more": len(read.ids) + 1}
    without_unk = {n if n != "<unk>" else "else": i for n, i in read.ids.items()}
    for changes, message in (
        ({"tensors": fewer}, "final_logits_bias is missing"),
        ({"tensors": untied}, r"lm_head\.weight should equal model\.shared\.weight"),
        ({"ids": gap}, "ids of vocab.json should be 0 to"),
        ({"ids": without_unk}, "vocab.json should hold <unk>"),
    ):
        with pytest.raises(kc.InputError, match=message):
            convert_marian(read._replace(**changes))
    with pytest.raises(kc.InputError, match="There is no folder"):
        read_marian("nowhere")


def test_joeynmt_computes_and_generates_the_same(tmp_path):
    data, folder = oracle("joeynmt")
    read = read_joeynmt(folder)
    model = convert_joeynmt(read)

    def ours(ids):  # their first ids are UNK, PAD, BOS and EOS
        return np.array([UNK, PAD, BOS, EOS, *range(4, 26)], "int32")[ids]

    source, tokens = ours(data["src"]), ours(data["trg_input"])
    log_probs = np.array(ops.log_softmax(model({"source": source, "tokens": tokens})))
    is_valid = data["trg_mask"][:, 0]
    np.testing.assert_allclose(
        log_probs[..., ours(np.arange(22))][is_valid],
        data["tf.logprobs"][is_valid],
        atol=1e-5,
    )
    for name, options in (
        ("nounk.greedy", {"beam_size": 1, "allow_unk": False}),
        (
            "nounk.beam5_a1.0",
            {"beam_size": 5, "length_penalty": 1.0, "allow_unk": False},
        ),
        ("greedy", {"beam_size": 1}),
        ("beam3_a1.0", {"beam_size": 3, "length_penalty": 1.0}),
        ("beam5_a1.0", {"beam_size": 5, "length_penalty": 1.0}),
        ("beam5_a0.6", {"beam_size": 5, "length_penalty": 0.6}),
        ("beam5_noalpha", {"beam_size": 5, "length_penalty": 0.0}),
    ):
        found, _ = model.generate_tokens({"source": source}, max_length=18, **options)
        theirs = ours(data[f"{name}.seq"].reshape(5, -1, 18)[:, 0])
        ended = np.cumsum(theirs == EOS, axis=1) - (theirs == EOS) > 0
        np.testing.assert_array_equal(found, np.where(ended, PAD, theirs))
    encoder = {**read.model["encoder"], "alpha": 0.8}
    unscaled = {**encoder, "alpha": 1.0, "embeddings": {"scale": False}}
    norms = {**encoder, "alpha": 1.0, "layer_norm": "none"}
    for changes, message in (
        ({"encoder": encoder}, "Only a JoeyNMT with alpha=1.0"),
        ({"encoder": unscaled}, "scaled embeddings can be converted; those of its enc"),
        ({"encoder": norms}, "have the same layer_norm, pre or post"),
        ({"tied_embeddings": True}, "tied_embeddings cannot be converted"),
        ({"initializer": "xavier_normal"}, "xavier_normal scales residuals"),
    ):
        with pytest.raises(kc.InputError, match=message):
            convert_joeynmt(read._replace(model={**read.model, **changes}))
    (tmp_path / "config.yaml").write_text("model: {}")
    with pytest.raises(kc.InputError, match="has no section `model`"):
        read_joeynmt(tmp_path)
