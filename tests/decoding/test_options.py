import numpy as np
import pytest
from conftest import random_images

import keras_caption as kc
from keras_caption.decoding import beam_search, greedy_search, sample

MISTAKES = [
    ({"top_k": 5}, "`top_k` needs `temperature`"),
    ({"seed": 1}, "`seed` needs `temperature`"),
    ({"temperature": 1.0, "beam_size": 2}, "`beam_size` has no effect with"),
    ({"beam_width": 3}, "no decoding option .beam_width.\\. Did you mean beam_size"),
    ({"repetition_penalty": 1.2}, "option 'repetition_penalty'. Valid names are beam_"),
    ({"beam_size": 0}, "`beam_size`: Input should be greater than or equal to 1"),
    ({"beam_size": 2.0}, "`beam_size`: Input should be a valid integer"),
    ({"beam_size": 101}, "`beam_size`: Input should be less than or equal to 100"),
    ({"max_length": 4097}, "`max_length`: Input should be less than or equal to 4096"),
    ({"max_length": 0}, "`max_length`: Input should be greater than or equal to 1"),
    ({"length_penalty": float("nan")}, "`length_penalty`: Input should be a finite"),
    ({"length_penalty": -1}, "`length_penalty`: Input should be greater than or equal"),
    ({"block_trigrams": "no"}, "`block_trigrams`: Input should be a valid boolean"),
    ({"temperature": 0}, "`temperature`: Input should be greater than 0, received 0"),
    ({"temperature": -1.0}, "`temperature`: Input should be greater than 0"),
    ({"temperature": float("nan")}, "`temperature`: Input should be a finite number"),
    ({"temperature": True}, "`temperature`: Input should be a valid number"),
    ({"temperature": 1.0, "top_k": 0}, "`top_k`: Input should be greater than or"),
    ({"temperature": 1.0, "seed": -1}, "`seed`: Input should be greater than or equal"),
    ({"temperature": 1.0, "seed": 2**32}, "`seed`: Input should be less than"),
]


@pytest.mark.parametrize(("options", "message"), MISTAKES)
def test_mistakes_are_named(options, message, captioner, rng):
    with pytest.raises(kc.InputError, match=message):
        captioner.generate(random_images(rng), **options)


def test_searches_check_the_same_values():
    numbers = np.zeros((1, 2), "float32")
    for search, options in [
        (beam_search, {"beam_size": 0}),
        (beam_search, {"max_length": -1}),
        (greedy_search, {"max_length": 0}),
        (sample, {"numbers": numbers, "temperature": 0.0}),
        (sample, {"numbers": numbers, "top_k": -2}),
    ]:
        with pytest.raises(kc.InputError, match="Input should be"):
            search(None, None, **options)


def test_greedy_search_blocks_trigrams_if_asked(captioner, rng):
    images = random_images(rng)
    options = {"beam_size": 1, "max_length": 8}
    tokens, _ = captioner.generate_tokens(images, block_trigrams=True, **options)
    for row in tokens:
        words = [token for token in row if token]
        trigrams = list(zip(words, words[1:], words[2:], strict=False))
        assert len(set(trigrams)) == len(trigrams)
    tokens, _ = captioner.generate_tokens(images, **options)
    assert (tokens[:, :3] == tokens[:, 3:6]).all(axis=1).any()  # else repeated
