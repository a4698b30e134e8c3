r"""Serves models over HTTP.

    keras-caption serve saved_models/ngsan_coco.keras --detector yolox_nano
    curl --data-binary @photo.jpg localhost:8501/v1/models/ngsan_coco:answer

A MODEL is a .keras file, the folder of a run, a preset, or an export, which needs
TensorFlow but no Keras. If a folder holds numbered exports, as a run does, the newest
one is served; a newer one replaces it as soon as it is loaded and warmed up. NAME=MODEL
sets the name of a model, which defaults to the name of its file or folder. An existing
path is never split at its "=".

The interface is TensorFlow Serving's: GET /v1/models/NAME[/versions/N|/labels/L], with
/metadata; POST :predict. In addition, POST :answer reads records, or a file of a photo,
and POST /v1/chat/completions, /v1/responses, /api/generate and /api/chat read a chat in
the forms of OpenAI and Ollama; GET /v1/models lists the models, and GET / prints help;
/healthz, /readyz and /metrics are for monitoring. The port opens at once; a model
answers when it is loaded.

--config FILE reads options from a YAML file, by their names. Options of the command
line replace or extend them:

    models: [ngsan_coco, answers=mcan_photos]
    detector: yolox_nano
    host: 0.0.0.0
    token: ["@/run/secrets/one", "@/run/secrets/two"]

Serve trusted models only: an export runs its graph, which may read and write files.
Requests may come from strangers: they cannot name files, and have limits (SECURITY.md).
"""

import contextlib
import dataclasses
import functools
import os
import pathlib
from collections.abc import Iterator, Sequence

from keras_caption.apps.serve import Limits
from keras_caption.base.arguments import Port, SecondsAboveZero, entries
from keras_caption.base.errors import InputError, missing_extras
from keras_caption.base.progress import report
from keras_caption.commands.command_line import (
    Parser,
    add_jit_compile,
    named_path,
    number,
    option,
    quiet,
    set_jit_compile,
)
from keras_caption.commands.detection import add_detector_options, add_second_opinion
from keras_caption.commands.engines import KERAS, add_engine_option, engine_for
from keras_caption.formats.faults import check_file

CONFIG_BYTES = 2**20
EARLIER_KERAS = "TF_USE_LEGACY_KERAS"  # a variable that TensorFlow reads


def make_parser() -> Parser:
    parser = Parser("keras-caption serve", __doc__, imports=True, needs_library=False)
    parser.add_argument(
        "models", nargs="*", metavar="MODEL", help="model, or NAME=MODEL"
    )
    add_engine_option(parser)
    add_detector_options(parser, "if omitted, such models read no photos")
    # It runs outside of graphs: :predict would read no photos any more.
    add_second_opinion(parser, default=False)
    parser.add_argument(
        "--label",
        action="append",
        default=[],
        metavar="NAME=N",
        help="label of version N of all models that have it; it stays served",
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on; 0.0.0.0, or :: with IPv6, is reachable from "
        "everywhere",
    )
    parser.add_argument("--port", type=number(Port), default=8501)
    parser.add_argument(
        "--token",
        action="append",
        default=[],
        help="bearer token that requests need; @FILE reads it from a file; may be "
        "repeated, for several users",
    )
    parser.add_argument(
        "--certificate", metavar="FILE", help="TLS certificate in PEM, for HTTPS"
    )
    parser.add_argument(
        "--key",
        metavar="FILE",
        help="private key of the certificate in PEM, if it is in a separate file",
    )
    parser.add_argument(
        "--config", metavar="FILE", help="YAML file of options, by these names"
    )
    parser.add_argument(
        "--poll",
        type=number(SecondsAboveZero),
        default=1.0,
        help="seconds between two searches for new versions",
    )
    parser.add_argument(
        "--warm_beam",
        action="append",
        default=[],
        type=functools.partial(option, "beam_size"),
        metavar="N",
        help="width of beams, beside the model's own, that is compiled before requests "
        "ask for it; may be given several times",
    )
    texts = entries(Limits)
    for field in dataclasses.fields(Limits):
        parser.add_argument(
            f"--{field.name}",
            type=number(field.type),
            default=field.default,
            help=f"{texts[field.name]}; defaults to {field.default}",
        )
    add_jit_compile(parser)
    return parser


def main(arguments: Sequence[str]) -> None:
    file_arguments, models, rest = read_config(arguments)
    parser = make_parser()
    options = parser.parse_args([*file_arguments, *rest])
    options.models = [*models, *options.models]
    if not options.models:
        parser.error("the following arguments are required: MODEL")
    names = [field.name for field in dataclasses.fields(Limits)]
    limits = Limits(**{name: getattr(options, name) for name in names})
    labels = dict(label_of(text) for text in options.label)
    named = [named_path(model) for model in options.models]
    engines = [engine_for([path], options, ()) for _, path in named]
    with quiet(), without_keras():
        from keras_caption.apps.serve import Server  # needs the extra `serve`
        from keras_caption.apps.serve.server import url_of

    set_jit_compile(options)
    tokens = [token_of(text) for text in options.token]
    tls = options.certificate, options.key
    server = Server(
        limits, tokens, True, *tls, options.warm_beam, options.second_opinion
    )
    for (name, path), engine in zip(named, engines, strict=True):
        server.add(
            path,
            name,
            options.detector,
            options.confidence,
            labels,
            later=True,
            engine=None if engine == KERAS else engine,
        )
    address = url_of(options.host, options.port, server.scheme)

    def load():
        server.load()
        models = server.service.models.values()
        versions = [x for model in models for x in model.versions.values()]
        if not versions:  # a signal has ended the server meanwhile
            return
        if options.detector and not any("photo" in x.model.reads for x in versions):
            raise InputError(f"No model takes --detector {options.detector}.")
        server.watch(options.poll)
        for name in server.service.models:
            report(f"{name} is served at {address}/v1/models/{name}")

    server.run(options.host, options.port, load)


def read_config(arguments: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """Reads the file that `--config` of a command line names.

    Returns:
        The options of the file as arguments of a command line; the models of the file;
        and the command line without `--config`.

    Raises:
        InputError: If the file cannot be read, or is no YAML of options.
    """
    parser = Parser("keras-caption serve", "", needs_library=False, add_help=False)
    parser.add_argument("--config")
    options, others = parser.parse_known_args(arguments)
    if options.config is None:
        return [], [], list(arguments)
    with missing_extras():
        import yaml

    path = pathlib.Path(options.config)
    check_file(path, CONFIG_BYTES)
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{options.config} cannot be read: {reason}.") from None
    if not isinstance(values, dict):
        raise InputError(f"{options.config} should have a value for each option.")
    read, models = [], []
    for name, value in values.items():
        several = value if isinstance(value, list) else [value]
        for x in several:
            if not isinstance(x, str | int | float):
                raise InputError(
                    f"{options.config}: {name} should be a text or a number, or a list "
                    "of these."
                )
        texts = [str(x).lower() if isinstance(x, bool) else str(x) for x in several]
        if name == "models":
            models = texts
        else:
            read += [f"--{name}={text}" for text in texts]
    return read, models, others


@contextlib.contextmanager
def without_keras() -> Iterator[None]:
    """Keeps the import of TensorFlow in a `with` block from importing Keras.

    Exports need no Keras. If the variable is set, TensorFlow tries to import the
    earlier Keras, `tf_keras`, and continues without it if it is not installed.
    """
    before = os.environ.get(EARLIER_KERAS)
    os.environ[EARLIER_KERAS] = "1"
    try:
        yield
    finally:
        del os.environ[EARLIER_KERAS]
        if before is not None:
            os.environ[EARLIER_KERAS] = before


def label_of(text: str) -> tuple[str, int]:
    """Parses `NAME=N`, a label and the number of a version."""
    name, _, number = text.partition("=")
    if not name or not number.isdecimal():
        raise InputError(f"--label {text} should be NAME=N, such as stable=2.")
    return name, int(number)


def token_of(text: str) -> str:
    """The token of an option, which may be in a file."""
    if not text.startswith("@"):
        return text
    try:
        token = pathlib.Path(text[1:]).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise InputError(f"--token {text} cannot be read: {error}.") from None
    if not token:
        raise InputError(f"--token {text} is empty.")
    return token
