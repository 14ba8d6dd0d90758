"""The order of passes stands in one place."""

import re
from pathlib import Path

import numpy as np
import pytest

import pullback as pb
from pullback.backends.native import availability

ENGINE = Path(pb.__file__).parent


def test_only_the_files_of_the_order_run_algebra_before_other_passes():
    calling = {
        str(file.relative_to(ENGINE))
        for file in ENGINE.rglob("*.py")
        if re.search(r"^from pullback\.simplification\.algebra import", file.read_text(), re.MULTILINE)
    }
    assert calling == {"simplification/order.py"}


@pytest.mark.skipif(availability.why_not() is not None, reason="no native code here")
def test_what_a_layer_leaves_behind_as_a_loop_is_dropped_by_a_pass_of_the_page():
    plan = pb.compile(pb.value_and_grad(lambda block, x: np.sum(pb.nn.rnn(block, x) ** 2)), tier="native")
    plan(pb.nn.rnn_block(3, 3), np.ones((4, 2, 3)))
    page = plan.explain()
    assert page.index("recurrent layers as loops") < page.index("recurrent layers: dead code")
