import os
from typing import Any, overload

from keras_caption.models.answering import Answering
from keras_caption.models.classifier_ensemble import ClassifierEnsemble
from keras_caption.models.engine_model import EngineAnswerer, EngineGenerator
from keras_caption.models.ensemble import Ensemble
from keras_caption.models.loading import load


@overload
def load_ensemble(models: Any, kind: type[Ensemble]) -> Ensemble | EngineGenerator: ...


@overload
def load_ensemble(
    models: Any, kind: type[ClassifierEnsemble]
) -> ClassifierEnsemble | EngineAnswerer: ...


@overload
def load_ensemble(
    models: Any, kind: type[Ensemble | ClassifierEnsemble] | None = None
) -> Ensemble | ClassifierEnsemble | EngineGenerator | EngineAnswerer: ...


def load_ensemble(
    models: Any, kind: type[Ensemble | ClassifierEnsemble] | None = None
) -> Ensemble | ClassifierEnsemble | EngineGenerator | EngineAnswerer:
    """Loads models as one ensemble, or one model that another engine runs.

    Args:
        models: A model or an ensemble of `keras_caption.models`; or an argument of
            `keras_caption.models.load`; or a list of models or arguments.
        kind: Class of the ensemble. If omitted, it follows from the models.

    Raises:
        InputError: If a model cannot be loaded, is of another kind, or cannot be a
            member of the ensemble.
    """
    if isinstance(models, Ensemble | ClassifierEnsemble):
        return models
    members = models if isinstance(models, list | tuple) else [models]
    members = [load(x) if isinstance(x, str | os.PathLike) else x for x in members]
    if kind is None:
        answers = any(isinstance(member, Answering) for member in members)
        kind = ClassifierEnsemble if answers else Ensemble
    engine = EngineGenerator if kind is Ensemble else EngineAnswerer
    if len(members) == 1 and isinstance(members[0], engine):
        return members[0]
    return kind(members)
