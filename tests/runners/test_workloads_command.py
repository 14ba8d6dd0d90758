"""`pullback workloads` as a user starts it."""

import json
from functools import partial

import pytest


@pytest.fixture
def pullback_workloads(command):
    return partial(command, "workloads")


def test_all_workloads_are_listed_with_the_number_of_cases_in_every_suite(pullback_workloads):
    done = pullback_workloads()
    assert done.returncode == 0, done.stderr
    head, *rows = done.stdout.splitlines()
    assert head.split()[:4] == ["workload", "quick", "standard", "full"]
    assert {"lenet_step", "gru", "touch_large_array"} < {row.split()[0] for row in rows}
    assert all(int(count) > 0 for row in rows for count in row.split()[1:4])


def test_one_workload_is_shown_with_its_mathematics_its_cases_and_its_peers(pullback_workloads):
    shown = pullback_workloads("lstm").stdout
    assert "c_t = f c_(t-1) + i g" in shown
    assert "peers: numpy, autograd, jax, torch" in shown
    assert "  lstm[steps=50,batch=32,hidden=128,form=separate,bias=with,f4,cpu]" in shown


def test_a_workload_of_ones_own_is_listed_too(pullback_workloads, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "from pullback_runners.workloads import grid, workload\n"
        "@workload(wrt='x', quick=grid(n=(1, 2)))\n"
        "def mine(n):\n"
        "    '''A sentence.'''\n"
    )
    (mine,) = json.loads(pullback_workloads("mine", "--workloads", str(file), "--json").stdout)
    assert (mine["description"], mine["peers"]) == ("A sentence.", [])
    assert [case["name"] for case in mine["suites"]["quick"]] == ["mine[n=1,f8,cpu]", "mine[n=2,f8,cpu]"]


def test_an_unknown_workload_is_wrong_usage(pullback_workloads):
    done = pullback_workloads("densse")
    assert done.returncode == 2
    assert (
        done.stderr
        == "pullback: no workload 'densse'; did you mean dense_bias_act? `pullback workloads` shows them all\n"
    )


def test_a_file_that_raises_hides_no_other_workload(pullback_workloads, tmp_path):
    file = tmp_path / "broken.py"
    file.write_text("import math\nraise RuntimeError('no')\n")
    done = pullback_workloads("--workloads", str(file))
    assert done.returncode == 2
    assert "lenet_step" in done.stdout
    assert done.stderr == f"pullback: {file} cannot be loaded (line 2): RuntimeError: no; fix the file\n"


def test_the_shortest_name_is_meant_before_those_that_begin_so():
    from pullback_runners.workloads.registry import suggestion

    assert suggestion("lsmt", ("lstm", "lstm_lm")) == suggestion("lsmt", ("lstm_lm", "lstm")) == "did you mean lstm? "
    assert suggestion("densse", ("dense_bias_act", "det")) == "did you mean dense_bias_act? "
