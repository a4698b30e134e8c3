import dataclasses
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from keras_caption.apps.bulk.files import read_file
from keras_caption.apps.bulk.job import Job
from keras_caption.apps.bulk.rows import Row, fault, row_of
from keras_caption.base.errors import InputError
from keras_caption.features import read_photo
from keras_caption.formats.record_files import PHOTO_BYTES, Record
from keras_caption.predict import Example, Fault

CLIP_BYTES = 2**32  # greatest size of a clip, which is read as a whole
# Numbers of places for the records of a shard. Samples depend on the place: those of
# more records would repeat the samples of the next shard.
PER_SHARD = 2**20


class Answers:
    """A loaded model that answers records. Threads may share it.

    No error is raised: a record that cannot be read or answered has a row with an
    error.

    Args:
        job: `Job`.
    """

    def __init__(self, job: Job):
        self.job = job
        self.predictor = job.load()
        self.medium = "clip" if "clip" in self.predictor.reads else "photo"

    def __call__(self, records: Iterable[Record], shard: int = 0) -> Iterator[Row]:
        """Yields the row of each record, while it reads the next records.

        Args:
            records: Iterable of `Record`.
            shard: int, number of their shard. It decides, with the place of a record in
                the shard, the random numbers of samples.
        """
        records, again = itertools.tee(records)  # for the ids of predictions
        predictions = self.predictor.stream(
            records,
            read=lambda record, place: self.read(record, shard * PER_SHARD + place),
            size_of=lambda x: len(x.photo) if isinstance(x.photo, bytes) else 0,
            faults=Exception,
            n=self.job.n_best,
            **self.job.decoding,
        )
        for record, prediction in zip(again, predictions, strict=True):
            if isinstance(prediction, Fault):
                # Each record is read as the first of a call: messages name place 0.
                reason = prediction.reason.replace("Sentence 0 ", "The sentence ")
                yield fault(record.id, reason)
            else:
                yield row_of(record.id, prediction, self.job.n_best is not None)

    def read(self, record: Record, place: int) -> Example:
        """Reads a record as an example of the predictor."""
        if record.problem:
            raise InputError(record.problem)
        values: dict[str, Any] = {}
        if record.photo is not None:
            content = record.photo
            if isinstance(content, str):
                limit = PHOTO_BYTES if self.medium == "photo" else CLIP_BYTES
                content = read_file(content, limit)
            is_photo = self.medium == "photo"
            values[self.medium] = (
                read_photo(content, record.id) if is_photo else content
            )
        if record.text is not None:
            name = "question" if "photo" in self.job.fields else "source"
            values[name] = record.text
        return dataclasses.replace(self.predictor.read(values), place=place)
