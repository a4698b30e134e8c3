"""Works through the plan of all trainings (experiments/papers/plan.py)."""

import pathlib
import resource
import shlex
import subprocess
import sys
import time

from experiments import results
from experiments.papers import archives
from experiments.papers.plan import PLAN, PREPARED
from keras_caption.base.atomic import exclusive
from keras_caption.base.errors import InputError

SCRIPTS = pathlib.Path(__file__).parents[1]
STOPS = 60  # seconds that a cell has to stop in, once the budget is spent


def run_all(output_dir, data, budget=None):
    """Trains what the plan lacks, and rebuilds the results after each cell.

    Args:
        output_dir: Folder of the runs, one for each set-up.
        data: Folder that `{data}` stands for in the plan.
        budget: Hours after which to stop, or `None`.

    Raises:
        InputError: At the end, if the training of a cell failed.
    """
    end = None if budget is None else time.monotonic() + 3600 * budget
    failed = []
    with exclusive(pathlib.Path(output_dir)):
        for training, cell in cells():
            if archives.is_archived(training, cell):
                continue  # by an earlier table of the same set-up, too
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                break
            name = f"{training.setup}/{cell}"
            if name in failed:
                continue
            print(f"\n{progress()}\nRunning: {name}", flush=True)
            code = train(training, cell, pathlib.Path(output_dir), data, left)
            if code is None:
                break
            if code:
                failed.append(name)
                continue
            results.rebuild()
    print(f"\n{progress()}")
    if failed:
        raise InputError(
            f"{', '.join(failed)} failed. The same command trains them again."
        )


def cells():
    """Yields pairs of a `Training` and the name of a cell, in the order of the plan."""
    for training in PLAN:
        for cell in training.rows:
            yield training, cell


def progress():
    """How far the plan is, and the hours that the rest takes on one core."""
    done, minutes, unknown = set(), {}, 0
    for training, cell in cells():
        name = training.setup, cell
        if archives.is_archived(training, cell):
            done.add(name)
        else:
            minutes.setdefault(name, training.minutes)
    left = {name: x for name, x in minutes.items() if name not in done}
    unknown = sum(x is None for x in left.values())
    hours = sum(x or 0 for x in left.values()) / 60
    text = (
        f"Plan: {len(done)} cells done, {len(left)} left, {hours:.1f} hours of a core"
    )
    return f"{text} and {unknown} that were not measured" if unknown else text


def train(training, cell, output_dir, data, limit):
    """Trains all seeds of a cell and archives their runs.

    Returns:
        The exit status, or `None` if the limit, in seconds, was reached.
    """
    end = None if limit is None else time.monotonic() + limit
    folder = output_dir / training.setup / cell
    before = processor_seconds()
    try:
        for command in commands(training, cell, output_dir, data):
            code = run(command, None if end is None else end - time.monotonic())
            if code != 0:
                return code
    finally:
        # Of what was interrupted before, too.
        path = folder.with_name(f"{cell}_minutes.txt")
        minutes = float(path.read_text()) if path.exists() else 0.0
        minutes += (processor_seconds() - before) / 60
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{minutes:.1f}")
    arguments = training.arguments(training.rows[cell], "DATA")
    archives.archive(
        archives.path_of(training, cell),
        [folder.with_name(name) for name in training.runs_of(cell)],
        {"minutes": round(minutes, 1), "arguments": shlex.join(arguments)},
    )
    return 0


def commands(training, cell, output_dir, data):
    """Yields the commands that train a cell, lists of a script and its arguments.

    Each does nothing where it is done already.
    """
    folder = output_dir / training.setup / cell
    prepared = output_dir / "prepared" / training.setup
    script = PREPARED.get(training.setup)
    if script and not prepared.exists():
        yield [script, f"--output_dir={prepared}"]
    arguments = training.arguments(training.rows[cell], data, prepared)
    seeds = [*map(str, range(training.seeds))]
    if training.at_once:
        own = [f"--seeds={','.join(seeds)}", f"--output_dir={folder}"]
        if training.with_drift:
            own.append("--drift")
        yield ["seeds.py", *arguments, *own]
    else:
        for seed in seeds:
            own = [f"--seed={seed}", f"--output_dir={folder}_{seed}"]
            yield ["run.py", "--resume", *arguments, *own]
    for phase in training.phases if training.has_ensembles else ():
        part = archives.PHASES[phase]
        members = ",".join(str(pathlib.Path(f"{folder}_{x}", part)) for x in seeds)
        own = [
            f"--ensemble={members}",
            f"--output_dir={pathlib.Path(f'{folder}_ensemble', part)}",
        ]
        of_data = training.arguments_of_setup(data, prepared)
        yield ["run.py", "--resume", *of_data, *own]


def run(command, limit):
    """Runs a script of experiments/.

    Returns:
        Its exit status, or `None` if the limit, in seconds, was reached.
    """
    if limit is not None and limit <= 0:
        return None
    script, *arguments = command
    process = subprocess.Popen([sys.executable, SCRIPTS / script, *arguments])
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(STOPS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def processor_seconds():
    """Processor seconds of all processes that this one has waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
