import dataclasses
from typing import Any

import numpy as np
import tensorflow_datasets as tfds

from keras_caption.apps.scenes.moving_scenes.captions import describe
from keras_caption.apps.scenes.moving_scenes.clip import (
    DIRECTIONS,
    FRAMES,
    FRAMES_PER_SECOND,
    VERBS,
)
from keras_caption.apps.scenes.moving_scenes.features import FRAME_DIM, clip_features
from keras_caption.apps.scenes.moving_scenes.rendering import SIDE, render
from keras_caption.apps.scenes.moving_scenes.stories import sample_clip
from keras_caption.apps.scenes.scenes.scene import COLOURS, KINDS
from keras_caption.batches.examples import captions_and_words, frame_features
from keras_caption.formats.splits import SPLITS


@dataclasses.dataclass(kw_only=True)
class MovingScenesConfig(tfds.core.BuilderConfig):
    """Numbers of clips of each split, and the seed that they are sampled with."""

    seed: int = 0
    train: int = 10000
    val: int = 400
    test: int = 400


class MovingScenes(tfds.core.GeneratorBasedBuilder):
    """Generated clips of moving objects, with captions and known events.

    Each clip, 16 frames of 64 x 64 at 4 frames a second, shows two to four objects of
    12 kinds and 9 colours, and two or three events, one after the other: objects move,
    turn, enter, leave, grow, shrink, touch, move away from and pass behind others. The
    features of a frame come from its pixels, and the reverse of a clip is as probable
    as the clip: directions and order can only be learned from the order of the frames.
    Since the `moving_objects` and the `events` are known, every statement of a caption
    can be judged (`keras_caption.synthetic.moving_scenes.judge`). The `image` is a film
    strip.

    The same seed gives the same clips, whatever their number.
    """

    VERSION = tfds.core.Version("1.0.0")
    BUILDER_CONFIGS = [MovingScenesConfig(name="default")]

    def _info(self):
        objects = {
            "kind": tfds.features.ClassLabel(names=KINDS),
            "colour": tfds.features.ClassLabel(names=list(COLOURS)),
        }
        events = {
            "actor": np.int64,  # number of the object
            "verb": tfds.features.ClassLabel(names=list(VERBS)),
            "direction": tfds.features.ClassLabel(names=[*DIRECTIONS, "none"]),
            "partner": np.int64,  # number of the other object, or -1
            "start": np.float32,  # seconds from the beginning of the clip
            "end": np.float32,
        }
        strip = (SIDE, SIDE * FRAMES, 3)
        return tfds.core.DatasetInfo(
            builder=self,
            description="Generated clips of moving objects, with captions and events.",
            features=frame_features(
                FRAME_DIM,
                np.float16,
                image=tfds.features.Image(shape=strip, encoding_format="jpeg"),
                moving_objects=tfds.features.Sequence(objects),
                events=tfds.features.Sequence(events),
            ),
        )

    def _split_generators(self, dl_manager):
        return {split: self._generate_examples(split) for split in SPLITS}

    def _generate_examples(self, split):
        config, number = self.builder_config, SPLITS.index(split)
        for i in range(getattr(config, split)):
            rng = np.random.default_rng((config.seed, number, i))
            yield i, make_example(rng, number * 1_000_000 + i, f"{split}_{i}")


def make_example(
    rng: np.random.Generator, image_id: int = 0, name: str = "clip"
) -> dict[str, Any]:
    """Samples a clip, renders it and describes it.

    Args:
        rng: `numpy.random.Generator`.
        image_id: int. Defaults to 0.
        name: str. Defaults to `"clip"`.

    Returns:
        dict of the features of `MovingScenes`, in NumPy.
    """
    clip = sample_clip(rng)
    captions = describe(clip.objects, clip.events, rng)
    frames = render(clip, rng)
    return {
        "image_id": image_id,
        "name": name,
        "frames": clip_features(frames, clip.tracks).astype("float16"),
        "times": np.arange(FRAMES, dtype="float32") / FRAMES_PER_SECOND,
        "image": np.concatenate(list(frames), axis=1),
        **captions_and_words(captions),
        "moving_objects": [dataclasses.asdict(o) for o in clip.objects],
        "events": [_event_features(event) for event in clip.events],
    }


def _event_features(event):
    return {
        **dataclasses.asdict(event),
        "direction": event.direction or "none",
        "partner": -1 if event.partner is None else event.partner,
        "start": event.start / FRAMES_PER_SECOND,
        "end": event.end / FRAMES_PER_SECOND,
    }
