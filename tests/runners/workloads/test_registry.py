import subprocess
import sys

import numpy as np
import pytest

from pullback_runners.errors import UsageError
from pullback_runners.measurement.gradient_check import array_of
from pullback_runners.workloads import find_workload, known_workloads, load_workload_file, registry


def test_every_workload_says_what_it_is_in_one_line():
    for workload in known_workloads():
        assert workload.__doc__
        assert len(workload.__doc__.splitlines()) == 1


def test_inputs_are_the_same_in_every_process():
    program = (
        "from pullback_runners.workloads import find_workload, select_cases\n"
        "case = select_cases('quick', ['mul_restore'])[0]\n"
        "print(find_workload(case.workload).draw_inputs(case)['a'].tobytes().hex())"
    )
    drawn = {
        subprocess.run(
            [sys.executable, "-P", "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(drawn) == 1


def test_inputs_have_the_dtype_of_their_case_or_are_positions():
    for workload in known_workloads():
        for case in workload.cases("quick"):
            for value in workload.draw_inputs(case).values():
                assert array_of(value).dtype in (case.dtype, np.int64)


def test_an_unknown_workload_is_named_with_the_known_ones():
    with pytest.raises(UsageError, match=r"'densse'.*dense_bias_act"):
        find_workload("densse")


def test_a_missing_workload_file_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"nowhere\.py"):
        load_workload_file(tmp_path / "nowhere.py")


def test_a_workload_without_inputs_or_oracle_says_what_to_add(monkeypatch):
    monkeypatch.setattr(registry, "_workloads", {})

    @registry.workload(wrt="x", quick=registry.grid(n=(1,)))
    def bare(n):
        """Nothing but a function."""

    (case,) = bare.cases("quick")
    with pytest.raises(UsageError, match=r"@bare\.inputs"):
        bare.draw_inputs(case)
    with pytest.raises(UsageError, match=r"@bare\.oracle"):
        bare.closed_form(case, {})
