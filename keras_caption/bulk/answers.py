import concurrent.futures
import threading
from collections.abc import Iterable, Iterator

from keras_caption.bulk.files import read_file
from keras_caption.bulk.job import Job
from keras_caption.bulk.rows import Row, fault, row_of
from keras_caption.errors import InputError
from keras_caption.features import read_photo
from keras_caption.formats.faults import reason_of
from keras_caption.formats.record_files import PHOTO_BYTES, Record
from keras_caption.models.input_reader import BATCH_SIZE

CLIP_BYTES = 2**32  # of a clip, which is read as a whole
BATCH_BYTES = 2**28  # of photos that are in memory at once, apart from the last
SENTENCES = 1024  # of which those of similar length are translated together


class Answers:
    """A model in memory, which answers records; threads may share it.

    Nothing is raised: what cannot be read, or not be answered even alone, has a row
    with an error.

    Args:
        job: `Job`.
    """

    def __init__(self, job: Job):
        self.job = job
        self.predictor = job.load()
        self.lock = threading.Lock()  # one batch at a time takes all cores
        self.medium = "clip" if "clip" in self.predictor.reads else "photo"
        self.batch_size = BATCH_SIZE if "photo" in job.fields else SENTENCES

    def __call__(self, records: Iterable[Record]) -> Iterator[Row]:
        """Yields the row of each record, while the next ones are read."""
        records = iter(records)
        with concurrent.futures.ThreadPoolExecutor() as pool:

            def begin():
                batch = self._batch(records)
                return batch, [pool.submit(self.read, record) for record in batch]

            batch, examples = begin()
            while batch:
                following = begin()
                yield from self._rows(batch, [x.result() for x in examples])
                batch, examples = following

    def _batch(self, records):
        """The next records, as many as memory takes."""
        batch, size = [], 0
        for record in records:
            batch.append(record)
            size += len(record.photo) if isinstance(record.photo, bytes) else 0
            if len(batch) == self.batch_size or size >= BATCH_BYTES:
                break
        return batch

    def read(self, record: Record) -> dict | Exception:
        """What the predictor answers, or the error of the record."""
        try:
            if record.problem:
                raise InputError(record.problem)
            values = {}
            if record.photo is not None:
                content = record.photo
                if isinstance(content, str):
                    limit = PHOTO_BYTES if self.medium == "photo" else CLIP_BYTES
                    content = read_file(content, limit)
                if self.medium == "photo":
                    content = read_photo(content, record.id)
                values[self.medium] = content
            if record.text is not None:
                name = "question" if "photo" in self.job.fields else "source"
                values[name] = record.text
            return self.predictor.read(values)
        except Exception as error:
            return error

    def _rows(self, batch, examples):
        """Rows of a batch, answered together."""
        valid = [x for x in examples if not isinstance(x, Exception)]
        answers = iter(self._answers(valid))
        for record, example in zip(batch, examples, strict=True):
            answer = example if isinstance(example, Exception) else next(answers)
            if isinstance(answer, Exception):
                yield fault(record.id, sentence_of(answer))
            else:
                yield row_of(record.id, answer, self.job.n_best is not None)

    def _answers(self, examples):
        """Predictions, or errors: one example never costs the others their answers."""
        try:
            with self.lock:
                return self.predictor.answer(
                    examples, n=self.job.n_best, **self.job.decoding
                )
        except Exception as error:
            if len(examples) == 1:
                return [error]
            return [answer for x in examples for answer in self._answers([x])]


def sentence_of(error: Exception) -> str:
    """What is wrong, of a user's mistake or any other error."""
    if isinstance(error, InputError):
        return str(error).replace("Sentence 0 ", "The sentence ")  # it is read alone
    return f"{type(error).__name__}: {reason_of(error)}."
