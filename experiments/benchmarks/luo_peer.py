"""The work of other benchmarks by Luo's ImageCaptioning.pytorch, with random weights.

The toolkit is a clone of its repository; its Transformer, which keeps keys and values
of earlier words (`cached_transformer`), and its AoANet have the papers' sizes. Rewards
are random numbers, at no cost. On a GPU if PyTorch finds one, with TF32.
"""

import argparse
import functools
import sys

import torch

REGIONS, REGION_DIM, VOCABULARY_SIZE = 36, 2048, 9487
CAPTIONS, SAMPLES, WORDS = 5, 5, 20
SIZES = {
    "transformer": {
        "num_layers": 4,
        "N_enc": 4,
        "N_dec": 4,
        "input_encoding_size": 512,
        "rnn_size": 2048,
        "att_hid_size": 512,
        "num_att_heads": 8,
        "cached_transformer": True,
    },
    "aoa": {
        "num_layers": 2,
        "input_encoding_size": 1024,
        "rnn_size": 1024,
        "att_hid_size": 512,
        "num_heads": 8,
        "refine": 1,
        "refine_aoa": 1,
        "use_ff": 0,
        "decoder_type": "AoA",
        "use_multi_head": 2,
        "multi_head_scale": 1,
        "mean_feats": 1,
        "ctx_drop": 1,
        "dropout_aoa": 0.3,
        "use_warmup": 0,
    },
}


def device():
    """The GPU, if there is one, with TF32."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    torch.set_float32_matmul_precision("high")
    return torch.device("cuda")


def make_model(folder, name):
    """A captioner of the toolkit.

    Args:
        folder: Path of the clone.
        name: str, `"transformer"` or `"aoa"`.
    """
    sys.path.insert(0, str(folder))
    from captioning import models

    options = argparse.Namespace(
        caption_model=name,
        vocab_size=VOCABULARY_SIZE - 1,  # without the token of ends
        vocab={str(i): f"w{i}" for i in range(VOCABULARY_SIZE)},
        max_length=WORDS,
        seq_length=WORDS,
        fc_feat_size=REGION_DIM,
        att_feat_size=REGION_DIM,
        drop_prob_lm=0.5,
        **SIZES[name],
    )
    torch.manual_seed(0)
    return models.setup(options).to(device())


def inputs(images):
    """Averages and features of regions, which random weights need no more of."""
    generator = torch.Generator().manual_seed(0)
    regions = torch.randn(images, REGIONS, REGION_DIM, generator=generator)
    regions = regions.to(device())
    return regions.mean(1), regions, None


def finished(function):
    """`function`, which ends once the GPU has finished."""

    @functools.wraps(function)
    def call():
        function()
        if torch.cuda.is_available():
            torch.cuda.synchronize()

    return call


def cross_entropy(folder, name, images, compiled=False):
    """A step of training on `CAPTIONS` captions of each image, Adam's included.

    Args:
        folder: Path of the clone.
        name: str, as of `make_model`.
        images: int, number of images.
        compiled: bool, whether `torch.compile` compiles the model.
    """
    model = make_model(folder, name).train()
    if compiled:
        model = torch.compile(model)
    from captioning.modules.losses import LanguageModelCriterion

    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    generator = torch.Generator().manual_seed(0)
    shape = images, CAPTIONS, 18
    labels = torch.randint(1, VOCABULARY_SIZE - 1, shape, generator=generator)
    labels[..., 0] = 0
    labels, read = labels.to(device()), inputs(images)
    masks = torch.ones(shape, device=device())
    criterion = LanguageModelCriterion()

    @finished
    def step():
        optimizer.zero_grad()
        logits = model(*read[:2], labels[..., :-1], read[2])
        criterion(logits, labels[..., 1:], masks[..., 1:]).backward()
        optimizer.step()

    return step


def self_critical(folder, name, images):
    """A self-critical step with the greedy baseline, and rewards of no cost."""
    model = make_model(folder, name)
    from captioning.modules.losses import RewardCriterion

    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5)
    read, criterion = inputs(images), RewardCriterion()

    @finished
    def step():
        optimizer.zero_grad()
        model.eval()
        with torch.no_grad():
            greedy = {"sample_method": "greedy", "beam_size": 1}
            model(*read, opt=greedy, mode="sample")
        model.train()
        sampling = {"sample_method": "sample", "beam_size": 1, "sample_n": SAMPLES}
        tokens, log_probs = model(*read, opt=sampling, mode="sample")
        rewards = torch.rand(tokens.shape[0], 1, device=tokens.device)
        rewards = rewards.expand(-1, tokens.shape[1])
        criterion(log_probs, tokens.data, rewards).backward()
        optimizer.step()

    return step


def beam_search(folder, name, images, beam_size=3):
    """Captions of images, by beam search; by greedy search with a beam of 1."""
    model, read = make_model(folder, name).eval(), inputs(images)
    options = {"sample_method": "greedy", "beam_size": beam_size, "sample_n": 1}

    @finished
    @torch.no_grad()
    def search():
        model(*read, opt=options, mode="sample")

    return search
