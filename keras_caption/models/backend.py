from collections.abc import Iterator
from typing import Protocol

import numpy as np
from jaxtyping import Float32, Int, Int32

from keras_caption.base.arguments import Tensor
from keras_caption.decoding import Decoding

Attended = list[list[np.ndarray | None]]  # weights of the captions of each example


class Backend(Protocol):
    """What generates captions of one batch: searches in Keras, or a file of an engine.

    The arguments `inputs` are a dict of tensors, as `InputReader.read` returns it;
    `places` int `(size,)`, the places of the examples in all input, which select the
    random numbers of samples and the entries of a list of `prefix`.
    """

    def run(
        self,
        inputs: dict[str, Tensor],
        places: Int[np.ndarray, " size"],
        n: int,
        options: Decoding,
    ) -> tuple[Int32[np.ndarray, "size n T"], Float32[np.ndarray, "size n"]]:
        """Computes tokens and scores.

        Args:
            inputs, places: As above.
            n: int, number of captions of each example.
            options: `Decoding`, which has been checked.

        Returns:
            A pair of arrays: tokens, int32 `(size, n, T)`, then PAD, and
            log-probabilities, float32 `(size, n)`, -1e9 for a caption that the options
            exclude.
        """

    def steps(
        self,
        inputs: dict[str, Tensor],
        places: Int[np.ndarray, " size"],
        options: Decoding,
    ) -> Iterator[tuple[Int32[np.ndarray, "size T"], Float32[np.ndarray, " size"]]]:
        """Yields the best tokens and their scores after each step of a search.

        Raises:
            InputError: If the texts do not grow token by token.
        """

    def attended(
        self, inputs: dict[str, Tensor], tokens: Int32[np.ndarray, "size n T"]
    ) -> Attended:
        """What each token of generated captions attends to.

        Args:
            inputs: As above.
            tokens: int32 `(size, n, T)`, of `n` captions of each example, then PAD.

        Returns:
            For each example a list with one array for each caption: attention weights,
            float32 `(tokens, M)`, of the caption's tokens, EOS included, over the
            memory's items.

        Raises:
            InputError: If there are no weights to show.
        """
