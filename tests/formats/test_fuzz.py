"""Damaged files: a reader returns, or raises an `InputError` of one sentence."""

import numpy as np
import pytest
from mutations import mutate_bytes, mutate_json
from readers import READERS

import keras_caption as kc

MUTATIONS = 40  # of each file


def refusals(name, folder, mutations=MUTATIONS, seed=0):
    """Reads mutated files, any number of times.

    Args:
        name: Key of `READERS`.
        folder: Empty folder.
        mutations: Number of mutations of each file.
        seed: Seed of the mutations.

    Returns:
        Messages of the mutations that were refused, a list of str.
    """
    write, read = READERS[name]
    write(folder)
    read(folder)
    rng = np.random.default_rng(seed)
    messages = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        good = path.read_bytes()
        for number in range(mutations):
            structured = path.suffix == ".json" and number % 2
            path.write_bytes((mutate_json if structured else mutate_bytes)(rng, good))
            try:
                read(folder)
            except kc.InputError as error:
                messages.append(str(error))
        path.write_bytes(good)
    return messages


@pytest.mark.parametrize("name", READERS)
def test_damaged_files_are_read_or_refused(name, tmp_path):
    messages = refusals(name, tmp_path)
    assert messages
    assert not any("\n" in message for message in messages)
