"""What a user deploys: the repository's model as an export, and `deploy/`."""

import pathlib
import re
import runpy
import shutil
import subprocess
import urllib.parse

import httpx
import numpy as np
import pytest
import tensorflow as tf
import yaml
from conftest import PROJECT
from google.protobuf import text_format
from PIL import Image
from tensorflow_serving.apis import predict_pb2
from tensorflow_serving.config import model_server_config_pb2
from yolox_file import photo, white_yolox

import keras_caption as kc
from keras_caption.commands import main
from keras_caption.commands.serve import make_parser, read_config
from keras_caption.export.signatures import signatures_of

DEPLOY = PROJECT / "deploy"
PHOTOS = {"dog.png": [(1, 1)], "dogs.png": [(1, 1), (4, 5)]}


@pytest.fixture(scope="module")
def deployed(tmp_path_factory):
    """The repository's captioner, its export, files and captions, the last two empty.

    In one of these, nothing is detected; the other is no photo.
    """
    folder = tmp_path_factory.mktemp("deployed")
    white_yolox(image_size=None).save(folder / "yolox.keras")
    (folder / "ngsan_coco" / "7").mkdir(parents=True)  # of an earlier export
    saved = PROJECT / "saved_models" / "ngsan_coco.keras"
    with pytest.raises(SystemExit) as end:
        main(
            [
                *("export", str(saved), f"--output={folder / 'ngsan_coco'}"),
                f"--detector={folder / 'yolox.keras'}",
            ]
        )
    assert not end.value.code
    model = kc.models.load(saved)
    model.extractor = kc.objects.load_detector(str(folder / "yolox.keras"))
    for name, cells in PHOTOS.items():
        Image.fromarray(photo(416, 208, cells)).save(folder / name)
    photos = [folder / name for name in PHOTOS]
    captions = model.generate(photos)
    Image.fromarray(photo(416, 208, [])).save(folder / "nothing.png")
    (folder / "broken.jpg").write_bytes(b"no photo")
    return (
        model,
        folder / "ngsan_coco" / "8",
        [*photos, folder / "nothing.png", folder / "broken.jpg"],
        [*captions, "", ""],
    )


def test_the_model_of_the_repository_captions_what_is_detected(deployed):
    model, exported, photos, captions = deployed
    assert model.categories == list(kc.objects.CATEGORIES)
    assert "dog" in captions[0].split()
    served = tf.saved_model.load(str(exported)).signatures
    files = tf.constant([path.read_bytes() for path in photos])
    assert texts(served["serving_default"](image_bytes=files)) == captions
    features = model.extract(photos[:2])
    features = {key: tf.constant(features[key]) for key in ("regions", "boxes")}
    assert texts(served["features"](**features)) == captions[:2]


def texts(outputs):
    return [text.decode() for text in outputs["captions"].numpy()]


def test_a_program_in_c_prints_the_same_captions(deployed, tmp_path):
    _, exported, photos, captions = deployed
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    library = pathlib.Path(tf.sysconfig.get_lib())
    command = [
        *(compiler, "-Wall", "-Wextra", "-Werror", DEPLOY / "caption.c"),
        *("-o", tmp_path / "caption", f"-I{tf.sysconfig.get_include()}"),
        *(f"-L{library}", f"-Wl,-rpath,{library}"),
        *(f"-l:libtensorflow_{part}.so.2" for part in ("cc", "framework")),
        # GNU's other linker takes ten times as long for a library of this size.
        *(["-fuse-ld=gold"] if shutil.which("ld.gold") else []),
    ]
    subprocess.run(command, check=True)
    done = subprocess.run(
        [tmp_path / "caption", exported, *photos],
        env={"TF_CPP_MIN_LOG_LEVEL": "2"},
        capture_output=True,
        text=True,
        check=True,
    )
    pairs = zip(photos, captions, strict=True)
    assert done.stdout == "".join(f"{path}: {text}\n" for path, text in pairs)
    wrong = subprocess.run(
        [tmp_path / "caption", tmp_path, photos[0]], capture_output=True, text=True
    )
    assert wrong.returncode == 1
    assert f"error: {tmp_path}: " in wrong.stderr


def test_a_version_is_no_folder_of_versions(deployed):
    _, exported, *_ = deployed
    saved = str(PROJECT / "saved_models" / "ngsan_coco.keras")
    with pytest.raises(SystemExit, match="8 is an export itself: name its parent"):
        main(["export", saved, f"--output={exported}"])
    assert sorted(path.name for path in exported.parent.iterdir()) == ["7", "8"]


def test_requests_of_real_photos_are_answered_by_our_server(deployed, tmp_path):
    model, exported, photos, captions = deployed
    output = tmp_path / "requests"
    make = runpy.run_path(str(DEPLOY / "requests.py"))["main"]
    make([str(exported), str(output), *map(str, photos)])
    predictor = kc.serving.ExportedPredictor(exported)
    names = {*predictor.signatures}
    for name, signature in signatures_of(model).items():  # known without tracing
        declared, traced = signature.outputs, predictor.signatures[name].outputs
        assert declared.keys() == traced.keys()
        for key, spec in declared.items():
            assert spec.is_compatible_with(traced[key]), (name, key)
        assert "function" not in vars(signature)
    assert {path.stem for path in output.glob("*.json")} == names
    assert {path.stem for path in output.glob("*.pb")} == names
    server = kc.serving.Server()
    server.service.add("ngsan_coco", str(exported), lambda path: predictor)
    with server.serving() as url, kc.serving.Client(url) as client:
        for name in names:
            content = (output / f"{name}.pb").read_bytes()
            request = predict_pb2.PredictRequest.FromString(content)
            assert request.model_spec.name == "ngsan_coco"
            assert request.model_spec.signature_name == name
            inputs = {key: tf.make_ndarray(x) for key, x in request.inputs.items()}
            by_grpc = client.predict("ngsan_coco", inputs, name)
            address = f"{url}/v1/models/ngsan_coco:predict"
            body = (output / f"{name}.json").read_bytes()
            answer = httpx.post(address, content=body, timeout=60)
            assert answer.status_code == 200, answer.text
            rows = answer.json()["predictions"]
            if name == "logits":
                tokens = inputs.pop("tokens")
                expected = model.logits(tokens, model.encode(model.read(inputs)))
                for found in by_grpc, rows:
                    np.testing.assert_allclose(found, expected, atol=1e-4)
                continue
            if "sample" in name:  # another caption each time
                assert [bool(x["captions"]) for x in rows][:2] == [True] * len(rows[:2])
                continue
            expected = captions
            if not name.startswith("photos") and name != "serving_default":
                images = {key: inputs[key] for key in ("regions", "boxes")}
                beam = {"beam_size": 1} if name == "greedy" else {}
                expected = model.generate(images, **beam)
            tokens = [np.atleast_2d(x)[0] for x in by_grpc["tokens"]]
            assert [model.vocabulary.decode(x) for x in tokens] == expected
            if name == "tokens":
                assert rows == [
                    {key: x[i].tolist() for key, x in by_grpc.items()}
                    for i in range(len(rows))
                ]
            else:
                texts = [np.atleast_1d(x["captions"])[0] for x in rows]
                assert texts == expected


def test_the_configuration_of_tensorflow_serving_fits_together():
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    [service] = compose["services"].values()
    mounts = dict(volume.split(":")[:2] for volume in service["volumes"])
    folders = {inside: DEPLOY / outside for outside, inside in mounts.items()}
    named = re.findall(r"=(/\S+)", " ".join(service["command"]))
    assert {
        folders[str(path.parent)] / path.name for path in map(pathlib.Path, named)
    } == {*DEPLOY.glob("*.config")}
    config = model_server_config_pb2.ModelServerConfig()
    text_format.Parse((DEPLOY / "model.config").read_text(), config)
    for model in config.model_config_list.config:
        assert model.base_path == f"/models/{model.name}"
    assert folders["/models"].resolve() == PROJECT / "exports"


def test_a_gallery_asks_the_server_that_is_beside_it():
    folder = DEPLOY / "photoprism"
    services = yaml.safe_load((folder / "compose.yaml").read_text())["services"]
    models, *arguments = services["captions"]["command"]
    options = make_parser().parse_args([models, *arguments])
    text = (folder / "vision.yml").read_text()
    [model] = yaml.safe_load(text)["Models"]
    _, *commented = re.findall(r"^  # (.*)$", text, re.M)  # the first says what it is
    [other] = yaml.safe_load("\n".join(commented))
    for described in model, other:
        assert described["Model"] in options.models
        address = urllib.parse.urlsplit(described["Service"]["Uri"])
        assert address.hostname in services
        assert address.port == options.port
    mounted = [x.partition(":")[0] for x in services["photoprism"]["volumes"]]
    assert "./vision.yml" in mounted


@pytest.mark.parametrize("name", ["server.yaml", "server-gpu.yaml"])
def test_manifests_ask_for_what_the_server_has(name, tmp_path):
    config, deployment, service = yaml.safe_load_all((DEPLOY / name).read_text())
    pod = deployment["spec"]["template"]
    assert pod["metadata"]["labels"] == service["spec"]["selector"]
    [container] = pod["spec"]["containers"]
    [port] = container["ports"]
    options = make_parser().parse_args([])
    assert port["containerPort"] == options.port
    [exposed] = service["spec"]["ports"]
    assert {exposed["targetPort"]} == {port["name"]}
    mounts = {
        x["name"]: pathlib.PurePath(x["mountPath"]) for x in container["volumeMounts"]
    }
    assert mounts.keys() == {x["name"] for x in pod["spec"]["volumes"]}
    [argument] = container["args"]
    [(file, content)] = config["data"].items()
    assert argument == f"--config={mounts['options'] / file}"
    (tmp_path / file).write_text(content)
    given, models, _ = read_config([f"--config={tmp_path / file}"])
    options = make_parser().parse_args(given)
    assert models
    assert options.detector.startswith(str(mounts["models"]))
    [token] = options.token
    assert token.startswith(f"@{mounts['token']}/")
    with kc.serving.Server().serving() as url:
        probes = ("startupProbe", 200), ("livenessProbe", 200), ("readinessProbe", 503)
        for kind, status in probes:
            probe = container[kind]["httpGet"]
            assert probe["port"] == port["name"]
            assert httpx.get(f"{url}{probe['path']}").status_code == status  # no model
    dockerfile = (DEPLOY / "server.Dockerfile").read_text()
    assert f"EXPOSE {options.port}\n" in dockerfile


@pytest.mark.parametrize("name", ["server.yaml", "server-gpu.yaml", "training.yaml"])
def test_containers_write_to_their_volumes_only(name):
    for manifest in yaml.safe_load_all((DEPLOY / name).read_text()):
        if manifest["kind"] not in ("Deployment", "Job"):
            continue
        pod = manifest["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        [container] = pod["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        resources = container["resources"]
        assert {"memory", "ephemeral-storage"} <= resources["limits"].keys()
        assert {"cpu", "memory"} <= resources["requests"].keys()
        bounded = {x["name"] for x in pod["volumes"] if "sizeLimit" in str(x)}
        mounts = {x["mountPath"]: x["name"] for x in container["volumeMounts"]}
        assert mounts["/tmp"] in bounded


def test_images_run_as_users_and_hold_the_package_only():
    for path in DEPLOY.glob("*.Dockerfile"):
        *_, user = re.findall(r"^USER (\S+)", path.read_text(), re.M)
        assert user != "root"
    lines = (PROJECT / ".dockerignore").read_text().splitlines()
    rules = [line for line in lines if not line.startswith("#")]

    def is_sent(name):  # the last rule that matches a path or its folder counts
        path = pathlib.PurePosixPath(name)
        sent = True
        for rule in rules:
            pattern = rule.removeprefix("!")
            if any(x.match(pattern) for x in (path, *path.parents) if x.name):
                sent = rule.startswith("!")
        return sent

    links = [x for x in (PROJECT / "keras_caption/built_in").rglob("*") if x.is_file()]
    files = [str(x.resolve().relative_to(PROJECT)) for x in links]
    assert files
    assert all(map(is_sent, [*files, "pyproject.toml", "keras_caption/models/aoa.py"]))
    others = ".git/config", ".venv/bin/python", "tests/conftest.py", "docs/a.png"
    others += "saved_models/run/best.keras", "keras_caption/__pycache__/a.pyc"
    assert not any(map(is_sent, others))
