import collections
import contextlib
import dataclasses
import hashlib
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.metrics import Metrics
from apache_beam.ml.inference.base import ModelHandler, RunInference
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
from apache_beam.runners import create_runner

from keras_caption.apps.bulk.answers import Answers
from keras_caption.apps.bulk.files import is_local, read_file
from keras_caption.apps.bulk.job import HUBS, Job
from keras_caption.apps.bulk.output import (
    Counts,
    Description,
    Output,
    count_faults,
    sum_of,
)
from keras_caption.apps.bulk.shards import Shard, plan
from keras_caption.base.atomic import exclusive_file
from keras_caption.base.errors import InputError
from keras_caption.base.progress import EVERY, progress
from keras_caption.formats.faults import reason_of
from keras_caption.formats.model_files import model_file, reads_clips

# Beam's local runner. `DirectRunner` would download another runner first.
LOCAL = "apache_beam.runners.portability.fn_api_runner.FnApiRunner"
NAMESPACE = "keras_caption"
WHERE = re.compile(r" \[while running '.*'\]")  # the step that Beam adds to errors


class ShardHandler(ModelHandler):
    """Answers shards, as a model of `apache_beam.ml.inference.RunInference`.

    RunInference loads the model once in each process, for all its threads. An element
    of the pipeline is a whole shard. Batches are made within a shard, of a few photos,
    or of sentences of similar length. So no results pass through the pipeline, and a
    finished shard is on disk.

    Args:
        job: `Job`.
        output: `Output`.
    """

    def __init__(self, job: Job, output: Output):
        super().__init__()
        self.job = job
        self.output = output

    def load_model(self) -> Answers:
        return Answers(self.job)

    def run_inference(
        self,
        batch: Sequence[Shard],
        model: Answers,
        inference_args: dict[str, Any] | None = None,
    ) -> Iterator[Description]:
        for shard in batch:
            passed_over: collections.Counter[str] = collections.Counter()
            rows = model(shard.read(self.job.fields, passed_over), shard.number)
            description = self.output.write(shard.number, rows, passed_over)
            faults = count_faults(description["faults"])
            Metrics.counter(NAMESPACE, "read").inc(description["read"])
            Metrics.counter(NAMESPACE, "faults").inc(faults)
            yield description

    def get_metrics_namespace(self) -> str:
        return NAMESPACE


def run(
    job: Job,
    inputs: Sequence[str],
    prefix: str,
    *,
    format: str = "jsonl",
    shard_size: int | None = None,
    options: Sequence[str] = (),
    begin: Callable[[], None] = lambda: None,
) -> tuple[Output, Counts]:
    """Answers all records of inputs, or resumes an interrupted job.

    The model is loaded only if there is something to do.

    Args:
        job: `Job`.
        inputs: Sequence of str: files, folders and patterns, see `shards.plan`.
        prefix: str, beginning of the paths of the output.
        format: str, `"jsonl"` or `"parquet"`.
        shard_size: int or `None`, see `shards.plan`.
        options: Sequence of str, command-line options of Beam, such as
            `"--direct_num_workers=2"`.
        begin: Function that is called before the model is loaded.

    Returns:
        `Output`, and the counts of all shards together.

    Raises:
        InputError: If an input, an option or the model is wrong, or files of the prefix
            have another source.
    """
    if prefix.endswith("/"):
        raise InputError(
            f"{prefix} is a folder: name the beginning of its files too, such as "
            f"{prefix}all."
        )
    beam_options = pipeline_options(options)
    with contextlib.ExitStack() as stack:

        def load():
            begin()
            return stack.enter_context(job.checked())

        predictor = None
        clips = reads_clips(job.models)
        if clips is None:
            predictor = load()
            clips = "clip" in predictor.reads
        planned = plan(inputs, job.fields, shard_size, clips)
        output = Output(prefix, format, len(planned.shards))
        if is_local(prefix):
            stack.enter_context(exclusive_file(output.source))
        shards = [dataclasses.asdict(shard) for shard in planned.shards]
        source = [identity_of(job), shards, planned.stamps]
        every = range(output.count)
        finished = output.finished(every) if output.is_begun(source) else {}
        missing = [x for x in planned.shards if x.number not in finished]
        if missing:
            if predictor is None:
                load()
            output.begin(source)
            with watching(output.count, output.count_finished):
                execute(missing, ShardHandler(job, output), beam_options)
            finished |= output.finished({shard.number for shard in missing})
        if len(finished) < output.count:
            raise OSError(
                f"{output.count - len(finished):,} shards of {output.pattern} are "
                "missing or damaged; rerun the same command to resume."
            )
        output.delete_unfinished()
        total = sum_of(finished.values())
        counts = collections.Counter(planned.passed_over) + collections.Counter(
            total["passed_over"]
        )
        return output, {**total, "passed_over": dict(counts)}


def execute(items: list, handler: ModelHandler, options: PipelineOptions) -> None:
    """Runs a pipeline that passes each item to a handler.

    Raises:
        OSError: If the pipeline fails, for example because a disk is full.
    """
    try:
        with beam.Pipeline(options=options) as pipeline:
            # `Create` makes one bundle, for one worker; groups are distributed over
            # workers. Each group is a batch of its own, without Beam's batching: some
            # runners lose elements that it holds back until a bundle ends.
            numbered = pipeline | "Shards" >> beam.Create(list(enumerate(items)))
            batches = numbered | beam.GroupByKey() | beam.MapTuple(items_of)
            _ = batches | "Answer" >> RunInference(handler.with_no_batching())
    except Exception as error:
        *_, last = str(error).strip().splitlines() or [type(error).__name__]
        reason = WHERE.sub("", last).rstrip(".")
        raise OSError(
            f"The pipeline failed: {reason}; rerun the same command to resume."
        ) from error


def items_of(number: int, group: Iterable[Any]) -> list[Any]:
    """The items of a group as a batch."""
    return list(group)


def pipeline_options(options: Sequence[str]) -> PipelineOptions:
    """Parses options of Beam. The default runner is Beam's local one.

    Raises:
        InputError: If Beam has no such option or runner, or a value is wrong.
    """
    try:
        runner = PipelineOptions(list(options)).view_as(StandardOptions).runner
        create_runner(runner or LOCAL)  # importing its module may declare options
        parsed = PipelineOptions(list(options))
        known, passed = (
            parsed.get_all_options(drop_default=x, retain_unknown_options=x)
            for x in (False, True)
        )
    except SystemExit:
        raise InputError(
            f"Beam refuses one of {' '.join(options)}: options are --name=value."
        ) from None
    except (AttributeError, ImportError, ValueError) as error:
        reason = reason_of(error)
        raise InputError(f"--runner={runner} cannot be used: {reason}.") from None
    if unknown := sorted({*passed} - {*known}):
        raise InputError(
            f"There is no option --{unknown[0]}: neither this command nor Beam has it."
        )
    if runner is None:
        return PipelineOptions([*options, f"--runner={LOCAL}"])
    return parsed


def identity_of(job: Job) -> Any:
    """A JSON value that identifies a job. Files count by content, not by path."""
    files = {
        "models": [
            checksum_of(model_file(x) if is_local(x) else x) for x in job.models
        ],
        "detector": job.detector and checksum_of(job.detector),
        "imports": [checksum_of(path) for path in job.imports],
    }
    described = {**dataclasses.asdict(job), **files}
    if job.engine == "keras":  # as before there were others
        del described["engine"]
    return described


def checksum_of(name: Any) -> str:
    """Computes the SHA-256 of a file; returns the name of a preset as it is."""
    name = str(name)
    is_file = os.path.isfile(name)
    if not is_file and (is_local(name) or name.partition("://")[0] in HUBS):
        return name
    return hashlib.sha256(read_file(name)).hexdigest()


@contextlib.contextmanager
def watching(total: int, count_finished: Callable[[], int]) -> Iterator[None]:
    """Shows the number of finished shards during a `with` block."""
    shown, ended = count_finished(), threading.Event()

    def show():
        nonlocal shown
        before, shown = shown, count_finished()
        bar.update(shown - before)

    def watch():
        while not ended.wait(EVERY):
            with contextlib.suppress(OSError, InputError):
                show()

    with progress(total=total, unit="shards", initial=shown) as bar:
        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
        show()
