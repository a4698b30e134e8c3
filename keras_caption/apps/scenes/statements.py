from keras_caption.apps.scenes import moving_scenes, scenes
from keras_caption.datasets.statements import Statements

OF_MOVING_SCENES = Statements(moving_scenes.statement_accuracy)
OF_SCENES = Statements(
    scenes.statement_accuracy, scenes.StatementTruth, scenes.with_facts
)
