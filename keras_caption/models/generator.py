import functools

import keras
from keras import ops

from keras_caption.decoding import beam_search, compile_function, greedy_search, sample
from keras_caption.features import read_photo, resize_photo


class Generator:
    """Generates captions: a captioner's part, and that of an ensemble of them.

    Whoever inherits it has a `name`, a `vocabulary` and an `extractor` (or `None`),
    `variables`, and `image_inputs`, `encode`, `start` and `step`.
    """

    def generate(self, inputs, **options):
        """Captions of a batch of images.

        Args:
            inputs: dict as of a call, of arrays or tensors; `tokens` are ignored.
            **options: Of `generate_tokens`.

        Returns:
            A list of str, one for each image.

        Raises:
            ValueError: If the model was made without a vocabulary.
        """
        if self.vocabulary is None:
            raise ValueError(
                f"The model '{self.name}' was made without a vocabulary: it can "
                "`generate_tokens`, but no words."
            )
        tokens, _ = self.generate_tokens(inputs, **options)
        return [self.vocabulary.decode(row) for row in tokens]

    def generate_from_images(self, images, **options):
        """Captions of photos.

        Args:
            images: List of paths, or of uint8 arrays `(height, width, 3)`.
            **options: Of `generate_tokens`.

        Returns:
            A list of str, one for each photo.

        Raises:
            InputError: If a photo cannot be read.
            ValueError: If the model has no extractor.
        """
        return self.generate(self.extract(images), **options)

    def extract(self, images):
        """What the model reads of photos, made as the data it was trained on.

        Args:
            images: Of `generate_from_images`.

        Returns:
            dict of tensors, see `keras_caption.features.Extractor`.
        """
        if self.extractor is None:
            raise ValueError(
                f"The model '{self.name}' does not know how its features are made of "
                "photos: it has no `extractor`."
            )
        size = self.extractor.image_size
        photos = [
            image if hasattr(image, "shape") else read_photo(image) for image in images
        ]
        photos = ops.stack([resize_photo(photo, size) for photo in photos])
        if self.extractor not in self._compiled_functions:
            self._compiled_functions[self.extractor] = compile_function(
                self.extractor, self.extractor.variables
            )
        return self._compiled_functions[self.extractor](photos)

    def caption(self, batches, **options):
        """Captions of a data set.

        Args:
            batches: Iterable of batches with `image_id` beside the model's inputs,
                as `keras_caption.data.image_batches` makes them.
            **options: Of `generate_tokens`.

        Returns:
            dict from image id to str.
        """
        captions = {}
        for batch in batches:
            image_ids = ops.convert_to_numpy(batch["image_id"]).tolist()
            generated = self.generate(batch, **options)
            captions.update(zip(image_ids, generated, strict=True))
        return captions

    def generate_tokens(
        self,
        inputs,
        beam_size=3,
        max_length=20,
        length_penalty=0.0,
        block_trigrams=False,
        keep_greedy=True,
        temperature=None,
        top_k=None,
        seed=None,
    ):
        """Captions of a batch of images, as tokens with their scores.

        Args:
            inputs: dict as of a call, of arrays or tensors; `tokens` are ignored.
            beam_size: Branches of a beam search; 1 is greedy search.
            max_length: Greatest number of words.
            length_penalty, block_trigrams, keep_greedy: Of
                `keras_caption.decoding.beam_search`.
            temperature: Where given, captions are drawn at random instead, at this
                temperature.
            top_k: With `temperature`, draw from so many most probable words.
            seed: With `temperature`, int that makes the draw repeatable.

        Returns:
            Tokens, int32 `(batch, max_length)`, from the first word to EOS, then
            PAD; and log-probabilities, float32 `(batch,)`. NumPy arrays.

        Raises:
            ValueError: If the temperature is not positive.
        """
        inputs = self.image_inputs(inputs)
        if temperature is not None:
            if temperature <= 0:
                raise ValueError(
                    "`temperature` must be positive; greedy search is `beam_size=1`. "
                    f"Received: {temperature}"
                )
            shape = (len(next(iter(inputs.values()))), max_length)
            numbers = keras.random.uniform(shape, seed=seed)
            search = self._compiled(sample, temperature=temperature, top_k=top_k)
            tokens, scores = search(inputs, numbers)
        elif beam_size == 1:
            search = self._compiled(greedy_search, max_length=max_length)
            tokens, scores = search(inputs)
        else:
            search = self._compiled(
                beam_search,
                beam_size=beam_size,
                max_length=max_length,
                length_penalty=length_penalty,
                block_trigrams=block_trigrams,
                keep_greedy=keep_greedy,
            )
            tokens, scores = (x[:, 0] for x in search(inputs))
        return ops.convert_to_numpy(tokens), ops.convert_to_numpy(scores)

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
