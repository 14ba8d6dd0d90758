"""Torch's operator samples: torch's gradient is the oracle for ours of the NumPy function that does the same.

Torch ships a database of operators with sample inputs for its own tests. Where an operator has a NumPy counterpart (its own NumPy
reference, or a row of `torch_counterparts`), every sample is differentiated by torch and by `pb.vjp` of the counterpart with one random
cotangent, in float64 and complex128. Torch's gradients of complex arguments are the conjugates of ours.
"""

import importlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from benchmarks.public_suites import torch_counterparts
from benchmarks.public_suites.suite_outcomes import Outcome

import pullback as pb
from pullback import trees

SAMPLES = 12  # of each operator and dtype: the database has up to hundreds of nearly equal ones
TOLERANCE = 1e-7  # both sides compute in double precision; this leaves room for ill-conditioned samples


class NoCounterpartError(Exception):
    """The NumPy function computes something else for these arguments, so its gradient has no oracle."""


def outcomes(only: str = "") -> list[Outcome]:
    """Compare every sample of every operator whose name contains `only`."""
    torch = importlib.import_module("torch")
    database = importlib.import_module("torch.testing._internal.common_methods_invocations").op_db
    ended: list[Outcome] = []
    for operator in database:
        if operator.supports_autograd and only in operator.name:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ended.extend(_operator(torch, operator))
    return ended


def _operator(torch: Any, operator: Any) -> Iterator[Outcome]:
    name = f"{_family(operator.name)}::{operator.name}" + (
        operator.variant_test_name and f".{operator.variant_test_name}"
    )
    reason = torch_counterparts.NONE.get(operator.name)
    counterpart = torch_counterparts.COUNTERPARTS.get(operator.name, operator.ref)
    if reason is None and counterpart is None:
        reason = "no NumPy function does this"
    if reason is not None:
        yield Outcome(name, "not portable", reason)
        return
    for dtype in (torch.float64, torch.complex128):
        if dtype not in operator.supported_backward_dtypes("cpu"):
            continue
        torch.manual_seed(0)
        samples = operator.sample_inputs("cpu", dtype, requires_grad=True)
        for number, sample in enumerate(islice(samples, SAMPLES)):
            label = f"{name}[{str(dtype).removeprefix('torch.')},{number}]"
            yield _sample(
                torch, label, operator.op, counterpart, sample, is_symmetric=name in torch_counterparts.SYMMETRIC
            )


def _family(name: str) -> str:
    return name.rpartition(".")[0] or "torch"


def _sample(
    torch: Any, label: str, op: Any, counterpart: Callable[..., Any], sample: Any, *, is_symmetric: bool
) -> Outcome:
    call = ((sample.input, *sample.args), sample.kwargs)
    leaves, rebuild = trees.flatten(call)
    moving = [place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    if not moving or any(leaves[place].layout != torch.strided for place in moving):
        return Outcome(label, "skipped", "nothing dense to differentiate by")
    try:
        output = sample.output_process_fn_grad(op(*call[0], **call[1]))
        values, pull = _torch_gradients(torch, output, [leaves[place] for place in moving])
    except RuntimeError as error:
        return Outcome(label, "skipped", f"torch refuses: {_line(error)}")
    arrays = [_as_numpy(torch, leaf) for leaf in leaves]

    def function(*moved: Any) -> list[Any]:
        replaced = dict(zip(moving, moved, strict=True))
        args, keywords = rebuild(replaced.get(place, leaf) for place, leaf in enumerate(arrays))
        results = counterpart(*args, **keywords)
        return [leaf for leaf in trees.flatten(results)[0] if _is_moving(leaf)]

    points = [arrays[place] for place in moving]
    project = _hermitian_part if is_symmetric else lambda gradient: gradient
    try:
        _compare(function, points, values, pull, project)
    except NoCounterpartError as error:
        return Outcome(label, "not portable", f"the counterpart is another function here: {error}")
    except Exception as error:  # noqa: BLE001 (whatever a function of the engine raises is this sample's outcome)
        return Outcome(label, "failed", f"{type(error).__name__}: {_line(error)}")
    return Outcome(label, "passed")


def _hermitian_part(gradient: Any) -> Any:
    return (gradient + np.conj(np.swapaxes(gradient, -1, -2))) / 2


def _compare(
    function: Callable[..., list[Any]],
    points: Sequence[Any],
    values: Sequence[Any],
    pull: Callable[..., list[Any]],
    project: Callable[[Any], Any],
) -> None:
    try:
        plain = function(*points)
    except Exception as error:
        raise NoCounterpartError(f"{type(error).__name__}: {_line(error)}") from error
    if len(plain) != len(values) or not all(_same(ours, theirs) for ours, theirs in zip(plain, values, strict=True)):
        raise NoCounterpartError("its value differs")
    rng = np.random.default_rng(0)
    # Where torch's value is complex and NumPy's real (eigenvalues that happen to be), only real parts can be compared.
    cotangents = [
        _random(rng, mine if np.isrealobj(mine) else theirs) for mine, theirs in zip(plain, values, strict=True)
    ]
    _, pullback = pb.vjp(function, *points)  # type: ignore[misc] # two results without has_aux
    ours = pullback(cotangents)
    for place, (mine, theirs) in enumerate(zip(ours, pull(cotangents), strict=True)):
        if not _same(project(mine), project(theirs)):
            raise AssertionError(f"gradient {place} is {_shown(mine)}, torch's is {_shown(theirs)}")


def _torch_gradients(torch: Any, output: Any, inputs: list[Any]) -> tuple[list[Any], Callable[..., list[Any]]]:
    """Values of the tensors of a result that move, and their pullback in our convention."""
    moving = [leaf for leaf in _tensors(torch, output) if leaf.requires_grad]

    def pull(cotangents: Sequence[Any]) -> list[Any]:
        seeds = [
            torch.from_numpy(np.array(np.conj(cotangent))).to(value.dtype)
            for cotangent, value in zip(cotangents, moving, strict=True)
        ]
        gradients = torch.autograd.grad(moving, inputs, seeds, allow_unused=True)
        pairs = zip(gradients, inputs, strict=True)
        return [
            np.zeros(tuple(x.shape)) if gradient is None else np.conj(gradient.numpy(force=True))
            for gradient, x in pairs
        ]

    return [leaf.detach().numpy(force=True) for leaf in moving], pull


def _tensors(torch: Any, output: Any) -> list[Any]:
    leaves = trees.flatten(output)[0] if not isinstance(output, torch.Tensor) else [output]
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def _as_numpy(torch: Any, leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return np.array(leaf.detach().numpy(force=True))
    if isinstance(leaf, torch.dtype):
        return np.dtype(str(leaf).removeprefix("torch."))
    return leaf


def _is_moving(leaf: Any) -> bool:
    dtype = getattr(leaf, "dtype", None)
    return dtype.kind in "fc" if dtype is not None else isinstance(leaf, float | complex)


def _random(rng: np.random.Generator, value: Any) -> Any:
    drawn = rng.normal(size=np.shape(value))
    return np.asarray(drawn + 1j * rng.normal(size=np.shape(value)) if np.iscomplexobj(value) else drawn, value.dtype)


def _same(a: Any, b: Any) -> bool:
    if np.shape(a) != np.shape(b):
        return False
    size = float(np.max(np.abs(np.nan_to_num(b)), initial=1.0)) if np.size(b) else 1.0
    return bool(np.allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE * min(size, 1e3), equal_nan=True))


def _shown(array: Any) -> str:
    return f"{np.shape(array)} {np.array2string(np.ravel(array)[:3], precision=5)}"


def _line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [""])[0][:160]
