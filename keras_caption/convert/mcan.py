from typing import Any

import numpy as np

from keras_caption.convert.weights import Weights, part_of
from keras_caption.errors import InputError
from keras_caption.models import MCAN
from keras_caption.text import UNK, QuestionTokenizer
from keras_caption.text.tokenizer import SPECIAL_TOKENS

