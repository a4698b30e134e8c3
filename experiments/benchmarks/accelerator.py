"""The papers' work on the device of this machine, with XLA and without, beside peers.

    python experiments/benchmarks/accelerator.py
    python experiments/benchmarks/accelerator.py --luo ImageCaptioning.pytorch \
        --mcan mcan-vqa --hf --prepared_at_once 8

NG-SAN with 4 + 4 layers of 512, AoANet with 6 layers and an LSTM of 1024, 36 x 2048
regions, 9,487 words; MCAN of its paper's sizes with 3,129 answers; translators with a
vocabulary of 9,712. Weights are random, and all 20 words of captions and 30 of
translations are forced. A step of training has 5 captions of 17 words an image, Adam's
update included; a self-critical one samples 5 captions beside the greedy one.

Each line is a work under one compiler and precision: the time until it first ended, in
which it is traced, compiled or read where its compilation was kept; the median of later
calls; the share of the rate of a large matrix product of that precision, measured
first; the device's peak memory; and the kernels that a call launches, where TensorFlow
has its profiler. `--luo`, `--mcan` and `--hf` time the code of clones, Luo's toolkit
and MCAN's, and Hugging Face's MarianMT, on PyTorch with TF32 on the same device: eager,
and with `torch.compile` where their forward pass has fixed shapes.

Each work has a process of its own. `--prepared_at_once` of them begin together, since
compilers use many cores; they are timed one after another once all of them are ready.
"""

import argparse
import contextlib
import functools
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

import numpy as np

from experiments.benchmarks.common import REGIONS, VOCABULARY_SIZE, arrays

CAPTIONS, TOKENS, WORDS, BEAMS = 5, 17, 20, 3
REPEATS, LONGEST = 20, 3.0  # calls whose median is taken, and seconds of them at most
SIZES = {"small": "4 + 4 x 128", "large": "6 + 6 x 512"}  # of translators
PRECISIONS = "float32", "tf32", "bfloat16"
COMPILERS = "xla", "none"
PEER_COMPILERS = "eager", "torch.compile"


def captioner(name):
    import keras_caption as kc

    return kc.models.create(name, vocabulary_size=VOCABULARY_SIZE)


def operations_of(model, images, words):
    from experiments.benchmarks.training_step import operations

    return operations(model, images, words)


# === Works: functions that return a function without arguments, and its operations ===


def cross_entropy(name, images):
    import keras
    import tensorflow as tf

    import keras_caption as kc

    model = captioner(name)
    model.compile(keras.optimizers.Adam(1e-4), kc.losses.SequenceCrossEntropy())
    shape = images, CAPTIONS, TOKENS + 1
    tokens = np.random.default_rng(0).integers(4, VOCABULARY_SIZE, shape)
    batch = kc.text.teacher_forcing(
        {**arrays(images), "tokens": tokens.astype("int32")}
    )
    count = 3 * operations_of(model, images, images * CAPTIONS * TOKENS)
    return training(model, tf.data.Dataset.from_tensors(batch)), count


def self_critical(name, images):
    import keras
    import tensorflow as tf

    import keras_caption as kc

    model = captioner(name)
    shape = images, CAPTIONS, WORDS
    tokens = np.random.default_rng(0).integers(4, VOCABULARY_SIZE, shape)
    tokens = tokens.astype("int32")
    reward = kc.rewards.CiderD.from_references(tokens)
    trainer = kc.training.SelfCritical(model, reward, samples=CAPTIONS)
    trainer.compile(keras.optimizers.Adam(1e-5))
    batch = {**arrays(images), "references": tokens}
    sampled = operations_of(model, images, images * (CAPTIONS + 1) * WORDS)
    count = sampled + 3 * operations_of(model, images, images * CAPTIONS * WORDS)
    return training(trainer, tf.data.Dataset.from_tensors(batch)), count


def training(trainer, batches):
    """A step of a trainer, as `fit` takes it."""
    trainer.make_train_function()
    iterator = iter(batches.repeat())

    def step():
        logs = trainer.train_function(iterator)
        return float(logs["loss"])

    return step


def captions(name, images, beam_size=BEAMS):
    import tensorflow as tf

    model = captioner(name)
    inputs = {name: tf.constant(x) for name, x in arrays(images).items()}
    search = functools.partial(
        model.generate_tokens,
        inputs,
        batch_size=images,
        beam_size=beam_size,
        max_length=WORDS,
        min_length=WORDS,
    )
    return search, operations_of(model, images, images * beam_size * WORDS)


def answering(questions):
    from experiments.benchmarks import answering

    model = answering.make_model()
    tokens = np.full((questions, answering.WORDS), 5, "int32")
    inputs = {**arrays(questions), "question": tokens}
    count = questions * answering.operations(model, REGIONS)
    return functools.partial(model.answer, inputs, batch_size=questions), count


def answer_training(questions):
    import keras
    import tensorflow as tf

    import keras_caption as kc
    from experiments.benchmarks import answering

    model = answering.make_model()
    model.compile(keras.optimizers.Adam(1e-4), kc.losses.AnswerCrossEntropy())
    tokens = np.full((questions, answering.WORDS), 5, "int32")
    targets = np.eye(questions, answering.ANSWERS, dtype="float32")
    batch = {**arrays(questions), "question": tokens}, targets
    count = 3 * questions * answering.operations(model, REGIONS)
    return training(model, tf.data.Dataset.from_tensors(batch)), count


def translation(size, sentences):
    from experiments.benchmarks.forced_translation import ours

    work = translated(size, sentences)
    return ours(work), work.operations


def translation_training(size, sentences):
    import keras
    import tensorflow as tf

    import keras_caption as kc
    from experiments.benchmarks.forced_translation import make_model

    work = translated(size, sentences)
    model = make_model(work)
    model.compile(keras.optimizers.Adam(1e-4), kc.losses.SequenceCrossEntropy())
    begin = np.full((sentences, 1), kc.text.BOS, "int32")
    tokens = np.concatenate([begin, work.targets], axis=1)
    batch = kc.text.teacher_forcing({"source": work.sources, "tokens": tokens})
    batches = tf.data.Dataset.from_tensors(batch)
    return training(model, batches), work.training_operations


def translated(size, sentences):
    from dataclasses import replace

    from experiments.benchmarks.forced_translation import WORKS

    return replace(WORKS[size == "large"], sentences=sentences)


def partial(function, *args):
    return functools.partial(function, *args)


WORKS = {
    "cross-entropy, 10 images": partial(cross_entropy, "ngsan", 10),
    "cross-entropy, 50 images": partial(cross_entropy, "ngsan", 50),
    "cross-entropy, 200 images": partial(cross_entropy, "ngsan", 200),
    "self-critical, 10 images": partial(self_critical, "ngsan", 10),
    "greedy, 50 images": partial(captions, "ngsan", 50, 1),
    "beam 3, one image": partial(captions, "ngsan", 1),
    "beam 3, 50 images": partial(captions, "ngsan", 50),
    "beam 3, 1,000 images": partial(captions, "ngsan", 1000),
    "AoANet, cross-entropy, 10 images": partial(cross_entropy, "aoanet", 10),
    "AoANet, self-critical, 10 images": partial(self_critical, "aoanet", 10),
    "AoANet, beam 3, 50 images": partial(captions, "aoanet", 50),
    "MCAN, training, 64 questions": partial(answer_training, 64),
    "MCAN, 64 questions": partial(answering, 64),
    "translation training 4 + 4 x 128, 64 sentences": partial(
        translation_training, "small", 64
    ),
    "translation training 6 + 6 x 512, 64 sentences": partial(
        translation_training, "large", 64
    ),
    "translation 4 + 4 x 128, one sentence": partial(translation, "small", 1),
    "translation 4 + 4 x 128, 64 sentences": partial(translation, "small", 64),
    "translation 6 + 6 x 512, one sentence": partial(translation, "large", 1),
    "translation 6 + 6 x 512, 64 sentences": partial(translation, "large", 64),
}


# === Peers, of works of the same names ===
# Functions of a folder and a compiler, to dicts as `WORKS`.


def luo_works(folder, compiler="eager"):
    from experiments.benchmarks import luo_peer as luo

    names = ("", "transformer"), ("AoANet, ", "aoa")
    works = {
        f"{prefix}cross-entropy, {images} images": partial(
            luo.cross_entropy, folder, name, images, compiler != "eager"
        )
        for prefix, name in names
        for images in (10, 50, 200)
    }
    if compiler != "eager":  # shapes of the others grow word by word
        return works
    for prefix, name in names:
        works[f"{prefix}self-critical, 10 images"] = partial(
            luo.self_critical, folder, name, 10
        )
        for images, text in (1, "one image"), (50, "50 images"), (1000, "1,000 images"):
            works[f"{prefix}beam 3, {text}"] = partial(
                luo.beam_search, folder, name, images
            )
    return works | {
        "greedy, 50 images": partial(luo.beam_search, folder, "transformer", 50, 1)
    }


def mcan_works(folder, compiler="eager"):
    from experiments.benchmarks import mcan_peer as mcan

    return {
        "MCAN, training, 64 questions": partial(
            mcan.training, folder, 64, compiler != "eager"
        ),
        "MCAN, 64 questions": partial(mcan.answering, folder, 64, compiler != "eager"),
    }


def huggingface_works(_=None, compiler="eager"):
    from experiments.benchmarks.against_huggingface import (
        huggingface,
        huggingface_training,
    )

    training = {
        f"translation training {text}, 64 sentences": partial(
            huggingface_training, translated(size, 64), compiler != "eager"
        )
        for size, text in SIZES.items()
    }
    return (
        training if compiler != "eager" else training | translation_works(huggingface)
    )


def translation_works(make):
    """Works of translation that a function of a `forced_translation.Work` makes."""
    return {
        f"translation {SIZES[size]}, {text}": partial(make, translated(size, sentences))
        for size in SIZES
        for sentences, text in ((1, "one sentence"), (64, "64 sentences"))
    }


PEERS = {"luo": luo_works, "mcan": mcan_works, "hf": huggingface_works}


# === Measurements, in a process of one work ===


def measure_peer(job, folder):
    """Prints the seconds of a peer's work, as `measure` does."""
    begun = time.perf_counter()
    step = PEERS[job.system](folder, job.compiler)[job.work]()
    tell(first=warm(step, begun))
    tell(median=median_of(step))


def measure(job):
    """Prints what a work takes, as JSON: when it is ready, then when it is asked."""
    begun = time.perf_counter()
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    import keras
    import tensorflow as tf

    import keras_caption as kc

    kc.compilation.keep_compilations()
    kc.compilation.set_jit_compile(job.compiler == "xla")
    is_exact = job.precision == "float32"
    tf.config.experimental.enable_tensor_float_32_execution(not is_exact)
    is_half = job.precision == "bfloat16"
    if is_half:
        keras.config.set_dtype_policy("mixed_bfloat16")
    if job.work == PRODUCT:
        rate = product_rate("bfloat16" if is_half else "float32")
        tell(first=0)
        tell(rate=rate, device=device_name())
        return
    step, operations = WORKS[job.work]()
    reset_peak_memory()
    tell(first=warm(step, begun))
    median = median_of(step)
    tell(
        median=median,
        operations=operations,
        peak=peak_memory(),
        kernels=kernels_of(step),
    )


def warm(step, begun):
    """Seconds since `begun` until a work has ended for the first time."""
    step()
    first = time.perf_counter() - begun
    step()
    return first


def tell(**values):
    """Prints a line for the process that reports; the first one awaits its turn."""
    print(json.dumps(values), flush=True)
    if "first" in values:
        sys.stdin.readline()


def median_of(step):
    """Median seconds of a call."""
    times = []
    until = time.perf_counter() + LONGEST
    while len(times) < REPEATS and (len(times) < 3 or time.perf_counter() < until):
        begun = time.perf_counter()
        step()
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def device_name():
    import tensorflow as tf

    gpus = tf.config.list_physical_devices("GPU")
    if not gpus:
        from experiments.benchmarks.forced_translation import processor

        return processor()
    return tf.config.experimental.get_device_details(gpus[0])["device_name"]


def product_rate(dtype):
    """Floating-point operations a second of a large matrix product."""
    import tensorflow as tf

    on_gpu = bool(tf.config.list_physical_devices("GPU"))
    size, count = (8192, 10) if on_gpu else (2048, 1)
    x = tf.cast(tf.random.normal((size, size)), dtype)

    @tf.function
    def products(y):
        for _ in range(count):
            y = tf.matmul(x, y) * (1 / size)
        return tf.reduce_sum(y)

    def step():
        return float(products(x))

    warm(step, 0)
    return count * 2 * size**3 / median_of(step)


def reset_peak_memory():
    import tensorflow as tf

    if tf.config.list_physical_devices("GPU"):
        tf.config.experimental.reset_memory_stats("GPU:0")


def peak_memory():
    """Peak memory of the GPU in MB, or `None`."""
    import tensorflow as tf

    if not tf.config.list_physical_devices("GPU"):
        return None
    return tf.config.experimental.get_memory_info("GPU:0")["peak"] / 1e6


def kernels_of(step):
    """Number of kernels that a call launches on the GPU, or `None`."""
    import tensorflow as tf

    if not tf.config.list_physical_devices("GPU"):
        return None
    with tempfile.TemporaryDirectory() as folder:
        try:
            tf.profiler.experimental.start(folder)
            step()
            tf.profiler.experimental.stop()
            from tensorflow.tsl.profiler.protobuf import xplane_pb2
        except Exception:  # without the profiler's libraries
            return None
        [path] = pathlib.Path(folder).rglob("*.xplane.pb")
        space = xplane_pb2.XSpace.FromString(path.read_bytes())
    streams = [
        line
        for plane in space.planes
        if "/device:GPU" in plane.name
        for line in plane.lines
        if "Stream" in line.name
    ]
    return sum(len(line.events) for line in streams) or None


# === The table ===

PRODUCT = "a large product"


@dataclass(frozen=True)
class Job:
    """A work of a system, `"ours"` or a peer, under a compiler and a precision."""

    system: str
    work: str
    precision: str
    compiler: str

    def start(self, folder, errors):
        """Starts its process, which waits once it is ready."""
        arguments = [f"--measure={json.dumps(vars(self))}", f"--folder={folder or ''}"]
        # TensorFlow may bring CUDA libraries of another version than PyTorch's.
        backend = {} if self.system == "ours" else {"KERAS_BACKEND": "torch"}
        return subprocess.Popen(
            [sys.executable, __file__, *arguments],
            env={**os.environ, **backend},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )


def jobs_of(options):
    """The jobs that options ask for, a list of `Job`, those of a peer first."""
    jobs = []
    for name, works in PEERS.items():
        if folder := getattr(options, name):
            for compiler in options.peer_compilers:
                jobs += [
                    Job(name, work, "tf32", compiler)
                    for work in works(folder, compiler)
                    if work in options.works
                ]
    for precision, compiler in itertools.product(options.precisions, options.compilers):
        jobs += [Job("ours", work, precision, compiler) for work in options.works]
    return jobs


def results_of(jobs, options):
    """Yields pairs of a job and a dict of what it took, or of its `error`."""
    count = options.prepared_at_once
    for first in range(0, len(jobs), count):
        some = jobs[first : first + count]
        with contextlib.ExitStack() as stack:
            logs = [stack.enter_context(tempfile.TemporaryFile("w+")) for _ in some]
            processes = [
                job.start(getattr(options, job.system, None), log)
                for job, log in zip(some, logs, strict=True)
            ]
            ready = [process.stdout.readline() for process in processes]
            for job, process, line, log in zip(
                some, processes, ready, logs, strict=True
            ):
                lines = [line, *process.communicate("\n")[0].splitlines()]
                yield job, taken_of(lines) if process.returncode == 0 else error_of(log)


def taken_of(lines):
    """The values of lines that `tell` printed, as one dict."""
    return {
        name: value
        for line in lines
        if line.startswith("{")
        for name, value in json.loads(line).items()
    }


def error_of(log):
    """The last line of what a process printed on its errors."""
    log.seek(0)
    lines = [line.strip() for line in log if line.strip()]
    return {"error": lines[-1][:300] if lines else "ended without a word"}


def report(options):
    medians, rates, rows = {}, {}, []
    products = [Job("ours", PRODUCT, x, "none") for x in options.precisions]
    alone = argparse.Namespace(prepared_at_once=1)
    for job, taken in results_of(products, alone):
        rates[job.precision] = taken["rate"]
        rate = f"{taken['rate'] / 1e12:.2f} TFLOP/s"
        print(f"{taken['device']}, {job.precision}: {rate}", flush=True)
    for job, taken in results_of(jobs_of(options), options):
        if job.system != "ours" and "median" in taken:
            medians.setdefault(job.work, {})[job.compiler] = taken["median"]
        rows.append(row_of(job, taken, rates, medians))
        print(", ".join(rows[-1]), flush=True)
    from keras_caption.evaluation import markdown_table

    print(markdown_table(COLUMNS, rows, labels=4))


COLUMNS = (
    "work",
    "system",
    "precision",
    "compiler",
    "first call, s",
    "ms",
    "of the rate",
    "memory, MB",
    "kernels",
    *(f"times as fast as {x}" for x in PEER_COMPILERS),
)


def row_of(job, taken, rates, medians):
    """A row of the table, of str."""
    cells = [job.work, job.system, job.precision, job.compiler]
    if "error" in taken:
        return [*cells, taken["error"], *[""] * (len(COLUMNS) - 5)]
    median = taken["median"]
    cells += [f"{taken['first']:.1f}", f"{1000 * median:.2f}"]
    if job.system != "ours":
        return [*cells, *[""] * (len(COLUMNS) - 6)]
    of_rate = taken["operations"] / median / rates[job.precision]
    peers = medians.get(job.work, {})
    return [
        *cells,
        f"{of_rate:.2f}",
        *(f"{x:,.0f}" if x else "" for x in (taken["peak"], taken["kernels"])),
        *(f"{peers[x] / median:.1f}" if x in peers else "" for x in PEER_COMPILERS),
    ]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--works", nargs="+", default=[*WORKS], choices=[*WORKS], metavar="NAME"
    )
    parser.add_argument(
        "--precisions", nargs="+", choices=PRECISIONS, default=["tf32", "bfloat16"]
    )
    parser.add_argument("--compilers", nargs="*", choices=COMPILERS, default=COMPILERS)
    parser.add_argument("--luo", metavar="FOLDER")
    parser.add_argument("--mcan", metavar="FOLDER")
    parser.add_argument("--hf", action="store_true")
    parser.add_argument(
        "--peer_compilers", nargs="+", choices=PEER_COMPILERS, default=PEER_COMPILERS
    )
    parser.add_argument("--prepared_at_once", type=int, default=1, metavar="N")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.measure:
        report(options)
        return
    job = Job(**json.loads(options.measure))
    if job.system == "ours":
        measure(job)
    else:
        measure_peer(job, options.folder)


if __name__ == "__main__":
    main()
