import functools

import keras
from keras import ops

from keras_caption.decoding import beam_search, compile_function, greedy_search, sample


class Generator:
    """Generates captions: a captioner's part, and that of an ensemble of them.

    Whoever inherits it has a `name`, a `vocabulary` (or `None`), `variables`, and
    `image_inputs`, `encode`, `start` and `step`.
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
        """
        inputs = self.image_inputs(inputs)
        if temperature is not None:
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
    def _searches(self):
        return {}

    def _compiled(self, search, **options):
        """A function from image inputs to what `search` finds, compiled once."""
        key = (search, *options.items())
        if key not in self._searches:

            def find(inputs, *args):
                return search(self, self.encode(inputs), *args, **options)

            self._searches[key] = compile_function(find, self.variables)
        return self._searches[key]
