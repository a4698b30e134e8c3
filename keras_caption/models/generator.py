import functools
import os

import keras
from keras import ops

from keras_caption.decoding import (
    beam_search,
    check_options,
    compile_function,
    greedy_search,
    sample,
)
from keras_caption.errors import InputError
from keras_caption.features import read_photo, resize_photo
from keras_caption.models.image_inputs import (
    check_images,
    mask_regions,
    read_inputs,
)


class Generator:
    """Generates captions: a captioner's part, and that of an ensemble of them.

    Whoever inherits it has a `name`, a `vocabulary` and an `extractor` (or `None`),
    `variables`, `image_specs`, `reads_boxes`, and `encode`, `start` and `step`.
    """

    def generate(self, inputs, **options):
        """Generates captions of a batch of images.

        Args:
            inputs: dict of arrays or tensors, as for a call; `tokens` are ignored.
            **options: Options of `generate_tokens`.

        Returns:
            A list of str, one for each image.

        Raises:
            InputError: If the model was made without a vocabulary, or as
                `generate_tokens` raises it.
        """
        if self.vocabulary is None:
            raise InputError(
                f"The model '{self.name}' was made without a vocabulary: it can "
                "`generate_tokens`, but no words."
            )
        tokens, _ = self.generate_tokens(inputs, **options)
        return [self.vocabulary.decode(row) for row in tokens]

    def generate_from_images(self, images, **options):
        """Generates captions of photos.

        Args:
            images: List of paths, or of uint8 arrays `(height, width, 3)`.
            **options: Options of `generate_tokens`.

        Returns:
            A list of str, one for each photo.

        Raises:
            InputError: If a photo cannot be read, or the model has no extractor.
        """
        return self.generate(self.extract(images), **options)

    def extract(self, images):
        """Extracts what the model reads of photos, as its training data were made.

        Args:
            images: List of paths, or of uint8 arrays `(height, width, 3)`.

        Returns:
            dict of tensors, see `keras_caption.features.Extractor`.

        Raises:
            InputError: If a photo cannot be read, or the model has no extractor.
        """
        if self.extractor is None:
            raise InputError(
                f"The model '{self.name}' does not know how its features are made of "
                "photos: it has no `extractor`."
            )
        if isinstance(images, (str, bytes, os.PathLike)) or not len(images):
            raise InputError(
                "Photos should be a list of at least one path or array. "
                f"Received: {images!r}"
            )
        size = self.extractor.image_size
        photos = [resize_photo(to_pixels(image), size) for image in images]
        photos = ops.stack(photos)
        if self.extractor not in self._compiled_functions:
            self._compiled_functions[self.extractor] = compile_function(
                self.extractor, self.extractor.variables
            )
        return self._compiled_functions[self.extractor](photos)

    def caption(self, batches, **options):
        """Generates captions of a data set.

        Args:
            batches: Iterable of batches with `image_id` beside the model's inputs,
                as `keras_caption.data.image_batches` makes them.
            **options: Options of `generate_tokens`.

        Returns:
            dict from image id to str.
        """
        captions = {}
        for batch in batches:
            image_ids = ops.convert_to_numpy(batch["image_id"]).tolist()
            generated = self.generate(batch, **options)
            captions.update(zip(image_ids, generated, strict=True))
        return captions

    def generate_tokens(self, inputs, beam_size=None, **options):
        """Generates captions of a batch of images, as tokens with their scores.

        Args:
            inputs: dict of arrays or tensors, as for a call; `tokens` are ignored.
            beam_size: int, beam width, defaults to 3; 1 is greedy search.
            max_length: int, greatest number of tokens, defaults to 20.
            length_penalty, block_trigrams, keep_greedy: Options of
                `keras_caption.decoding.beam_search`.
            temperature: float. If given, captions are sampled at this temperature
                instead of searched for.
            top_k: int. With `temperature`, sample from the k most probable tokens.
            seed: int. With `temperature`, makes the samples repeatable.

        Returns:
            Tokens, int32 `(batch, max_length)`, from the first word to EOS, then
            PAD; and log-probabilities, float32 `(batch,)`. NumPy arrays.

        Raises:
            InputError: If an option is unknown, wrong or without effect, or an image
                cannot be captioned: it has no valid region, features that are not
                finite, or boxes that are not divided by its width and height.
        """
        options = {"beam_size": beam_size, **options}
        options = {k: value for k, value in options.items() if value is not None}
        check_options(options)
        images = read_inputs(self, inputs)
        check_images(images, inputs.get("image_id"))
        images = self.image_inputs(images)
        max_length = options.pop("max_length", 20)
        if "temperature" in options:
            shape = (len(next(iter(images.values()))), max_length)
            numbers = keras.random.uniform(shape, seed=options.pop("seed", None))
            tokens, scores = self._compiled(sample, **options)(images, numbers)
        elif beam_size == 1 and not options.get("block_trigrams"):
            search = self._compiled(greedy_search, max_length=max_length)
            tokens, scores = search(images)
        else:
            search = self._compiled(beam_search, max_length=max_length, **options)
            tokens, scores = (x[:, 0] for x in search(images))
        return ops.convert_to_numpy(tokens), ops.convert_to_numpy(scores)

    def image_inputs(self, inputs):
        """Takes the encoder's inputs out of a batch, as tensors, with a mask.

        If they are missing and an `image` is there, the extractor makes them.

        Args:
            inputs: dict of arrays or tensors, as for a call.

        Returns:
            dict of tensors.

        Raises:
            InputError: If an input is missing or has a wrong shape.
        """
        images = read_inputs(self, inputs)
        if "region_mask" not in self.image_specs:
            return images
        names = ("regions", "boxes", "region_mask")
        regions = {name: images[name] for name in names if name in images}
        images |= mask_regions(**regions)
        return {name: images[name] for name in self.image_specs}

    @functools.cached_property
    def _compiled_functions(self):
        return {}

    def _compiled(self, search, **options):
        """A function from image inputs to what `search` finds, compiled once."""
        key = (search, *options.items())
        if key not in self._compiled_functions:

            def find(inputs, *args):
                return search(self, self.encode(inputs), *args, **options)

            self._compiled_functions[key] = compile_function(find, self.variables)
        return self._compiled_functions[key]


def to_pixels(photo):
    """The pixels of a photo given as a path or an array.

    Raises:
        InputError: If it cannot be read, or has another shape.
    """
    if not hasattr(photo, "shape"):
        return read_photo(photo)
    if len(photo.shape) != 3 or photo.shape[-1] != 3 or 0 in photo.shape:
        raise InputError(
            "A photo's array should have the shape (height, width, 3). "
            f"Received: {tuple(photo.shape)}"
        )
    return photo
