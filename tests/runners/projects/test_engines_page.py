"""The workloads of docs/engines.md, run as they are printed, each by the engine that it is for."""

import re
from pathlib import Path

import pytest

from pullback_runners.measurement.examination import examine
from pullback_runners.measurement.member import Member
from pullback_runners.measurement.subject import Subject
from pullback_runners.measurement.subject_cases import choose_for
from pullback_runners.measurement.worker_process import WorkerSettings

PAGE = (Path(__file__).parents[3] / "docs" / "engines.md").read_text()

RIDGE = """
def ridge(w, b, x):
    return ((x @ w + b) ** 2).sum()
"""

NETWORK = """
import torch


class Network(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.randn(n))

    def forward(self, weights, batch):
        return torch.tanh(batch @ (self.scale * weights)).square().mean()
"""

MODEL = """
from pullback_runners.workloads import grid, workload


@workload(wrt="w", numpy=False, quick=grid(n=(20,), dtype=("f4",)))
def model(n):
    "a network of somebody's"


@model.inputs
def _(rng, dtype, n):
    return {"w": rng.standard_normal(n).astype(dtype), "x": rng.standard_normal((n, n)).astype(dtype)}
"""


def blocks(section):
    """The examples of a section of the page."""
    text = re.search(rf"^## {section}\n(.*?)(?=^## )", PAGE, re.DOTALL | re.MULTILINE)[1]
    return re.findall(r"^```py\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


(JAX,) = blocks("JAX")
(TORCH,) = blocks("PyTorch")
AUTOGRAD, MYGRAD = blocks("HIPS autograd, MyGrad")
WITHOUT_JAX = JAX.partition('@ridge.variant("jax")')[0].replace("import jax\n", "")


def examined(folder, library, workloads, variant):
    (folder / "mylibrary.py").write_text(library)
    file = folder / "gradients.py"
    file.write_text(workloads)
    subject = Subject(paths=(folder,), imports=("mylibrary",))
    choice = choose_for(subject, "quick", files=[file])
    (case,) = choice.cases
    settings = WorkerSettings(choice.files, timeout_s=120, modules=choice.modules)
    found, failures = examine(case, [Member(variant, subject)], settings)
    assert failures == {}
    return found[variant]


@pytest.mark.parametrize(
    ("engine", "library", "workloads"),
    [
        ("jax", RIDGE, JAX),
        ("torch", NETWORK, MODEL + TORCH),
        ("autograd", RIDGE, WITHOUT_JAX + AUTOGRAD),
        ("mygrad", RIDGE, WITHOUT_JAX + MYGRAD),
    ],
)
def test_the_workload_of_the_page_runs_with_a_gradient_that_is_right(tmp_path, engine, library, workloads):
    pytest.importorskip(engine, reason=f"{engine}: not installed")
    found = examined(tmp_path, library, workloads, engine)
    assert found.gradient["ok"]
    assert found.gradient["oracle"] == "central differences"
    of_numpy = found.counts["array_bytes"]
    if engine in {"jax", "torch"}:  # arrays of their own, which malloc sees
        assert of_numpy["value"] in {None, 0}
        assert found.counts["native_bytes"]["value"] is None or found.counts["native_bytes"]["value"] > 0
    else:
        assert of_numpy["value"] > 0
