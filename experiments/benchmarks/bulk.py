"""The command `bulk` beside `caption`, `translate` and `prepare`: time and memory.

    python experiments/benchmarks/bulk.py --photos images --detector yolox_nano.keras \
        --weights mobilenet_7_5_224_tf_no_top.weights.h5 --sentences test.en \
        [--many 20000]

Each command runs in a process of its own, over FEW and then over MANY records, the same
ones again if there are not so many. The rate, and the CPU time of a record, are of the
records between; start-up is what is left of the time of FEW. `1 worker` and `2 workers`
are processes of Beam's local runner; `engine` is a pipeline whose shards do nothing.
The translator, `transformer_tiny`, has random weights. Peak memory is of the largest
process; with --many, of so many photos too.
"""

import argparse
import itertools
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import keras_caption as kc

FEW, MANY = 100, 1000
SHARD_SIZE = 100
KINDS = ("alone", "1 worker", "2 workers")
WORKERS = {
    "1 worker": [],
    "2 workers": ["--direct_num_workers=2", "--direct_running_mode=multi_processing"],
}
ENGINE = """
import sys
import apache_beam as beam
from keras_caption.bulk import pipeline_options
with beam.Pipeline(options=pipeline_options(sys.argv[2:])) as pipeline:
    items = pipeline | beam.Create(range(int(sys.argv[1]))) | beam.Reshuffle()
    items | beam.Map(lambda x: x)
"""


def measure(command):
    """Time, CPU time, both in seconds, and peak memory in MB of a command."""
    start = time.monotonic()
    with tempfile.TemporaryFile("w+") as output:
        command = [sys.executable, *map(str, command)]
        process = subprocess.Popen(command, stdout=output, stderr=output)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - start
        if status:
            output.seek(0)
            sys.exit(f"{command}: {output.read()[-2000:]}")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def repeated(items, count):
    return list(itertools.islice(itertools.cycle(items), count))


def write_photos(photos, count, folder):
    """A folder of links to so many photos, and a list of their paths."""
    names = []
    (folder / "photos").mkdir()
    for i, path in enumerate(repeated(photos, count)):
        names.append(folder / "photos" / f"{i:06}{path.suffix}")
        names[-1].symlink_to(path)
    (folder / "photos.txt").write_text("".join(f"{name}\n" for name in names))
    return folder / "photos"


def make_translator(lines, folder):
    words = kc.text.WordTokenizer.build(lines, 1)
    model = kc.models.create("transformer_tiny", source=words, target=words)
    model.save(folder / "translator.keras")
    return folder / "translator.keras"


def commands_of(task, count, options, folder):
    """The command of a task over so many records, by kind."""
    program = ["-m", "keras_caption_cli"]
    shards = f"--shard_size={SHARD_SIZE}"
    if task == "engine":
        count = max(1, count // SHARD_SIZE)
        return {kind: ["-c", ENGINE, count, *WORKERS[kind]] for kind in KINDS[1:]}
    if task == "translate":
        lines = options.sentences.read_text().splitlines()
        text = folder / "text.en"
        text.write_text("".join(f"{x}\n" for x in repeated(lines, count)))
        model = make_translator(lines, folder)
        alone = ["translate", model, "--input", text, f"--output={folder / 'alone'}"]
        bulk = ["bulk", task, model, text]
    else:
        photos = sorted(options.photos.resolve().glob("*.jpg"))
        photos = write_photos(photos, count, folder)
        if task == "caption":
            of_model = [f"--detector={options.detector}"]
            alone = [task, photos, *of_model, f"--output={folder / 'alone.jsonl'}"]
            bulk = ["bulk", task, photos, *of_model]
        else:
            flags = ["--photos", photos, "--weights", options.weights]
            flags += ["--argument", "alpha=0.75", shards]
            alone = ["prepare", *flags, f"--output_dir={folder / 'alone'}"]
            bulk = ["bulk", task, *flags]
    commands = {"alone": [*program, *alone]}
    for kind, of_beam in WORKERS.items():
        output = folder / kind.replace(" ", "_")
        to = [f"--output_dir={output}"]
        if task != "features":
            to = [f"--output={output}", shards]
        commands[kind] = [*program, *bulk, *to, *of_beam]
    return commands


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name in ("photos", "detector", "weights", "sentences"):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    parser.add_argument("--tasks", default="engine,caption,translate,features")
    parser.add_argument("--many", type=int, default=0)
    options = parser.parse_args()
    for task in filter(None, options.tasks.split(",")):
        runs = {}
        for count in (FEW, MANY):
            with tempfile.TemporaryDirectory() as folder:
                folder = pathlib.Path(folder)
                for kind, command in commands_of(task, count, options, folder).items():
                    runs.setdefault(kind, []).append(measure(command))
        for kind, ((before, cpu_before, _), (seconds, cpu, peak)) in runs.items():
            if task == "engine":
                print(
                    f"{task:10}{kind:10}{seconds:6.1f} s, {cpu:5.1f} s of CPU, "
                    f"{peak:,.0f} MB",
                    flush=True,
                )
                continue
            rate = (MANY - FEW) / max(seconds - before, 1e-9)
            each = 1000 * (cpu - cpu_before) / (MANY - FEW)
            print(
                f"{task:10}{kind:10}{rate:7.1f} records/s, {each:6.1f} ms of CPU each, "
                f"{cpu_before - FEW * each / 1000:5.1f} s of CPU to start, "
                f"{peak:,.0f} MB",
                flush=True,
            )
    if options.many:
        for count in (MANY, options.many):
            with tempfile.TemporaryDirectory() as folder:
                folder = pathlib.Path(folder)
                command = commands_of("caption", count, options, folder)["1 worker"]
                seconds, _, peak = measure(command)
            print(f"{count:,} photos: {seconds:,.0f} s, {peak:,.0f} MB", flush=True)


if __name__ == "__main__":
    main()
