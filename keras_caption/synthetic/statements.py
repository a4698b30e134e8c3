from keras_caption.datasets.statements import Statements
from keras_caption.synthetic import moving_scenes, scenes

OF_MOVING_SCENES = Statements(moving_scenes.statement_accuracy)
OF_SCENES = Statements(
    scenes.statement_accuracy, scenes.StatementTruth, scenes.with_facts
)
