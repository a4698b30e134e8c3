"""Presets: models as folders, which hubs take. No test needs a network."""

import json
import pathlib
import re
import shutil
import sys
import types

import h5py
import hub_server
import huggingface_hub
import keras
import numpy as np
import pytest
import yaml
from conftest import PROJECT, tiny
from keras_caption.objects import Yolox
from yolox_file import photo, white_yolox

import keras_caption as kc
from keras_caption.commands import main
from keras_caption.decoding import Decoding
from keras_caption.formats import built_in
from keras_caption.models.cards import MEASURED, card_of, limits_of, write_card

ADDRESS = "hf://someone/captioner"


@pytest.fixture(scope="module")
def preset(captioner, tmp_path_factory):
    folder = tmp_path_factory.mktemp("presets") / "captioner"
    captioner.save_to_preset(folder)
    return folder


def test_a_preset_has_kerashubs_layout_and_no_optimizer(captioner, preset):
    assert captioner.compiled
    files = {str(x.relative_to(preset)) for x in preset.rglob("*") if x.is_file()}
    assert files >= {"config.json", "model.weights.h5", "metadata.json"}
    words = (preset / "assets/vocabulary/vocabulary.txt").read_text().split()
    assert words == captioner.vocabulary.words[4:]
    assert "w7" not in (preset / "config.json").read_text()
    with h5py.File(preset / "model.weights.h5") as file:
        assert "optimizer" not in file
    metadata = json.loads((preset / "metadata.json").read_text())
    assert metadata["parameter_count"] == captioner.count_params()


def test_a_preset_keeps_how_a_model_reads_and_generates(vocabulary, rng, tmp_path):
    detector = Yolox(white_yolox(image_size=416), confidence=0.2)
    model = kc.models.create(
        "san", vocabulary=vocabulary, **tiny("san", num_layers=1, region_dim=80)
    )
    model.extractor, model.threshold = detector, 0.4
    model.categories = list(detector.dimensions)
    model.decoding = Decoding(beam_size=1, max_length=3)
    model.quantize("int8")
    model.save_to_preset(tmp_path / "preset")
    again = kc.models.from_preset(tmp_path / "preset")
    assert (again.threshold, again.decoding) == (0.4, model.decoding)
    assert again.categories == model.categories
    assert again.extractor.confidence == 0.2
    pixels = photo(416, 416, [(3, 4), (9, 9)])
    images, found = model.extract([pixels]), again.extract([pixels])
    for name in ("regions", "boxes"):
        np.testing.assert_array_equal(images[name], found[name])
    assert again.generate(images) == model.generate(images)


def test_only_presets_are_replaced(captioner, preset, tmp_path):
    captioner.save_to_preset(tmp_path)
    captioner.save_to_preset(tmp_path)  # its own
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(kc.InputError, match=r"holds other files, such as notes\.txt"):
        captioner.save_to_preset(tmp_path)


def test_a_card_is_written_and_kept_once_it_is_edited(captioner, preset, tmp_path):
    card = (preset / "README.md").read_text()
    head = yaml.safe_load(card.split("---\n")[1])
    assert head["library_name"] == "keras_caption"
    assert head["pipeline_tag"] == "image-to-text"
    assert f"{captioner.count_params():,} parameters" in card
    code = re.search(r"```python\n(.*?)```", card, re.DOTALL)[1]
    assert 'generate({"regions": regions, "boxes": boxes})' in code
    assert '"model_dim": 16' in card
    assert "at most 20 of them" in card
    captioner.save_to_preset(tmp_path)
    (tmp_path / "README.md").write_text(card.replace("unknown", "mit"))
    captioner.save_to_preset(tmp_path)
    assert (tmp_path / "README.md").read_text() == card.replace("unknown", "mit")
    scores = {"CIDEr-D": 1.25, "BLEU-1": 0.5, "objects": {}}
    data = {"dataset": "scenes", "data_dir": "/home/me/photos"}
    run = {"objective": "cross-entropy", "training_size": "9 training images"}
    run |= {"config": {"data": data}, "scores": scores}
    write_card(tmp_path, captioner, run)
    assert "mit" in (tmp_path / "README.md").read_text()
    (tmp_path / "README.md").write_text(card)  # as it was written
    write_card(tmp_path, captioner, run)
    scored = (tmp_path / "README.md").read_text()
    head = huggingface_hub.ModelCard(scored).data
    assert (head.language, head.metrics) == (["en"], ["bleu", "cider"])
    results = {r.metric_name: r.metric_value for r in head.eval_results}
    assert results == {"CIDEr-D": 1.25, "BLEU-1": 0.5}
    assert "`scenes`, 9 training images" in scored
    assert "/home/me" not in scored


def test_values_of_colours_are_no_categories_of_a_card():
    names = [*kc.objects.CATEGORIES, "red"]
    model = types.SimpleNamespace(categories=names, output_limits=[], threshold=0)
    [limit] = limits_of(model)
    sees = "By itself, it sees objects of"
    assert limit.startswith(f"{sees} 80 categories and their colours, ")
    model.categories = ["star", "circle"]
    assert limits_of(model)[0].startswith(f"{sees} 2 categories, ")


@pytest.fixture
def hub(preset, monkeypatch):
    """Hugging Face with one preset; lists what is uploaded."""
    uploaded = []

    def download(repo_id, filename):
        path = preset / filename
        errors = huggingface_hub.errors
        if repo_id != "someone/captioner":  # what the client raises without a network
            raise errors.LocalEntryNotFoundError("Check your connection")
        if not path.exists():
            raise errors.EntryNotFoundError("404 Client Error")
        return str(path)

    def create_repo(repo_id, exist_ok):
        return huggingface_hub.RepoUrl(f"https://huggingface.co/{repo_id}")

    def upload_file(path_or_fileobj, path_in_repo, repo_id):
        uploaded.append(path_in_repo)

    def upload_folder(repo_id, folder_path):
        uploaded.extend(x.name for x in pathlib.Path(folder_path).iterdir())

    def file_exists(repo_id, filename):
        return filename in uploaded

    for function in (create_repo, upload_file, upload_folder, file_exists):
        monkeypatch.setattr(huggingface_hub, function.__name__, function)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    return uploaded


def test_presets_are_fetched_from_a_hub(captioner, hub):
    model = kc.models.load(ADDRESS)
    assert model.get_config() == captioner.get_config()
    for expected, found in zip(captioner.weights, model.weights, strict=True):
        np.testing.assert_array_equal(expected, found)


def test_presets_are_uploaded_with_their_card(preset, hub):
    card = preset / "README.md"
    written = card.read_text()
    card.unlink()
    kc.models.upload_preset(ADDRESS, preset)
    assert {"README.md", "config.json", "model.weights.h5", "assets"} <= {*hub}
    assert card.read_text() == written  # KerasHub writes and removes one of its own


def test_a_model_is_pushed_to_a_hub_and_loaded_from_it(
    captioner, tmp_path, monkeypatch, capsys
):
    """By the hub's own client, over HTTP, from a server of this machine."""
    captioner.save(tmp_path / "captioner.keras")
    with hub_server.serving() as (server, url):
        template = url + "/{repo_id}/resolve/{revision}/{filename}"
        for name, value in (
            ("constants.ENDPOINT", url),
            ("constants.HUGGINGFACE_CO_URL_TEMPLATE", template),
            ("constants.HF_HUB_CACHE", str(tmp_path / "cache")),
            ("file_download.HUGGINGFACE_CO_URL_TEMPLATE", template),
            ("hf_api.api.endpoint", url),
        ):
            monkeypatch.setattr(f"huggingface_hub.{name}", value, raising=False)
        monkeypatch.setenv("HF_TOKEN", "hf_token")
        with pytest.raises(SystemExit, match=r"^$"):
            main(["push", str(tmp_path / "captioner.keras"), ADDRESS])
        assert f"captioner.keras to {ADDRESS}" in capsys.readouterr().out
        files = server.repositories["someone/captioner"]
        assert {"README.md", "config.json", "model.weights.h5"} <= {*files}
        assert b'library_name: "keras_caption"' in files["README.md"]
        assert server.tokens == {"Bearer hf_token"}
        model = kc.models.load(ADDRESS)
    for expected, found in zip(captioner.weights, model.weights, strict=True):
        np.testing.assert_array_equal(expected, found)


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("nowhere", "There is no file config.json in the preset nowhere."),
        ("hf://captioner", "should be hf://USER/NAME or kaggle://USER/MODEL/keras/"),
        ("kaggle://a/b/pytorch/c", "should be hf://USER/NAME or kaggle://USER/MODEL"),
        ("gs://a/b", "The address gs://a/b should be hf://USER/NAME or kaggle://USER/"),
        (
            "hf://no/one",
            "could not be loaded from https://huggingface.co/no/one: there is no con",
        ),
    ],
)
def test_wrong_addresses_are_named(hub, address, problem):
    with pytest.raises(kc.InputError, match=problem.replace(".", r"\.")):
        kc.models.from_preset(address)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("config.json", None, "There is no file config.json in the preset"),
        ("config.json", "{", "config.json: not valid JSON, or truncated"),
        ("model.weights.h5", None, "There is no file model.weights.h5 in the preset"),
        ("model.weights.h5", "no HDF5", "model.weights.h5 cannot be read"),
        ("assets/vocabulary/vocabulary.txt", None, "There is no file assets/"),
        ("assets/vocabulary/vocabulary.txt", "w1\nw2\n", "preset cannot be read: "),
    ],
)
def test_damaged_presets_are_named(preset, tmp_path, name, content, problem):
    folder = shutil.copytree(preset, tmp_path / "preset")
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_text(content)
    with pytest.raises(kc.InputError, match=problem.replace(".", r"\.")):
        kc.models.from_preset(folder)


@pytest.mark.parametrize("outside", ["assets/../../x.txt", "{}/../../../../x.txt"])
def test_a_file_outside_the_preset_is_not_read(preset, tmp_path, outside):
    path = shutil.copytree(preset, tmp_path / "preset") / "config.json"
    inside = "assets/vocabulary/vocabulary.txt"
    config = path.read_text().replace(inside, outside.format(inside))
    path.write_text(config)
    with pytest.raises(kc.InputError, match="names no file of a vocabulary"):
        kc.models.from_preset(path.parent)


def test_the_name_of_a_model_in_the_package_is_a_preset():
    model = kc.models.from_preset("mcan_photos")
    assert model.name == "mcan_photos"
    card = card_of(model)
    metadata = yaml.safe_load(card.split("---")[1])
    assert metadata["license"] == "apache-2.0"
    assert "state it in the head" not in card
    assert MEASURED.keys() == built_in.models().keys()
    documents = [x.read_text() for x in (PROJECT / "docs" / "results").glob("*.md")]
    for text in MEASURED.values():
        for number in re.findall(r"\d+\.\d", text):
            assert any(re.search(rf"\b{number}\b", x) for x in documents), number


def test_other_models_and_folders_are_refused(preset, tmp_path):
    from keras_hub.src.utils.preset_utils import get_preset_saver

    inputs = keras.Input((2,))
    other = keras.Model(inputs, keras.layers.Dense(1)(inputs))
    get_preset_saver(str(tmp_path)).save_backbone(other)
    with pytest.raises(kc.InputError, match="is a Functional, not a captioner"):
        kc.models.from_preset(tmp_path)
    with pytest.raises(kc.InputError, match="is no preset"):
        kc.models.upload_preset(ADDRESS, tmp_path / "nowhere")


def test_a_missing_package_is_named(monkeypatch):
    for package, address in (
        ("huggingface_hub", ADDRESS),
        ("kagglehub", "kaggle://a/b/keras/c"),
    ):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(
            kc.InputError, match=rf"{package} is not installed: pip .*caption\[hub\]"
        ):
            kc.models.from_preset(address)
