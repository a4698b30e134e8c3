"""The papers' experiments, against what the papers say."""

import ast
import re
import types

import numpy as np
import pytest
from conftest import PROJECT

import keras_caption as kc
from experiments.papers.rows import TABLES
from keras_caption.commands.configuration import describe, make_config
from keras_caption.formats.runs import refuse_used
from keras_caption.tasks import TASKS, Translation
from keras_caption.training.caption_reward import reward_weights
from keras_caption.training.schedules import schedule_of

CONFIGS = PROJECT / "experiments" / "configs"
FOLDER = CONFIGS / "captioning"


def test_no_run_begins_over_files_that_its_task_replaces(tmp_path):
    files = {name for task in TASKS.values() for name in task.files}
    # A card of others stays, and so do other files in these folders.
    files -= {"README.md", "logs", "weights"}
    for name in files | {"command.json", "weights/epoch_1.npz"}:
        folder = tmp_path / name.replace("/", "_")
        (folder / name).parent.mkdir(parents=True)
        refuse_used(folder)
        (folder / name).touch()
        with pytest.raises(kc.InputError, match="name another --output_dir"):
            refuse_used(folder)
        if name in ("config.json", "last.keras"):
            refuse_used(folder, resume=True)  # a damaged one is named when it is read
            continue
        with pytest.raises(kc.InputError, match="which a run would replace"):
            refuse_used(folder, resume=True)


def read(name, folder=FOLDER, **settings):
    """The configuration of a file, or the built-in one."""
    return make_config(name and folder / f"{name}.py", settings)[1]


def rates(values, epochs, first_epoch=0):
    schedule = schedule_of(values, 10, first_epoch)
    return [float(schedule(10 * epoch)) for epoch in range(epochs)]


def test_ngsan_has_one_schedule_for_both_phases():
    config = read("ngsan_coco")
    training, self_critical = config["training"], config["self_critical"]
    assert (training["epochs"], self_critical["epochs"]) == (15, 15)
    assert self_critical["learning_rate"] is None
    expected = [1e-4, 2e-4, *[3e-4] * 4, *[1.5e-4] * 3, *[0.75e-4] * 3, *[0.375e-4] * 3]
    np.testing.assert_allclose(rates(training, 15), expected, rtol=1e-5)
    halved = 1.875e-5 * 0.5 ** np.arange(5)
    found = rates(training, 15, first_epoch=15)
    np.testing.assert_allclose(found, np.repeat(halved, 3), rtol=1e-5)


def test_spatial_has_a_constant_rate_and_short_captions():
    config = read("spatial_coco")
    np.testing.assert_allclose(rates(config["training"], 20), 3e-4, rtol=1e-6)
    assert config["data"]["max_words"] == 14
    assert config["self_critical"]["epochs"] == 0
    assert config["self_critical"] == read(None)["self_critical"]  # not in the file


def test_aoanet_is_that_of_its_section():
    config = read("aoanet_coco")
    expected = 2e-4 * 0.8 ** np.repeat([0, 1, 2], 3)
    np.testing.assert_allclose(rates(config["training"], 9), expected, rtol=1e-5)
    assert (config["training"]["epochs"], config["self_critical"]["epochs"]) == (30, 15)


def test_videos_are_trained_as_the_papers_train_on_images():
    vatex, msrvtt = read("vatex"), read("msrvtt")
    of_images = read("ngsan_coco"), read("aoanet_coco")
    for config, expected in zip((vatex, msrvtt), of_images, strict=True):
        assert config["training"] == expected["training"]
    assert vatex["self_critical"] == of_images[0]["self_critical"]
    assert vatex["data"]["captions_per_image"] == 412_500 // 41_250
    model = vatex["model"]
    assert (model["name"], model["num_layers"]) == ("video_nsa", 1)
    assert (model["model_dim"], model["query_norm"]) == (512, "instance")
    model = msrvtt["model"]
    assert (model["name"], model["context"]) == ("video_aoa", "aoa")
    assert msrvtt["self_critical"]["epochs"] == 0


@pytest.mark.parametrize(
    ("name", "rule"),
    [("ngsan_coco", (6, "all")), ("aoanet_coco", (5, "all")), (None, (5, "train"))],
)
def test_vocabularies_are_counted_as_the_papers(name, rule):
    data = read(name)["data"]
    assert (data["min_count"], data["vocabulary_split"]) == rule


def test_every_file_is_an_experiment():
    paths = sorted(FOLDER.glob("*.py"))
    assert {"ngsan_coco", "msrvtt", "msvd", "vatex"} <= {path.stem for path in paths}
    for path in paths:
        config = read(path.stem)
        if path.stem.endswith("_coco"):
            assert config["model"]["name"] == path.stem.removesuffix("_coco")


# What each file's source says; others are ours.
TRANSLATION = {
    "multi30k": {"model.name": "transformer_tiny", "evaluation.tokenized": False},
    "multi30k_bpe": {
        "data.tokenizer": "words",
        "data.joint": True,
        "model.name": "transformer_tiny",
        "model.num_layers": 4,
        "model.decoder_layers": None,  # as many
        "model.model_dim": 128,
        "model.feedforward_dim": 256,
        "model.num_heads": 4,
        "model.dropout": 0.3,
        "model.shared_embeddings": True,
        "training.tokens_per_batch": 4096,
        "training.learning_rate": 0.005,
        "training.warmup_steps": 2000,
        "training.label_smoothing": 0.1,
        "decoding.beam_size": 5,
        "evaluation.tokenized": True,
    },
    "wmt14_area_lstm": {
        "data.tokenizer": "characters",
        "model.name": "lstm_256_area",
        "model.input_area": 2,
        "model.num_heads": 4,
        "model.dropout": 0.2,
        "model.score": "product",
        "training.max_steps": 80_000,
        "training.tokens_per_batch": 20480,
    },
    "wmt14_area": {
        "data.dataset": "wmt14_translate",
        "model.name": "transformer_tiny_area",
        "model.num_layers": 2,
        "model.model_dim": 128,
        "model.feedforward_dim": 512,
        "model.num_heads": 4,
        "model.input_area": 5,
        "model.output_area": 5,
        "model.area_layers": 2,
        "training.tokens_per_batch": 32000 // 2,
        "training.learning_rate": None,  # by the size, see below
        "training.max_steps": 250_000,
    },
    "wmt14_base_nsa": {
        "data.dataset": "wmt14_translate",
        "data.source": "en",
        "data.target": "de",
        "model.name": "transformer_base_nsa",
        "model.num_layers": 6,
        "model.model_dim": 512,
        "model.query_norm": "instance",
    },
}


def test_every_file_of_translation_is_that_of_its_source():
    folder = CONFIGS / "translation"
    assert {path.stem for path in folder.glob("*.py")} == TRANSLATION.keys()
    for name, expected in TRANSLATION.items():
        config = read(name, folder)
        for key, value in expected.items():
            group, key = key.split(".")
            assert config[group][key] == pytest.approx(value), (name, key)


@pytest.mark.parametrize(
    ("size", "rate"), [("tiny", 1.4e-3), ("small", 9.9e-4), ("base", 7.0e-4)]
)
def test_the_rate_of_wmt14_follows_from_the_size(size, rate):
    name = f"transformer_{size}"
    config = read("wmt14_area", CONFIGS / "translation", **{"model.name": name})
    task = types.SimpleNamespace(config=config)
    optimizer = Translation.make_optimizer(task, "training", 1000)
    schedule = optimizer._learning_rate
    assert float(schedule(3999)) == pytest.approx(rate, rel=0.02)
    assert float(schedule(15_999)) == pytest.approx(rate / 2, rel=0.02)
    assert config["model"]["norm_position"] == "pre"


def test_mcan_has_the_schedule_of_its_code():
    folder = CONFIGS / "question_answering"
    names = {path.stem for path in folder.glob("*.py")}
    assert names == {"coco_qa", "photos", "vqa_v2_mcan", "vsr"}
    for name in names:
        config = read(name, folder)
        assert config["model"]["name"].startswith("mcan"), name
        assert not {"self_critical", "decoding"} & config.keys()
    config = read("vqa_v2_mcan", folder)
    assert config["data"]["min_count"] == 9
    assert config["training"]["epochs"] == 13
    sizes = ("num_layers", "model_dim", "num_heads", "feedforward_dim")
    assert [config["model"][name] for name in sizes] == [6, 512, 8, 2048]
    warmup = [0.25e-4, 0.5e-4, 0.75e-4]
    expected = [*warmup, *[1e-4] * 7, 0.2e-4, 0.2e-4, 0.04e-4]
    np.testing.assert_allclose(rates(config["training"], 13), expected, rtol=1e-5)


def test_values_have_their_types_whatever_their_defaults():
    settings = {
        "model.name": "area",
        "model.decoder_layers": "2",
        "model.branch_dropout": "0.25",
        "model.combined_features": "false",
        "model.gate": "aoa",
        "self_critical.learning_rate": "None",
        "evaluation.spice": "True",
        "seed": "3",
    }
    config = make_config(None, settings)[1]
    for name, value in {
        "decoder_layers": 2,
        "branch_dropout": 0.25,
        "combined_features": False,
        "gate": "aoa",
        "temperature": None,
    }.items():
        assert config["model"][name] == value, name
        assert type(config["model"][name]) is type(value), name
    assert config["self_critical"]["learning_rate"] is None
    assert (config["evaluation"]["spice"], config["seed"]) == (True, 3)


def test_a_file_gives_the_model_and_flags_override_it():
    config = read("spatial_coco", **{"model.dropout": "0.3"})
    assert (config["model"]["name"], config["model"]["dropout"]) == ("spatial", 0.3)
    assert config["model"]["temperature"] == "length"
    config = read("ngsan_coco", **{"model.name": "san"})
    assert config["model"]["query_norm"] is None
    config["model"] = read("ngsan_coco")["model"]
    assert config["model"]["query_norm"] == "instance"
    assert config == read("ngsan_coco")


FILE = """
from keras_caption.tasks.captioning import get_config as built_in

def get_config():
    config = built_in("ngsan")
    {}
    return config
"""


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("config['modell'] = {}", "modell is unknown. Did you mean model?"),
        ("config['model']['num_layer'] = 2", "model.num_layer is unknown. Did you"),
        ("config['training']['rate'] = 2", "training.rate is unknown."),
        ("config['training']['epochs'] = 0", "training.epochs: Input should be"),
        ("del config['decoding']", "decoding: Field required"),
        ("del config['data']['dataset']", "data.dataset: Field required"),
        ("config['data'] = 3", "data should be a dict, not 3"),
        ("config['model']['name'] = 'x'", "There is no model named 'x'"),
        ("config = []", "should have a function get_config"),
        ("1 / 0", "fails: ZeroDivisionError: division by zero"),
    ],
)
def test_a_wrong_file_is_named(tmp_path, line, message):
    path = tmp_path / "mine.py"
    path.write_text(FILE.format(line))
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        make_config(path, {})
    assert str(path) in str(error.value) or "no model" in message
    assert "\n" not in str(error.value)


def test_hints_compare_names_within_their_group():
    for name, message in [
        ("decoding.coverage", "'coverage'. Valid names are beam_"),
        ("model.width", "--config.model has no 'width'. Valid names are name"),
        ("modell.gate", "--config has no 'modell.gate'. Did you mean model.gate"),
    ]:
        with pytest.raises(kc.InputError, match=re.escape(message)):
            make_config(None, {name: "2"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("training.decay_rate", "0"),
        ("training.learning_rate", "1e-50"),
        ("training.clip_value", "1e-50"),
        ("self_critical.samples", "1000000"),
    ],
)
def test_values_that_cannot_train_are_refused(name, value):
    with pytest.raises(kc.InputError, match=f"--config.{name}: Input should be"):
        make_config(None, {name: value})


def test_rewards_are_composed_by_name():
    setting = "self_critical.reward"
    for text, weights in {
        "cider_d": {"cider_d": 1.0},
        "cider_d + 5*truth": {"cider_d": 1.0, "truth": 5.0},
        "0.5*truth+2*objects": {"truth": 0.5, "objects": 2.0},
    }.items():
        config = make_config(None, {setting: text})[1]
        assert reward_weights(config["self_critical"]["reward"]) == weights
    wrong = ("", "cider", "x*truth", "*truth", "0*truth", "1e-50*truth", "inf*truth")
    for text in (*wrong, "cider_d+cider_d"):
        with pytest.raises(kc.InputError, match="reward: Input should be one of 'cid"):
            make_config(None, {setting: text})


def test_every_value_is_described_in_one_line():
    for name in kc.models.presets():
        described = describe(*make_config(None, {"model.name": name}))
        assert described["model.name"][0] == name
        for value, (_, text) in described.items():
            assert 0 < len(text) < 80, f"{name}, {value}: {text}"
    assert described["model.key_norm"] == (None, "norm of the input's keys, or None")


def test_experiments_of_the_package_have_names():
    assert make_config("ngsan_coco", {})[1] == read("ngsan_coco")
    with pytest.raises(kc.InputError, match=r"'ngsan_coc'\. Did you mean ngsan_coco"):
        make_config("ngsan_coc", {})


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*/*.py")), ids=lambda p: p.stem)
def test_heads_say_what_is_reached_and_how_long_it_takes(path):
    head = " ".join(ast.get_docstring(ast.parse(path.read_text())).split())
    reaches, takes = re.search(r"Reaches: (.+) Takes: (.+\.)$", head).groups()
    file, table = re.search(r"\((\S+\.csv)\)|\((\w+)\)|$", reaches).groups()
    scores = re.findall(
        r"(?:,|CIDEr-D|accuracy|BLEU(?:-4)?|French|perplexity) (-?\d+\.\d+)", reaches
    )
    if file:
        results = (PROJECT / file).read_text()
        assert scores
        assert all(score in results for score in scores)
    elif table:
        rows = TABLES[table].rows
        assert float(*scores) in {x for row in rows for x in row.scores.values()}
        assert "not measured here: the data is not at hand" in reaches
    measured = re.fullmatch(r".*\d (s|minutes|hours)\b.*|.* hours\b.*", takes)
    assert measured or takes.startswith("not measured")
