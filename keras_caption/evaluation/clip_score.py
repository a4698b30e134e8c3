"""CLIPScore: how well captions fit images, by a model of both."""

import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from keras_caption.base.errors import InputError, missing_extras
from keras_caption.base.progress import progress
from keras_caption.features import read_photo
from keras_caption.features.hub_presets import is_preset, loading_preset
from keras_caption.predict import BATCH_SIZE

CLIP_METRICS = ("CLIPScore", "RefCLIPScore")
PROMPT = "A photo depicts "
WEIGHT = 2.5


class ClipScorer:
    """Scores captions by the cosines of CLIP's embeddings of images and texts.

    With E(c) the embedding of "A photo depicts " + c, and v that of the image,

        CLIPScore = 2.5 max(cos(E(c), v), 0)

    and RefCLIPScore is its harmonic mean with max(max_r cos(E(c), E(r)), 0) over the
    references r. The papers' figures are by `clip_vit_base_patch32`: those of other
    presets do not compare with them.

    Args:
        preset: str, of KerasHub's CLIP: a name, an address such as `hf://...`, or a
            local folder.
        photos: Path of the folder of the photos.

    Raises:
        InputError: If there is no such preset, or it is none of CLIP.

    References:
        Hessel et al., "CLIPScore: A Reference-free Evaluation Metric for Image
        Captioning", EMNLP 2021, equations 1 and 2.
    """

    def __init__(self, preset: str, photos: str | os.PathLike):
        with missing_extras():
            import keras_hub

        presets = keras_hub.models.CLIPBackbone.presets
        if not is_preset(preset, presets):
            raise InputError(
                f"There is no preset or folder of CLIP {preset!r}: KerasHub has "
                f"{', '.join(presets)}."
            )
        with loading_preset(preset, presets):
            self.backbone = keras_hub.models.CLIPBackbone.from_preset(preset)
            self.preprocessor = keras_hub.models.CLIPPreprocessor.from_preset(preset)
        self.photos = pathlib.Path(photos)

    def score(
        self,
        names: Mapping[Any, str],
        captions: Mapping[Any, str],
        references: Mapping[Any, Sequence[str]],
    ) -> dict[str, float]:
        """Computes the mean scores of captions.

        Args:
            names: dict from image id to the name of its photo in the folder.
            captions: dict from image id to str.
            references: dict from image id to a list of str. It and `names` have all
                images that have a caption.

        Returns:
            dict from the names in `CLIP_METRICS` to float.

        Raises:
            InputError: If a photo cannot be read.
        """
        images = self.embed_photos([self.photos / names[i] for i in captions])
        own = self.embed_texts(list(captions.values()))
        counts = [len(references[i]) for i in captions]
        others = self.embed_texts([text for i in captions for text in references[i]])
        fits = WEIGHT * np.maximum(np.sum(images * own, axis=1), 0)
        cosines = np.sum(others * np.repeat(own, counts, axis=0), axis=1)
        starts = np.cumsum([0, *counts[:-1]])
        agree = np.maximum(np.maximum.reduceat(cosines, starts), 0)
        total = fits + agree
        means = np.divide(
            2 * fits * agree, total, out=np.zeros_like(total), where=total > 0
        )
        return {"CLIPScore": float(fits.mean()), "RefCLIPScore": float(means.mean())}

    def embed_photos(self, paths: Sequence[str | os.PathLike]) -> np.ndarray:
        """Embeddings of photos of length 1, float64 `(photos, dim)`."""

        def embed(batch):
            images = [
                self.preprocessor.image_converter(read_photo(path)[None].astype("f4"))
                for path in batch
            ]
            return self.backbone.get_vision_embeddings(np.concatenate(images))

        return self._embed(embed, paths, "photos")

    def embed_texts(self, texts: Sequence[str]) -> np.ndarray:
        """Embeddings of texts of length 1, float64 `(texts, dim)`."""

        def embed(batch):
            prompts = [PROMPT + text for text in batch]
            tokens = self.preprocessor({"images": None, "prompts": prompts})
            return self.backbone.get_text_embeddings(tokens["token_ids"])

        return self._embed(embed, texts, "captions")

    def _embed(self, embed, items, noun):
        """Normalized embeddings of items, computed in batches."""
        starts = range(0, len(items), BATCH_SIZE)
        batches = [items[start : start + BATCH_SIZE] for start in starts]
        batches = progress(batches, f"CLIP, {noun}", unit="batches", leave=False)
        rows = np.concatenate([np.asarray(embed(x), "float64") for x in batches])
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)
