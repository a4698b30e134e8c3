"""Generated sentences about scenes, with their translations."""

from keras_caption.apps.scenes.scene_sentences.builder import (
    SceneSentences,
    SceneSentencesConfig,
)
from keras_caption.apps.scenes.scene_sentences.grammar import sample_pair

__all__ = ["SceneSentences", "SceneSentencesConfig", "sample_pair"]
