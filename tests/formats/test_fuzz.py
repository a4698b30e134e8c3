"""Damaged files: a reader returns, or raises an `InputError` of one sentence."""

import numpy as np
import pytest
from mutations import mutate_bytes, mutate_json
from readers import READERS

import keras_caption as kc

MUTATIONS = 40  # of each file


def fuzz(name, folder, mutations=MUTATIONS, seed=0):
    """Reads mutations of every file of a reader.

    Args:
        name: Key of `READERS`.
        folder: Empty folder.
        mutations: Number of mutations of each file.
        seed: Seed of the mutations.

    Returns:
        dict from path to the messages of the refused mutations. A file on which a
        reader fails with another error is kept, to reproduce it.
    """
    reader = READERS[name]
    reader.write(folder)
    reader.read(folder)
    rng = np.random.default_rng(seed)
    messages = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        if not any(map(path.match, reader.files)):
            continue
        content, messages[path] = path.read_bytes(), []
        for number in range(mutations):
            structured = path.suffix == ".json" and number % 2
            path.write_bytes(
                (mutate_json if structured else mutate_bytes)(rng, content)
            )
            try:
                problems = reader.read(folder)
            except kc.InputError as error:
                problems = [str(error)]
            messages[path] += problems if isinstance(problems, list) else []
        path.write_bytes(content)
    return messages


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", READERS)
def test_damaged_files_are_read_or_refused(name, tmp_path):
    for path, messages in fuzz(name, tmp_path).items():
        assert messages, path
        for message in messages:
            assert str(tmp_path) in message
            assert "\n" not in message
            assert len(message) < 1000
