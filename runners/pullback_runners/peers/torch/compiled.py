"""PyTorch with `torch.compile`: the same losses, compiled by Inductor on their first call, to C++ (needs g++), or for a GPU (and Triton) with CUDA graphs."""

import importlib.util
import shutil
from collections.abc import Callable
from functools import partial
from typing import Any

from pullback_runners.errors import VariantError
from pullback_runners.peers.peer import Form
from pullback_runners.peers.torch.adapter import PEER as EAGER
from pullback_runners.peers.torch.adapter import Torch
from pullback_runners.workloads import CPU, CUDA, Workload

_UNROLLED = ("rnn", "lstm", "gru", "lotka_volterra", "scalar_reads")
"""Loops over steps, which `torch.compile` unrolls: fifty steps of an LSTM did not compile within 90 s."""


class _TorchCompile(Torch):
    name = "torch-compile"
    # Inductor would compile in a pool of processes of its own.
    environment = {"TORCHINDUCTOR_COMPILE_THREADS": "1"}  # noqa: RUF012 - never written to

    def available(self) -> str | None:
        reason = super().available()
        if reason is None and shutil.which("g++") is None:
            return "g++ not installed, which torch.compile needs"
        return reason

    def why_not_on(self, device: str) -> str | None:
        reason = super().why_not_on(device)
        if reason is None and device == CUDA and importlib.util.find_spec("triton") is None:
            return "triton not installed, which torch.compile needs for a GPU"
        return reason

    def offers(self, workload: Workload) -> bool:
        return super().offers(workload) and workload.name not in _UNROLLED

    def loss(self, form: Form, device: str) -> Callable[..., Any]:
        compile_ = partial(self.engine().compile, form.loss, fullgraph=True, dynamic=False)
        if device == CPU:
            compiled: Callable[..., Any] = compile_()
            return compiled
        # With CUDA graphs, whose results are overwritten by the next call: whoever keeps one copies it.
        captured, begin = compile_(mode="reduce-overhead"), self.engine().compiler.cudagraph_mark_step_begin

        def loss(*arguments: Any) -> Any:
            begin()
            return captured(*arguments)

        return loss

    def bind_pullback(self, form: Form) -> tuple[Any, Callable[[], Any]]:
        del form
        raise VariantError(
            "unavailable", "torch.compile has no pullback apart: its backward program runs once a forward one"
        )


PEER = _TorchCompile()
PEER.share_forms(EAGER)
