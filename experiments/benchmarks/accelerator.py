"""The papers' work on the device of this machine, with XLA and without, beside peers.

    python experiments/benchmarks/accelerator.py
    python experiments/benchmarks/accelerator.py --luo ImageCaptioning.pytorch --hf

NG-SAN with 4 + 4 layers of 512, AoANet with 6 layers and an LSTM of 1024, 36 x 2048
regions, 9,487 words; MCAN of its paper's sizes with 3,129 answers; translators with a
vocabulary of 9,712. Weights are random, and all 20 words of captions and 30 of
translations are forced. A step of training has 5 captions of 17 words an image, Adam's
update included; a self-critical one samples 5 captions beside the greedy one.

Each line is a work under one compiler and precision: the time of the first call, which
traces and compiles it, or reads the compilation if it was kept; the median of later
calls; the share of the rate of a large matrix product of that precision, measured
first; the device's peak memory; and the kernels that a call launches, where TensorFlow
has its profiler. `--luo` and `--hf` time the toolkit of a clone and Hugging Face's
MarianMT on PyTorch, eager, on the same device. `--compile N` compiles all works before,
in N processes at once.
"""

import argparse
import concurrent.futures
import functools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

from experiments.benchmarks.common import REGIONS, VOCABULARY_SIZE, arrays

CAPTIONS, TOKENS, WORDS, BEAMS = 5, 17, 20, 3
REPEATS, LONGEST = 20, 3.0  # calls whose median is taken, and seconds of them at most
SIZES = {"small": "4 + 4 x 128", "large": "6 + 6 x 512"}  # of translators
PRECISIONS = {"float32": 0, "tf32": 0, "bfloat16": 0}
COMPILERS = {"xla": True, "none": False}


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


def luo_works(folder):
    from experiments.benchmarks import luo_peer as luo

    aoa = "AoANet, "
    works = {}
    for prefix, name in ("", "transformer"), (aoa, "aoa"):
        for images in (10, 50, 200):
            works[f"{prefix}cross-entropy, {images} images"] = partial(
                luo.cross_entropy, folder, name, images
            )
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


def huggingface_works():
    from experiments.benchmarks.against_huggingface import (
        huggingface,
        huggingface_training,
    )

    return translation_works(huggingface) | {
        f"translation training {text}, 64 sentences": partial(
            huggingface_training, translated(size, 64)
        )
        for size, text in SIZES.items()
    }


def translation_works(make):
    """Works of translation that a function of a `forced_translation.Work` makes."""
    return {
        f"translation {SIZES[size]}, {text}": partial(make, translated(size, sentences))
        for size in SIZES
        for sentences, text in ((1, "one sentence"), (64, "64 sentences"))
    }


def measure_peer(names, make_works):
    """Prints, as JSON, the seconds of a peer's works of these names."""
    for name, make in make_works().items():
        if name in names:
            step = make()
            print(json.dumps({"work": name, **timed(step)}), flush=True)


# === Measurements ===


def timed(step):
    """Seconds of the first call, and the median of later ones."""
    begun = time.perf_counter()
    step()
    first, times = time.perf_counter() - begun, []
    step()
    until = time.perf_counter() + LONGEST
    while len(times) < REPEATS and (len(times) < 3 or time.perf_counter() < until):
        begun = time.perf_counter()
        step()
        times.append(time.perf_counter() - begun)
    return {"first": first, "median": statistics.median(times)}


def measure(names, precision, jit_compile, is_timed):
    """Prints, as JSON, what works take, one line each, after the rate of a product."""
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    import keras
    import tensorflow as tf

    import keras_caption as kc

    kc.compilation.keep_compilations()
    kc.compilation.set_jit_compile(jit_compile)
    tf.config.experimental.enable_tensor_float_32_execution(precision != "float32")
    if precision == "bfloat16":
        keras.config.set_dtype_policy("mixed_bfloat16")
    if is_timed:
        rate = product_rate("bfloat16" if precision == "bfloat16" else "float32")
        print(json.dumps({"rate": rate, "device": device_name()}), flush=True)
    for name in names:
        step, operations = WORKS[name]()
        reset_peak_memory()
        measured = {"work": name, "operations": operations}
        try:
            if is_timed:
                measured |= timed(step)
                measured |= {"peak": peak_memory(), "kernels": kernels_of(step)}
            else:
                begun = time.perf_counter()
                step()
                measured["first"] = time.perf_counter() - begun
        except Exception as error:  # a line of the table says so
            measured["error"] = f"{type(error).__name__}: {error}"[:300]
        print(json.dumps(measured), flush=True)
        keras.backend.clear_session()


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

    return count * 2 * size**3 / timed(lambda: float(products(x)))["median"]


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


def run(*arguments, timeout=None):
    """Lines of JSON that this script prints in a process of its own."""
    command = [sys.executable, __file__, *map(str, arguments)]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, timeout=timeout, check=False
    )
    return [json.loads(x) for x in done.stdout.splitlines() if x.startswith("{")]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--works", nargs="+", default=[*WORKS], metavar="NAME")
    parser.add_argument(
        "--precisions", nargs="+", choices=[*PRECISIONS], default=["tf32", "bfloat16"]
    )
    parser.add_argument(
        "--compilers", nargs="+", choices=[*COMPILERS], default=[*COMPILERS]
    )
    parser.add_argument("--luo", metavar="FOLDER")
    parser.add_argument("--hf", action="store_true")
    parser.add_argument("--compile", type=int, metavar="N")
    parser.add_argument("--measure", choices=("compile", "time", "luo", "hf"))
    options = parser.parse_args()
    if options.measure == "luo":
        measure_peer(options.works, lambda: luo_works(options.luo))
        return
    if options.measure == "hf":
        measure_peer(options.works, huggingface_works)
        return
    if options.measure:
        [precision], [compiler] = options.precisions, options.compilers
        is_timed = options.measure == "time"
        measure(options.works, precision, COMPILERS[compiler], is_timed)
        return
    report(options)


def report(options):
    if options.compile:
        tasks = [(w, p) for p in options.precisions for w in options.works]
        with concurrent.futures.ThreadPoolExecutor(options.compile) as pool:
            compiled = pool.map(
                lambda task: run(
                    *("--measure", "compile", "--works", task[0]),
                    *("--precisions", task[1], "--compilers", "xla"),
                ),
                tasks,
            )
            for (_, precision), lines in zip(tasks, compiled, strict=True):
                for line in lines:
                    print(f"compiled {precision}: {line}", flush=True)
    peers = {}
    for name, extra in (("luo", ["--luo", options.luo]), ("hf", [])):
        if getattr(options, name):
            lines = run("--measure", name, *extra, "--works", *options.works)
            peers |= {line["work"]: line["median"] for line in lines}
    rows = []
    for precision in options.precisions:
        for compiler in options.compilers:
            head, *lines = run(
                *("--measure", "time", "--works", *options.works),
                *("--precisions", precision, "--compilers", compiler),
            )
            print(f"{head['device']}, {precision}: {head['rate'] / 1e12:.2f} TFLOP/s")
            for line in lines:
                rows.append(row_of(line, precision, compiler, head["rate"], peers))
                print(", ".join(rows[-1]), flush=True)
    from keras_caption.evaluation import markdown_table

    print(markdown_table(COLUMNS, rows, labels=3))


COLUMNS = (
    "work",
    "precision",
    "compiler",
    "first call, s",
    "ms",
    "of the rate",
    "memory, MB",
    "kernels",
    "PyTorch, ms",
    "times as fast",
)


def row_of(line, precision, compiler, rate, peers):
    """A row of the table, of str."""
    cells = [line["work"], precision, compiler]
    if "error" in line:
        return [*cells, line["error"], *[""] * (len(COLUMNS) - 4)]
    median, peer = line["median"], peers.get(line["work"])
    return [
        *cells,
        f"{line['first']:.1f}",
        f"{1000 * median:.1f}",
        f"{line['operations'] / median / rate:.2f}",
        "" if line["peak"] is None else f"{line['peak']:,.0f}",
        "" if line["kernels"] is None else f"{line['kernels']:,}",
        f"{1000 * peer:.1f}" if peer else "",
        f"{peer / median:.1f}" if peer else "",
    ]


if __name__ == "__main__":
    main()
