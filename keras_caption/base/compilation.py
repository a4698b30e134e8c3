"""Compiled functions: when by XLA, for which shapes, and where they are kept."""

import atexit
import contextlib
import contextvars
import errno
import functools
import hashlib
import importlib.metadata
import itertools
import os
import pathlib
import re
import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Literal

import keras

from keras_caption.base.arguments import check
from keras_caption.base.caches import Cache, cache_folder
from keras_caption.base.progress import report

JitCompile = bool | Literal["auto"]

# Sizes that shapes are rounded up to. Each is up to half as large again as the one
# before it: the numbers of regions, cells and tokens of the papers are among them.
SIZES = (1, 2, 4, 8, 12, 16, 24, 36, 48, 64, 100, 128, 196, 256, 384, 512, 768, 1024)
# Rows of a batch of several examples on a GPU or TPU, at least: fewer take as long.
LEAST_ROWS = 64
# Calls with one example after which XLA pays for itself on two cores: it takes 4 s to
# compile a small captioner, and saves 15 ms a call; 200 ms of one of the papers' size.
REPEATS = 16
PATIENCE = 5.0  # seconds of compilation of which nothing is said
FOLDER_SIZE = 4 * 2**30  # greatest, in bytes, of the compilations that are kept
ROOM = 2**28  # bytes that a compilation needs at most, and that must be free
WORKING = "keras_caption_xla_"  # beginning of the name of a process's own folder
KEPT = "xla_compile_cache__*"  # names of compilations


def round_up(size: int) -> int:
    """The least of `SIZES` that is not below `size`, or a multiple of the greatest.

    Every shape is compiled once. Tensors that are padded to few sizes have few shapes.
    """
    greatest = SIZES[-1]
    rounded = next((x for x in SIZES if x >= size), None)
    return rounded or -(-size // greatest) * greatest


_default: JitCompile = "auto"


def set_jit_compile(jit_compile: JitCompile) -> None:
    """Sets what `"auto"` of models means in this process, see `JitSwitch`."""
    global _default
    check(JitCompile, jit_compile=jit_compile)
    _default = jit_compile


def round_up_rows(count: int, batch_size: int) -> int:
    """The number of rows that a batch of `count` examples is filled up to.

    Args:
        count: int, number of examples.
        batch_size: int, greatest number of rows.
    """
    is_quick = count > 1 and keras.backend.backend() == "tensorflow"
    least = LEAST_ROWS if is_quick and has_accelerator() else 1
    return min(max(round_up(count), least), batch_size)


def uses_xla(jit_compile: JitCompile) -> bool:
    """Whether XLA compiles what has this switch, as a rule.

    Args:
        jit_compile: bool; or `"auto"`: on JAX, and on TensorFlow with a GPU or TPU
            unless operations are to be deterministic, which some are not under XLA.
    """
    jit_compile = _default if jit_compile == "auto" else jit_compile
    if jit_compile != "auto":
        return jit_compile
    if keras.backend.backend() != "tensorflow":
        return keras.backend.backend() == "jax"
    from tensorflow.python.framework.config import is_op_determinism_enabled

    return has_accelerator() and not is_op_determinism_enabled()


@functools.cache
def has_accelerator() -> bool:
    """Whether TensorFlow, if it is the backend, sees a device that is no CPU."""
    if keras.backend.backend() != "tensorflow":
        return False
    import tensorflow as tf

    devices = tf.config.list_physical_devices()
    return any(device.device_type != "CPU" for device in devices)


class JitSwitch:
    """Mixin of models, ensembles and trainers: the switch `jit_compile`.

    Attributes:
        jit_compile: bool, whether XLA compiles what the model computes, as a rule. It
            may be set to a bool or to `"auto"`, the default, see `uses_xla`.
        jit_setting: What it was set to. With `"auto"` on a CPU, XLA compiles functions
            of a single example once their shape has come back some times: there it is
            faster for one example, and slower for many.
    """

    jit_setting: JitCompile = "auto"

    @property
    def jit_compile(self) -> bool:
        return uses_xla(self.jit_setting)

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "jit_compile":
            super().__setattr__(name, value)
            return
        # No setter: TensorFlow's models assign nothing that an attribute is already.
        check(JitCompile, jit_compile=value)
        super().__setattr__("jit_setting", value)

    @functools.cached_property
    def _calls(self) -> Counter:
        return Counter()

    def has_few_shapes(self, examples: int) -> bool:
        """Whether calls with so many examples should have few shapes.

        Each shape is compiled by itself on JAX, and where XLA compiles functions, or
        may do so once it has come back.
        """
        return (
            self.jit_compile
            or keras.backend.backend() == "jax"
            or self._compiles_repeats(examples)
        )

    def fill(self, count: int, batch_size: int) -> int:
        """The number of rows of a batch of `count` examples: more, if few shapes help.

        Args:
            count: int, number of examples.
            batch_size: int, greatest number of rows.
        """
        few = self.has_few_shapes(count)
        return round_up_rows(count, batch_size) if few else count

    def pays_off(self, examples: int, shape: Hashable) -> bool:
        """Whether XLA compiles a function for a shape, which is counted.

        Args:
            examples: int, number of examples of a call.
            shape: What differs from one compiled function to another.
        """
        if not self._compiles_repeats(examples):
            return self.jit_compile
        self._calls[shape] += 1
        return self._calls[shape] > REPEATS

    def _compiles_repeats(self, examples):
        is_auto = self.jit_setting == _default == "auto"
        is_tensorflow = keras.backend.backend() == "tensorflow"
        on_cpu = is_tensorflow and not has_accelerator()
        return on_cpu and is_auto and examples == 1


def setting_of(model: keras.Model) -> JitCompile:
    """What `jit_compile` of a Keras model was set to."""
    return getattr(model, "jit_setting", model.jit_compile)


def compile_function(
    function: Callable, variables: list, jit_compile: bool = False
) -> Callable:
    """`function` as one compiled graph of the running backend.

    Args:
        function: Function of nested structures of tensors, in `keras.ops`.
        variables: The Keras variables that it reads.
        jit_compile: bool, whether XLA compiles it in TensorFlow.

    Returns:
        A function of the same arguments. Under PyTorch, which runs it eagerly,
        it records no gradients.
    """
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        compiled = tf.function(
            function, autograph=False, reduce_retracing=True, jit_compile=jit_compile
        )
        if not jit_compile:
            return compiled
        shapes = tuple(tuple(v.shape) for v in variables)
        return noting_compilations(compiled, (function.__qualname__, shapes))
    if keras.backend.backend() == "jax":
        import jax

        @jax.jit
        def stateless(values, *args):
            with keras.StatelessScope(zip(variables, values, strict=True)):
                return function(*args)

        return lambda *args: stateless([v.value for v in variables], *args)

    import torch

    return torch.no_grad()(function)


def shapes_may_change() -> bool:
    """Whether tensors of the graph being traced may change their shapes in a loop.

    They may in TensorFlow's graphs, unless XLA compiles them or they are converted for
    another engine, see `constant_shapes`.
    """
    if keras.backend.backend() != "tensorflow" or _constant_shapes.get():
        return False
    import tensorflow as tf
    from tensorflow.python.ops.control_flow_util import GraphOrParentsInXlaContext

    if tf.executing_eagerly():
        return False
    return not GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph())


@contextlib.contextmanager
def constant_shapes() -> Iterator[None]:
    """Keeps the shapes of tensors constant in loops that are traced in a block."""
    token = _constant_shapes.set(True)
    try:
        yield
    finally:
        _constant_shapes.reset(token)


_constant_shapes = contextvars.ContextVar("constant_shapes", default=False)


def growing(x: Any, axis: int) -> Any:
    """`x` as the first value of a tensor that grows along an axis in a loop.

    TensorFlow's loops take shapes that change only where no size is known.
    """
    import tensorflow as tf

    shape = [None if i == axis else size for i, size in enumerate(x.shape)]
    return tf.compat.v1.placeholder_with_default(x, shape)


def one_after_another(first: Any, second: Any) -> tuple[Any, Any]:
    """Makes a compiled function compute what follows from `second` after `first`.

    Args:
        first, second: Nested structures of tensors.

    Returns:
        Both, of the same values.
    """
    if keras.backend.backend() == "jax":
        import jax

        return jax.lax.optimization_barrier((first, second))
    import tensorflow as tf

    with tf.control_dependencies(keras.tree.flatten(first)):
        return first, keras.tree.map_structure(
            lambda x: None if x is None else tf.identity(x), second
        )


def compile_from_second_call(function: Callable, variables: list) -> Callable:
    """`function`, compiled, but a first call of one example runs eagerly.

    A deep network takes much longer to trace than to run once, and once is all that
    one photo needs. A larger batch does not run eagerly, for then the outputs of all
    layers stay in memory. JAX would compile each operation of an eager call by itself:
    there the first call is compiled too.
    """
    compiled = compile_function(function, variables)
    if keras.backend.backend() != "tensorflow":
        return compiled
    is_first = itertools.chain([True], itertools.repeat(False))

    def call(*args):
        is_eager = next(is_first) and len(keras.tree.flatten(args)[0]) == 1
        return (function if is_eager else compiled)(*args)

    return call


# === Compilations that are kept ===


def keep_compilations(folder: str | os.PathLike | None = None) -> None:
    """Makes this process keep what XLA compiles, for later ones.

    A function that was compiled for the same shapes, versions and devices before is
    read in seconds. Commands call it; a program calls it before it computes anything
    with TensorFlow, which reads the setting once.

    Args:
        folder: Path of the folder. Defaults to `caches.cache_folder`.
            What was not used for the longest time is deleted beyond 4 GB. What is
            damaged there is compiled anew.
    """
    global _kept
    root = cache_folder() if folder is None else pathlib.Path(folder).absolute()
    if root is None or keras.backend.backend() == "torch":
        return
    kept = root / keras.backend.backend()
    if keras.backend.backend() == "jax":  # which warns of damage and full disks
        import jax

        jax.config.update("jax_compilation_cache_dir", str(kept))
        jax.config.update("jax_compilation_cache_max_size", FOLDER_SIZE)
        return
    of_others = rf"--tf_xla_persistent_cache_directory=\S*{WORKING}\w*"
    flags = os.environ.get("TF_XLA_FLAGS", "")
    if _kept is not None and str(_kept.working) in flags:
        return
    flags = re.sub(of_others, "", flags)  # of the process that began this one
    if "persistent_cache_directory" in flags:
        return
    try:
        _kept = KeptCompilations(kept / machine())
    except OSError as error:
        report(f"What XLA compiles is not kept: {error.strerror}.")
        return
    flag = f"--tf_xla_persistent_cache_directory={_kept.working}"
    os.environ["TF_XLA_FLAGS"] = f"{flags} {flag}".strip()


class KeptCompilations:
    """The compilations that are kept, as TensorFlow reads and writes them.

    TensorFlow fails if it cannot read a file of its folder or write to it. So it gets
    a folder of this process alone, `working`, with links to what is whole in the cache,
    of which new files are copied to the cache.

    Args:
        folder: `pathlib.Path` of the cache.

    Raises:
        OSError: If there is no room for the folder.
    """

    def __init__(self, folder: pathlib.Path):
        self.cache = Cache(folder, "what XLA compiles")
        self.working = pathlib.Path(tempfile.mkdtemp(prefix=WORKING))
        self._lock = threading.Lock()  # of `keep`: a server's models are in threads
        atexit.register(shutil.rmtree, self.working, ignore_errors=True)
        if shutil.disk_usage(self.working).free < ROOM:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        with contextlib.suppress(OSError):
            delete_oldest(folder)
        for name, path in self.cache.find().items():
            (self.working / name).symlink_to(path)

    def keep(self) -> None:
        """Copies what TensorFlow has compiled to the cache."""
        with self._lock:
            for path in self.working.glob(KEPT):
                if path.is_symlink():
                    continue
                if kept := self.cache.keep(path.name, path):
                    path.unlink()
                    path.symlink_to(kept)


_kept: KeptCompilations | None = None


def machine() -> str:
    """Name of what compiled code depends on: TensorFlow, processor and GPUs.

    It asks TensorFlow nothing, which would read its settings to answer.
    """
    gpus = pathlib.Path("/proc/driver/nvidia/gpus").glob("*/information")
    lines = [
        line
        for path in (pathlib.Path("/proc/cpuinfo"), *sorted(gpus))
        if path.exists()
        for line in path.read_text().splitlines()
        if line.startswith(("flags", "Model:"))
    ]
    described = "\n".join(dict.fromkeys(lines))
    version = importlib.metadata.version("tensorflow")
    return f"{version}-{hashlib.sha256(described.encode()).hexdigest()[:12]}"


def delete_oldest(folder: pathlib.Path, greatest: int = FOLDER_SIZE) -> None:
    """Deletes compilations beyond a number of bytes, the least recently used."""
    files = [(path, path.stat()) for path in folder.glob(KEPT)]
    files.sort(key=lambda item: max(item[1].st_atime, item[1].st_mtime), reverse=True)
    total = 0
    for path, status in files:
        total += status.st_size
        if total > greatest:
            path.unlink(missing_ok=True)


def noting_compilations(function: Callable, described: Hashable) -> Callable:
    """`function`, compiled by XLA, which says when it compiles and for how long.

    Args:
        function: Function of nested structures of tensors.
        described: What distinguishes it from others, the same in each process.
    """
    known = set()

    def call(*args):
        shapes = shapes_of(args)
        if shapes in known:
            return function(*args)
        known.add(shapes)
        with noted_compilation(), stable_names((described, shapes)):
            result = function(*args)
        if _kept is not None:
            _kept.keep()
        return result

    return call


@contextlib.contextmanager
def stable_names(described: Hashable) -> Iterator[None]:
    """Gives graphs that are traced in a block the same names in each process.

    `ops.uid` of TensorFlow 2.21 numbers graphs by all that the process has traced
    before. A compilation is kept by these names too, so that it would be found only by
    a process that does the same from its start. Without the override, a run that is
    resumed would compile anew.

    Args:
        described: What is traced; of several of one description, the first has the
            names that the next process gives to its first.
    """
    if keras.backend.backend() != "tensorflow":  # JAX names nothing by numbers
        yield
        return
    from tensorflow.python.framework import ops

    ops.get_default_graph()  # which has a number of its own, made at the first call
    digest = hashlib.sha256(repr(described).encode()).digest()
    first = int.from_bytes(digest[:4], "big") << 31  # above what is numbered otherwise
    while first in _first_names:
        first += 1 << 20
    _first_names.add(first)
    numbers, uid = itertools.count(first), ops.uid
    ops.uid = lambda: next(numbers)
    try:
        yield
    finally:
        ops.uid = uid


_first_names: set[int] = set()  # of graphs in this process


def shapes_of(args: Any) -> Hashable:
    """The shapes of all tensors of nested structures."""
    return tuple(tuple(getattr(x, "shape", ())) for x in keras.tree.flatten(args))


@contextlib.contextmanager
def noted_compilation() -> Iterator[None]:
    """Says that XLA compiles, once it has taken `PATIENCE`, and how long it took."""
    note = "XLA compiles, once for these shapes; later calls are quick."
    timer = threading.Timer(PATIENCE, report, [note])
    timer.daemon = True
    begun = time.monotonic()
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
    seconds = time.monotonic() - begun
    if seconds > PATIENCE:
        report(f"Compiled in {seconds:.0f} s.")
