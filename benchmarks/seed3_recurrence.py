"""What blocks and whole-sequence rules are worth: microseconds per value and gradient of a recurrent layer.

Rows: the loop over cells (`unfused`, the baseline), the rule on separate weights and on a block, the compiled plan, and
PyTorch's layer where it is installed (CPU, one thread, the same shapes). The engines take turns in this process, so their
ratios hold on a busy machine; the absolute figures do not. Last column: ratio to the loop, median and quartiles.
"""

import argparse
import importlib
import importlib.util
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import pullback as pb

LAYERS: dict[str, tuple[Callable[..., Any], Callable[..., pb.Block], str]] = {
    "rnn": (pb.nn.rnn, pb.nn.rnn_block, "RNN"),
    "lstm": (pb.nn.lstm, pb.nn.lstm_block, "LSTM"),
    "gru": (pb.nn.gru, pb.nn.gru_block, "GRU"),
}
ROUNDS = 30


def states(result: Any) -> Any:
    """The states h, of a layer that may give c too."""
    return result[0] if isinstance(result, tuple) else result


def rows(name: str, steps: int, batch: int, inputs: int, hidden: int) -> dict[str, Callable[[], Any]]:
    """What is compared, by name."""
    layer, make, torch_name = LAYERS[name]
    rng = np.random.default_rng(0)
    block = make(inputs, hidden, dtype=np.float32, init=pb.nn.glorot_uniform(rng))
    separate = {part: view.copy() for part, view in block.items()}
    x = rng.normal(size=(steps, batch, inputs)).astype(np.float32)

    def loss(params: Any, x: Any) -> Any:
        return np.sum(states(layer(params, x)) ** 2)

    gradient = pb.value_and_grad(loss)

    def in_tier(tier: str, params: Any) -> Callable[[], Any]:
        plan = pb.compile(gradient, tier=tier)
        return lambda: plan(params, x)

    compared = {
        "loop over cells (unfused)": in_tier("unfused", block),
        "rule, separate weights": in_tier("fused", separate),
        "rule, block": in_tier("fused", block),
    }
    if importlib.util.find_spec("torch"):
        compared[f"torch.nn.{torch_name}"] = torch_row(torch_name, x, hidden)
    return compared


def torch_row(name: str, x: Any, hidden: int) -> Callable[[], Any]:
    """PyTorch's layer with weights of its own; only the work is the same."""
    torch = importlib.import_module("torch")
    torch.set_num_threads(1)
    layer = getattr(torch.nn, name)(x.shape[-1], hidden)
    inputs = torch.from_numpy(x)

    def run() -> Any:
        layer.zero_grad()
        value = (layer(inputs)[0] ** 2).sum()
        value.backward()
        return value

    return run


def main() -> None:
    """Take turns, print a table for each layer."""
    parser = argparse.ArgumentParser(description=__doc__)
    for size, default in {"steps": 50, "batch": 32, "inputs": 64, "hidden": 64}.items():
        parser.add_argument(f"--{size}", type=int, default=default)
    sizes = vars(parser.parse_args())
    print(", ".join(f"{size} {value}" for size, value in sizes.items()), "float32")
    for name in LAYERS:
        compared = rows(name, **sizes)
        slices: dict[str, list[float]] = {row: [] for row in compared}
        for run in compared.values():
            run()
        for _ in range(ROUNDS):
            for row, run in compared.items():
                start = time.process_time_ns()
                run()
                slices[row].append((time.process_time_ns() - start) / 1e3)
        baseline, *_ = slices.values()
        for row, taken in slices.items():
            ratios = [own / other for own, other in zip(taken, baseline, strict=True)]
            low, middle, high = statistics.quantiles(ratios, n=4)
            print(f"{name:5} {row:28} {statistics.median(taken):10.0f} us   {middle:6.3f}  [{low:.3f}, {high:.3f}]")


if __name__ == "__main__":
    main()
