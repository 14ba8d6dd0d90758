"""Rows on tensors that have a device, a shape and no elements: what mixes devices, or gives another shape or dtype, is an error."""

import warnings

import numpy as np
import pytest

from pullback import control, nn, rules
from pullback.core.cases import ALL
from pullback.core.types import type_of
from pullback.rules import special
from pullback.transforms import elementwise_maps

torch = pytest.importorskip("torch", reason="NO TESTS OF DEVICE ARRAYS: PyTorch is not installed")
fake = pytest.importorskip("torch._subclasses.fake_tensor")
steps = pytest.importorskip("pullback.devices.cuda.tensor_calls")
table = pytest.importorskip("pullback.devices.cuda.rows.table")
values = pytest.importorskip("pullback.devices.cuda.values")

assert all((rules, special, control, elementwise_maps, nn))  # importing them fills the table

CUDA = torch.device("cuda", 0)

#: Rows that look at positions or divisors before they use them, which fake tensors do not have, or take a part of a tensor by a key, which
#: PyTorch for the CPU refuses for those of a device.
NOT_FOLLOWED = {
    "add_at", "conv_data_gradient", "gather", "index", "max_pool", "mean_pool", "mean_spread", "on_diagonal", "put_along", "scatter",
    "scatter_add", "set_at", "solve_triangular", "take_along",
}  # fmt: skip
REFUSED = "not linked with support for cuda"


def _without_elements(x):
    return torch.empty(x.shape, dtype=values.torch_dtype(x.dtype), device=CUDA)


def _run(case, operands):
    params, types = dict(case.params), [type_of(x) for x in operands]
    row = steps.row_application(case.primitive, types, params, CUDA)
    if row is None:
        return None
    with warnings.catch_warnings(), fake.FakeTensorMode(allow_non_fake_inputs=True):
        warnings.simplefilter("ignore")  # PyTorch's own, of how it makes fake tensors
        return row(*map(_without_elements, operands)), case.primitive.infer(*types, **params)[0]


WITH_ROWS = [
    case
    for case in ALL
    if steps.row_application(case.primitive, [type_of(x) for x in case.operands()], dict(case.params), CUDA)
]


@pytest.mark.parametrize("case", WITH_ROWS, ids=lambda case: f"{case.primitive.name} {case.because}")
def test_rows_keep_to_their_device_and_give_the_type_of_the_rule(case):
    try:
        made, type_ = _run(case, case.operands())
    except (fake.DataDependentOutputException, RuntimeError) as error:
        if not (isinstance(error, fake.DataDependentOutputException) or REFUSED in str(error)):
            raise
        assert case.primitive.name in NOT_FOLLOWED, "looks at values, which waits for the device"
        return
    assert made.device == CUDA
    assert (tuple(made.shape), values.numpy_dtype(made.dtype)) == (type_.shape, type_.dtype)


def test_most_rules_have_a_row():
    assert len(WITH_ROWS) > 130
    assert {case.primitive.name for case in WITH_ROWS} > NOT_FOLLOWED


@pytest.mark.parametrize("mode", ["host", "shape"])
def test_a_row_that_leaves_the_device_or_its_shape_is_found(mode, monkeypatch):
    case = next(case for case in WITH_ROWS if case.primitive.name == "sum" and np.ndim(case.operands()[0]) > 1)
    own = table.ROWS["sum"]
    wrong = {
        "host": lambda result, dtype, x, **params: torch.zeros(result.shape, dtype=dtype),
        "shape": lambda result, dtype, x, axes, keepdims: torch.sum(x, dim=axes[:1], keepdim=not keepdims, dtype=dtype),
    }[mode]
    monkeypatch.setitem(table.ROWS, "sum", type(own)(wrong, own.kinds, own.is_view))
    with pytest.raises(AssertionError):
        test_rows_keep_to_their_device_and_give_the_type_of_the_rule(case)
