"""What JoeyNMT takes for the batches of against_joeynmt.py; run in its environment.

    python joeynmt_peer.py FOLDER

FOLDER holds `settings.json` and `batches.npz`; `seconds.json` is written beside them.
"""

import json
import pathlib
import sys
import time

import numpy as np
import torch
from joeynmt.batch import Batch
from joeynmt.model import build_model
from joeynmt.search import search
from joeynmt.vocabulary import Vocabulary


class Words(Vocabulary):
    """A vocabulary of so many words, with special tokens in our order."""

    def __init__(self, size):
        tokens = ["<pad>", "<s>", "</s>", "<unk>"]
        self._itos = tokens + [str(i) for i in range(len(tokens), size)]
        self._stoi = {token: i for i, token in enumerate(self._itos)}
        self.specials, self.lang_tags = tokens, []
        self.pad_index, self.bos_index, self.eos_index, self.unk_index = range(4)
        self.sep_index = None


def make_model(settings):
    sizes = {
        "type": "transformer",
        "num_layers": settings["num_layers"],
        "num_heads": settings["num_heads"],
        "hidden_size": settings["model_dim"],
        "ff_size": settings["feedforward_dim"],
        "dropout": settings["dropout"],
        "layer_norm": "post",
        "embeddings": {"embedding_dim": settings["model_dim"], "scale": True},
    }
    shared = {"tied_embeddings": True, "tied_softmax": True}
    words = Words(settings["vocabulary_size"])
    torch.manual_seed(0)
    model = build_model({"encoder": sizes, "decoder": sizes, **shared}, words, words)
    model.loss_function = "crossentropy", settings["label_smoothing"]
    return model


def make_batch(source, tokens, is_train):
    source = torch.from_numpy(source).long()
    return Batch(
        src=source,
        src_length=(source != 0).sum(1),
        src_prompt_mask=None,
        trg=torch.from_numpy(tokens).long() if is_train else None,
        trg_prompt_mask=None,
        indices=torch.arange(len(source)),
        device=torch.device("cpu"),
        pad_index=0,
        eos_index=2,
        is_train=is_train,
    )


def train(model, batches):
    """Seconds of an epoch, as `TrainManager` does its steps."""
    optimizer = torch.optim.Adam(model.parameters(), 1e-3, (0.9, 0.98), 1e-9)
    model.train()
    for _ in range(2):  # the first warms up
        start = time.perf_counter()
        for source, tokens in batches:
            batch = make_batch(source, tokens, is_train=True)
            batch.sort_by_src_length()
            loss, _, _, _ = model(return_type="loss", **vars(batch))
            batch.normalize(loss, "tokens").backward()
            optimizer.step()
            optimizer.zero_grad()
    return time.perf_counter() - start


def translate(model, batches, options):
    """Seconds of a beam search over all batches."""
    model.eval()
    for _ in range(2):
        start = time.perf_counter()
        for source in batches:
            batch = make_batch(source, None, is_train=False)
            with torch.no_grad():
                search(model, batch, **options)
    return time.perf_counter() - start


def main(folder):
    settings = json.loads((folder / "settings.json").read_text())
    arrays = np.load(folder / "batches.npz")
    torch.set_num_threads(settings["threads"])
    model = make_model(settings)
    pairs = [
        (arrays[f"source_{i}"], arrays[f"tokens_{i}"]) for i in range(settings["steps"])
    ]
    sources = [arrays[f"test_{i}"] for i in range(settings["searches"])]
    seconds = {
        "training": train(model, pairs),
        "search": translate(make_model(settings), sources, settings["search"]),
    }
    (folder / "seconds.json").write_text(json.dumps(seconds))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
