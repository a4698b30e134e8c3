import keras
from keras import ops


@keras.saving.register_keras_serializable("keras_caption")
class WordEmbedding(keras.layers.Layer):
    """Word embeddings, scaled by `sqrt(dim)` as in a Transformer.

    The table is scaled before words are looked up, not the words after: that
    makes its gradient one dense tensor. The sparse gradient of a plain look-up
    holds a word as often as it occurs, and optimizers with moments treat the
    occurrences as separate words. Where no gradient is wanted, as word by word in
    a search, `look_up` spares the scaling of the whole table.

    Args:
        vocabulary_size: Number of words.
        dim: Size of an embedding.

    Call arguments:
        tokens: int `(...)`.

    Returns:
        `(..., dim)`.
    """

    def __init__(self, vocabulary_size, dim, **kwargs):
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.dim = dim

    def build(self, tokens_shape):
        self.embeddings = self.add_weight(
            (self.vocabulary_size, self.dim),
            initializer=keras.initializers.RandomNormal(stddev=self.dim**-0.5),
            name="embeddings",
        )

    def call(self, tokens):
        return ops.take(self.embeddings * self.dim**0.5, tokens, axis=0)

    def look_up(self, tokens):
        """The same as a call; its gradient is sparse."""
        words = ops.cast(ops.take(self.embeddings, tokens, axis=0), self.compute_dtype)
        return words * self.dim**0.5

    def score(self, x):
        """Scores of all tokens, `(..., vocabulary_size)`: products with embeddings.

        Args:
            x: float `(..., dim)`.
        """
        table = ops.transpose(ops.cast(self.embeddings, self.compute_dtype))
        return ops.matmul(x, table)

    def compute_output_shape(self, tokens_shape):
        return (*tokens_shape, self.dim)

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "dim": self.dim,
        }
