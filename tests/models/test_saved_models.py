import keras
from conftest import PROJECT

import keras_caption as kc
from keras_caption.data import Scenes, ScenesConfig, scenes


def test_the_trained_model_of_the_repository_captions_new_scenes(tmp_path):
    new = ScenesConfig(name="new", seed=1, train=1, val=1, test=60)
    builder = Scenes(config=new, data_dir=tmp_path)
    builder.download_and_prepare()
    examples = kc.data.read(builder, "test")
    model = keras.models.load_model(PROJECT / "saved_models" / "ngsan_scenes.keras")
    captions = model.caption(kc.data.image_batches(examples, 60))
    share, count = scenes.statement_accuracy(captions, examples)["colours"]
    assert count >= 60
    assert share > 0.9
