import pathlib
import pickle
from collections.abc import Iterator, Sequence
from typing import Any

import keras
from apache_beam.ml.inference.base import ModelHandler
from apache_beam.options.pipeline_options import PipelineOptions

from keras_caption.apps.bulk.pipeline import NAMESPACE, execute, watching
from keras_caption.apps.prepare import load_extractor
from keras_caption.apps.prepare.shards import ShardWriter
from keras_caption.base.atomic import replacing
from keras_caption.formats.prepared_folder import description_of

WORK = ".work"  # file in the folder of a dataset while it is prepared


class FeatureWriting:
    """Writes the shards of a prepared dataset by a pipeline, see `write_shards`.

    While the pipeline runs, a file in the folder of the dataset holds the records of
    each shard and the options of writing. Workers read this file, and load the
    extractor from its own file in the folder. All workers need the folder at the same
    path.

    Args:
        options: Options of Beam.
    """

    def __init__(self, options: PipelineOptions):
        self.options = options

    def __call__(
        self, writer: ShardWriter, shards: dict[pathlib.Path, list[Any]]
    ) -> None:
        folder = next(iter(shards)).parent.resolve()
        with replacing(folder / WORK) as partial, open(partial, "wb") as file:
            WorkPickler(file).dump(Work(writer, {p.name: x for p, x in shards.items()}))

        def count_finished():
            return sum(description_of(path).exists() for path in shards)

        try:
            with watching(len(shards), count_finished):
                names = [path.name for path in shards]
                execute(names, WorkHandler(str(folder)), self.options)
        finally:
            (folder / WORK).unlink()


class Work:
    """The writer of shards, and the records of each shard by file name."""

    def __init__(self, writer: ShardWriter, records: dict[str, list[Any]]):
        self.writer = writer
        self.records = records


class WorkPickler(pickle.Pickler):
    """Pickles objects without the extractor, a Keras model."""

    def persistent_id(self, obj):
        return "extractor" if isinstance(obj, keras.Model) else None


class WorkUnpickler(pickle.Unpickler):
    """Unpickles objects of `WorkPickler`, with the extractor of a folder."""

    def __init__(self, file: Any, folder: pathlib.Path):
        super().__init__(file)
        self.folder = folder
        self.extractor = None

    def persistent_load(self, pid):
        if self.extractor is None:
            self.extractor = load_extractor(self.folder)
        return self.extractor


class WorkHandler(ModelHandler):
    """Writes shards of a prepared dataset, as a model of RunInference.

    Args:
        folder: str, path of the dataset.
    """

    def __init__(self, folder: str):
        super().__init__()
        self.folder = pathlib.Path(folder)

    def load_model(self) -> Work:
        with open(self.folder / WORK, "rb") as file:
            return WorkUnpickler(file, self.folder).load()

    def run_inference(
        self,
        batch: Sequence[str],
        model: Work,
        inference_args: dict[str, Any] | None = None,
    ) -> Iterator[str]:
        for name in batch:
            model.writer(self.folder / name, model.records[name], tick=lambda: None)
            yield name

    def get_metrics_namespace(self) -> str:
        return NAMESPACE
