"""`pullback bisect` as a user starts it, on engines that cost nothing."""

import json
import shutil
from functools import partial
from pathlib import Path

import pytest
from tests.runners.conftest import ENGINE, git

WORKLOADS = str(Path(__file__).with_name("faulty_workloads.py"))


@pytest.fixture
def bisect(command, clone):
    narrowed = ["--workloads", WORKLOADS, "--suite", "trial:sound*", "--variant", "unfused"]
    return partial(command, "bisect", "--repository", str(clone), *narrowed)


def commit(clone, title, *, times=1):
    """Commit an engine that does so much work; none where it is None."""
    package = clone / "engine" / "pullback" / "__init__.py"
    shutil.rmtree(clone / "engine", ignore_errors=True)
    if times is not None:
        package.parent.mkdir(parents=True)
        package.write_text(f"{ENGINE.format(times=times, factor='2.0')}\n# {title}\n")
    git(clone, "add", "-A")
    git(clone, "commit", "-q", "-m", title)


@pytest.fixture
def plain(clone):
    """A clone at its first commit."""
    git(clone, "checkout", "-q", "plain")
    return clone


@pytest.mark.long
def test_the_commit_is_found_among_those_that_change_what_is_measured(bisect, plain):
    for title in ("plain 1", "plain 2"):
        commit(plain, title)
    (plain / "README").write_text("Nothing that is measured.")
    commit(plain, "plain 2")
    commit(plain, "slow at last", times=100)
    commit(plain, "slow 2", times=100)
    done = bisect("--good", "plain", "--bad", "HEAD", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["culprit"]["title"] == "slow at last"
    assert answer["change"]["outcome"] in {"more", "slower"}
    assert {step["answer"] for step in answer["steps"]} <= {"good", "bad"}
    assert len(answer["steps"]) <= 4
    assert answer["share"] > 0.5
    assert (
        f"--candidate {answer['culprit']['sha'][:10]} --suite trial --case 'sound[n=8,f8,cpu]'" in answer["reproduce"]
    )


def test_where_the_others_cannot_be_built_all_that_may_be_it_are_named(bisect, plain):
    commit(plain, "broken", times=None)
    commit(plain, "slow", times=100)
    done = bisect("--good", "plain")
    assert done.returncode == 125, done.stderr
    assert "or one of the 1 before it, which give no answer." in done.stdout
    assert "it has no engine/ folder" in done.stdout
    assert "unusable" in done.stderr


@pytest.mark.sample(every=2)
@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("HEAD", "Interrupted; the search can be begun again."),
        ("HEAD~1", "Interrupted before both ends were compared."),
    ],
)
def test_a_build_that_is_interrupted_ends_the_search_and_is_no_failure_of_its_commit(bisect, plain, bad, said):
    (plain / "pullback.toml").write_text(
        '[build]\npath = ["engine"]\nimport = ["pullback"]\n'
        'commands = ["test ! -e interrupting || { kill -INT $PPID; exit 130; }"]\n'
    )
    (plain / "interrupting").touch()
    commit(plain, "interrupts its build")
    (plain / "interrupting").unlink()
    commit(plain, "slow", times=100)
    done = bisect("--good", "plain", "--bad", bad, "--json")
    assert done.returncode == 130, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["status"], answer["sentence"]) == (130, said)
    assert (answer["steps"], answer["passed_over"]) == ([], [])
    assert "unusable" not in done.stderr


def test_an_end_that_is_no_worse_leaves_nothing_to_find(bisect, plain):
    commit(plain, "plain 1")
    done = bisect("--good", "plain", "--bad", "HEAD", "--quiet")
    assert (done.returncode, done.stdout) == (1, "Nothing to find: the bad end is no worse than the good one.\n")
    nothing = bisect("--good", "HEAD")
    assert (nothing.returncode, "no commit in" in nothing.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--good", "nowhere"], "has no revision 'nowhere'"),
        (["--good", "slow", "--bad", "plain"], "slow is no ancestor of plain"),
        (["--good", "plain", "--bad", "none"], "cannot be built: it has no engine/ folder"),
    ],
)
def test_wrong_usage_is_one_sentence_with_status_2(bisect, arguments, said):
    done = bisect(*arguments)
    assert done.returncode == 2
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("pullback:")]
    assert said in line
