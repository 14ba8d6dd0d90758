"""Gradients of nanoGPT's modules: of a transformer block, by its input and all its parameters."""

import torch
from model import GPT, Block, GPTConfig

from pullback_runners.workloads import grid, workload

torch.set_num_threads(1)
SIZES = {"quick": grid(n=(32,), dtype=("f4",)), "standard": grid(n=(32,), dtype=("f4",))}


def config():
    return GPTConfig(block_size=64, vocab_size=128, n_layer=2, n_head=4, n_embd=64, dropout=0.0)


@workload(wrt="x", numpy=False, **SIZES)
def block(n):
    """one block of the transformer, n positions"""


@block.inputs
def _(rng, dtype, n):
    return {"x": rng.standard_normal((2, n, 64)).astype(dtype)}


@block.variant("torch")
def _(x, *, n):
    torch.manual_seed(0)
    hidden, module = torch.tensor(x, requires_grad=True), Block(config())
    parameters = [each for each in module.parameters() if each.requires_grad]

    def step():
        value = module(hidden).square().mean()
        return value, torch.autograd.grad(value, (hidden, *parameters))[:1]

    return step


@workload(wrt="scale", numpy=False, **SIZES)
def gpt(n):
    """the loss of a model of two blocks, by all parameters times a number"""


@gpt.inputs
def _(rng, dtype, n):
    return {
        "scale": dtype.type(1.0),
        "tokens": rng.integers(0, 128, (2, n)),
        "targets": rng.integers(0, 128, (2, n)),
    }


@gpt.variant("torch")
def _(scale, tokens, targets, *, n):
    torch.manual_seed(0)
    module = GPT(config())
    factor = torch.tensor(scale, requires_grad=True)
    idx, y = torch.tensor(tokens), torch.tensor(targets)
    named = {name: each.detach() for name, each in module.named_parameters()}

    def step():
        scaled = {name: each * factor for name, each in named.items()}
        _, value = torch.func.functional_call(module, scaled, (idx, y))
        return value, torch.autograd.grad(value, (factor,))

    return step
