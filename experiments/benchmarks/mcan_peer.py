"""Training and answering by the released code of MCAN, with random weights.

The code is a clone of its repository, MILVLG/mcan-vqa; the sizes are those of its
smaller model, which is the paper's. On a GPU if PyTorch finds one, with TF32.
"""

import argparse
import sys

import torch

from experiments.benchmarks.luo_peer import device, finished

REGIONS, REGION_DIM, QUESTION_SIZE = 36, 2048, 1004
WORDS, ANSWERS = 6, 3129
SIZES = {
    "LAYER": 6,
    "HIDDEN_SIZE": 512,
    "HIDDEN_SIZE_HEAD": 64,
    "MULTI_HEAD": 8,
    "FF_SIZE": 2048,
    "DROPOUT_R": 0.1,
    "WORD_EMBED_SIZE": 300,
    "IMG_FEAT_SIZE": REGION_DIM,
    "FLAT_MLP_SIZE": 512,
    "FLAT_GLIMPSES": 1,
    "FLAT_OUT_SIZE": 1024,
    "USE_GLOVE": False,
}


def make_model(folder, compiled):
    """The model of the clone at a path, compiled by `torch.compile` if `compiled`."""
    sys.path.insert(0, str(folder))
    from core.model.net import Net

    torch.manual_seed(0)
    model = Net(argparse.Namespace(**SIZES), None, QUESTION_SIZE, ANSWERS)
    model = model.to(device())
    return torch.compile(model) if compiled else model


def inputs(questions):
    """Features of regions, and tokens of as many questions."""
    generator = torch.Generator().manual_seed(0)
    regions = torch.randn(questions, REGIONS, REGION_DIM, generator=generator)
    return regions.to(device()), torch.full((questions, WORDS), 5, device=device())


def answering(folder, questions, compiled=False):
    """Probabilities of answers."""
    model, read = make_model(folder, compiled).eval(), inputs(questions)

    @finished
    @torch.inference_mode()
    def answer():
        model(*read)

    return answer


def training(folder, questions, compiled=False):
    """A step of training, Adam's update included."""
    model, read = make_model(folder, compiled).train(), inputs(questions)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    loss_of = torch.nn.BCELoss(reduction="sum")
    targets = torch.eye(questions, ANSWERS, device=device())

    @finished
    def step():
        optimizer.zero_grad()
        loss_of(model(*read), targets).backward()
        optimizer.step()

    return step
