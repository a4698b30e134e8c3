"""From records of users to predictions, for all models, engines and commands."""

from keras_caption.predict.batches import BATCH_SIZE as BATCH_SIZE
from keras_caption.predict.batches import Columns as Columns
from keras_caption.predict.batches import Rows as Rows
from keras_caption.predict.batches import count_rows as count_rows
from keras_caption.predict.batches import run_batches as run_batches
from keras_caption.predict.prediction import Example as Example
from keras_caption.predict.prediction import Fault as Fault
from keras_caption.predict.prediction import Prediction as Prediction
from keras_caption.predict.predictor import RecordPredictor as RecordPredictor
