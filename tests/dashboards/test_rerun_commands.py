"""The commands of the pages: what was measured and no more, in words that the command line takes as they stand."""

import shlex

import pytest

from pullback_dashboards.history import Commit
from pullback_dashboards.rerun_commands import reproduce_command
from pullback_runners.runs import list_cases
from pullback_service.incidents.commands import compare_command

COMMIT = Commit("f" * 40)
CASE = {"workload": "dense", "params": {"n": 8, "act": "tanh"}, "dtype": "f4", "device": "cpu"}
RUN = f"pullback run --commits {COMMIT.sha}"


def entry(*variants, **case):
    return {"case": CASE | case, "variants": [{"variant": name, "kind": "tier", "metrics": {}} for name in variants]}


def document(*entries, suite="quick", **more):
    return {"harness": {"suite": suite}, "cases": list(entries), **more}


def test_a_report_is_measured_again_with_what_was_asked_for():
    said = reproduce_command(document(entry("unfused", "fused"), suite="trial:dense[n=8*"), COMMIT)
    assert said == f"{RUN} --suite 'trial:dense[n=8*' --variant fused -o measured"


def test_a_case_is_measured_again_without_the_others():
    one, other = entry("unfused", "fused", "native"), entry("unfused", "fused", n=9)
    said = reproduce_command(document(one, other, suite="quick:dense*"), COMMIT, only=one)
    assert (
        said == f"{RUN} --suite quick --case 'dense[n=8,act=tanh,f4,cpu]' --variant fused --variant native -o measured"
    )
    # One that is asked for by name, and that a case does not have, would have failed.
    assert "--variant" not in reproduce_command(document(one, other), COMMIT)


@pytest.mark.parametrize("hostile", ["x; rm -rf ~", "$(id)", "a'b", "`id`\n"])
def test_names_cannot_leave_their_quotes(hostile):
    one = entry("unfused", hostile, workload=hostile)
    words = shlex.split(reproduce_command(document(one, suite=hostile), COMMIT, only=one))
    assert words[:4] == ["pullback", "run", "--commits", COMMIT.sha]
    assert words[5] == hostile.partition(":")[0]
    assert words[7] == f"{hostile}[n=8,act=tanh,f4,cpu]"
    assert words[9] == hostile


def test_the_device_and_instructions_belong_to_it():
    one = entry("unfused", "jax", device="cuda")
    one["variants"][1]["metrics"] = {"instructions": {"unit": "1", "value": 5}}
    assert "--device cuda --variant jax --instructions" in reproduce_command(document(one), COMMIT)


def test_two_commits_are_measured_again_against_each_other():
    row = {"case": CASE, "variant": "unfused", "reference": "a" * 40, "candidate": COMMIT.sha}
    said = reproduce_command(document(entry("unfused"), comparisons=[row, row]), COMMIT)
    assert said == f"{compare_command('a' * 40, COMMIT.sha)} --suite quick --variant unfused -o compared.json"
    with_ratios = entry("unfused", "fused") | {"paired": [{"variant": "fused", "baseline": "unfused"}]}
    assert reproduce_command(document(with_ratios, comparisons=[row]), COMMIT).startswith(f"{RUN} --suite quick")


def test_what_was_not_committed_is_said_to_be_left_out():
    said = reproduce_command(document(entry("unfused"), commit={"dirty": True}), COMMIT)
    assert said.splitlines() == ["# without the uncommitted changes:", f"{RUN} --suite quick -o measured"]


@pytest.mark.parametrize("kind", ["external", "tier"])
def test_what_belongs_to_another_repository_is_measured_in_a_worktree_of_it(kind):
    one = {"case": {"workload": "encode"}, "variants": [{"variant": "external", "kind": kind}]}
    raw = {"project": "my parser", "harness": {"suite": "quick", "engine": {"sha": "a" * 40}}, "cases": [one]}
    first, *_, last = reproduce_command(raw, COMMIT).splitlines()
    assert first == f"git worktree add --detach ../{COMMIT.short} {COMMIT.sha} && cd ../{COMMIT.short}"
    if kind == "external":
        assert last == "pullback upload FILE --project 'my parser'"
    else:
        assert last == "pullback run --workloads FILE --suite quick --variant external -o report.json"
        raw["harness"]["workload_files"] = ["benchmarks/a b.py", "c.py"]
        *_, last = reproduce_command(raw, COMMIT).splitlines()
        options = "--workloads 'benchmarks/a b.py' --workloads c.py --suite quick --variant external"
        assert last == f"pullback run {options} -o report.json"


def test_the_runner_takes_the_name_of_each_of_its_cases_for_that_one():
    cases, _ = list_cases("quick")
    for case, _ in cases:
        one = {"case": case.document(), "variants": []}
        words = shlex.split(reproduce_command(document(one), COMMIT, only=one))
        (found,), refused = list_cases("quick", [words[words.index("--case") + 1]])
        assert (found[0], refused) == (case, [])
