"""Beam search of a translator, against Hugging Face's `generate` of the same sizes.

    pip install torch transformers  # the CPU build of PyTorch
    python experiments/benchmarks/against_huggingface.py

Hugging Face's model is MarianMT, post-norm with one table of embeddings, as ours; see
`forced_translation.py`. On a GPU if PyTorch finds one, with TF32.
"""

import functools

from experiments.benchmarks.forced_translation import (
    BEAM_SIZE,
    LENGTH,
    SOURCE_LENGTH,
    VOCABULARY_SIZE,
    compare,
    cores,
)
from keras_caption.text import BOS, EOS, PAD


def make_model(work):
    import torch
    from transformers import MarianConfig, MarianMTModel

    from experiments.benchmarks.luo_peer import device

    torch.set_num_threads(cores())
    config = MarianConfig(
        vocab_size=VOCABULARY_SIZE,
        max_position_embeddings=SOURCE_LENGTH + LENGTH,
        d_model=work.model_dim,
        encoder_layers=work.num_layers,
        decoder_layers=work.num_layers,
        encoder_attention_heads=work.num_heads,
        decoder_attention_heads=work.num_heads,
        encoder_ffn_dim=work.feedforward_dim,
        decoder_ffn_dim=work.feedforward_dim,
        activation_function="relu",
        scale_embedding=True,
        decoder_start_token_id=BOS,
        pad_token_id=PAD,
        eos_token_id=EOS,
        forced_eos_token_id=None,
    )
    return MarianMTModel(config).to(device())


def huggingface(work):
    import torch

    from experiments.benchmarks.luo_peer import device, finished

    model = make_model(work).eval()
    sources = torch.from_numpy(work.sources).long().to(device())
    search = functools.partial(
        torch.inference_mode()(model.generate),
        input_ids=sources,
        attention_mask=torch.ones_like(sources),
        num_beams=BEAM_SIZE,
        do_sample=False,
        min_new_tokens=LENGTH,
        max_new_tokens=LENGTH,
    )
    return finished(search)


def huggingface_training(work, compiled=False):
    """A step of training, Adam's update included; by `torch.compile` if `compiled`."""
    import torch

    from experiments.benchmarks.luo_peer import device, finished

    model = make_model(work).train()
    if compiled:
        model = torch.compile(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    sources = torch.from_numpy(work.sources).long().to(device())
    targets = torch.from_numpy(work.targets).long().to(device())
    mask = torch.ones_like(sources)

    @finished
    def step():
        optimizer.zero_grad()
        model(input_ids=sources, attention_mask=mask, labels=targets).loss.backward()
        optimizer.step()

    return step


if __name__ == "__main__":
    compare({"Hugging Face": huggingface})
