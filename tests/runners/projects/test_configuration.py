"""`pullback.toml`: what is taken from it, and the sentence for each thing that is wrong in it."""

import importlib.metadata
from pathlib import Path

import pytest

from pullback_runners.errors import UsageError
from pullback_runners.projects.configuration import (
    OLDEST_PYTHON,
    Build,
    Detection,
    Measure,
    Rule,
    find_project,
    parse_project,
    read_project,
)

WHOLE = """\
[project]
name = "ridge"

[build]
python = "3.12"
requirements = ["requirements.txt"]
path = ["src"]
install = "wheel"
commands = ["make"]
import = ["ridge"]
files = ["src"]

[measure]
workloads = ["bench/gradients.py"]
suite = "standard"
variants = ["jax"]
baseline = "jax"

[environment]
XLA_FLAGS = "--xla_cpu_multi_thread_eigen=false"

[detection]
trunk = "develop"
anchor = "v1.2"

[[rule]]
workload = "lstm*"
at_least = 0.02
tell = ["team"]

[[rule]]
metric = "array_allocs"
variant = "native"
budget = 0

[[rule]]
machine = "laptop-?"
watch = false
"""


def test_every_key_is_read():
    found = parse_project(WHOLE, Path("/home/me/repository"))
    assert found.name == "ridge"
    assert found.build == Build("3.12", ("requirements.txt",), ("src",), "wheel", ("make",), ("ridge",), ("src",))
    assert found.measure == Measure(("bench/gradients.py",), "standard", ("jax",), "jax")
    assert found.environment == {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}
    assert found.detection == Detection("develop", "v1.2")
    assert found.rules == (
        Rule(workload="lstm*", at_least=0.02, tell=("team",)),
        Rule(variant="native", metric="array_allocs", budget=0),
        Rule(machine="laptop-?", watch=False),
    )


def test_the_harness_needs_the_python_that_pullback_is_installed_on():
    wanted = importlib.metadata.metadata("pullback")["Requires-Python"]
    assert wanted == f">={'.'.join(map(str, OLDEST_PYTHON))}"


def test_an_empty_file_is_a_project_named_as_its_folder():
    found = parse_project("", Path("/home/me/ridge"))
    assert (found.name, found.build, found.measure) == ("ridge", Build(), Measure())


def test_the_nearest_file_upwards_is_found(tmp_path):
    (tmp_path / "pullback.toml").write_text(WHOLE)
    below = tmp_path / "src" / "ridge"
    below.mkdir(parents=True)
    found = find_project(below)
    assert found is not None
    assert found.top == tmp_path.resolve()
    assert find_project(tmp_path.parent) is None


def test_what_is_there_and_no_file_is_refused(tmp_path):
    file = tmp_path / "pullback.toml"
    file.mkdir()
    with pytest.raises(UsageError, match=r"pullback\.toml is no file, nor a link to one"):
        find_project(tmp_path)
    file.rmdir()
    file.symlink_to(file)
    with pytest.raises(UsageError, match=r"pullback\.toml is no file, nor a link to one"):
        find_project(tmp_path)


def test_a_folder_in_the_place_of_a_workload_file_is_called_one(tmp_path):
    (tmp_path / "bench").mkdir()
    project = parse_project('[measure]\nworkloads = ["bench"]\n', tmp_path)
    with pytest.raises(UsageError, match=r"line 2: \[measure\] workloads names bench, a folder; name a file in it"):
        project.workload_files(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[build\n", "pullback.toml is not TOML: .*line 1.*; correct it there$"),
        ("[project]\n\n[biuld]\n", r"pullback.toml, line 3: no table \[biuld\] is known; did you mean 'build'\?"),
        ('name = "ridge"\n', "line 1: no table .name. is known"),
        ("project = 1\n", "line 1: project is a table"),
        (
            '[build]\nrequirement = ["r.txt"]\n',
            r"line 2: \[build\] has no key 'requirement'; did you mean 'requirements'\?",
        ),
        ('[project]\nname = "a"\n[build]\nname = "b"\n', r"line 4: \[build\] has no key 'name'; known: python, req"),
        ('[build]\n\npath = "src"\n', r"line 3: \[build\] path is a list of strings; write path = \[…?"),
        ("[project]\nname = 3\n", r"line 2: \[project\] name is a string"),
        ('[project]\nname = ""\n', r"line 2: \[project\] name is empty; write name = \"…\", or leave it out"),
        ('[build]\ninstall = "editable"\n', r"line 2: \[build\] install is 'editable'; give 'path' or 'wheel'"),
        ('[build]\npython = "3"\n', r"line 2: \[build\] python is '3'; give a version of Python 3 like '3.12'"),
        ('[build]\npython = "9.9"\n', r"line 2: \[build\] python is '9.9'; give a version of Python 3 like '3.12'"),
        ('[build]\npython = "3.10"\n', r"line 2: \[build\] python is '3.10'; the harness needs 3.11 or newer"),
        ('[measure]\nsuite = "quik"\n', r"line 2: \[measure\] suite is 'quik'; known: quick, standard"),
        ('[measure]\nworkloads = ["../b.py"]\n', r"line 2: \[measure\] workloads names '../b.py'; give a path below"),
        ('[detection]\nanchr = "v1"\n', r"line 2: \[detection\] has no key 'anchr'; did you mean 'anchor'\?"),
        ("[detection]\ntrunk = 'a'\nanchor = 3\n", r"line 3: \[detection\] anchor is a string; write anchor = \"…\""),
        ('[rule]\nworkload = "a"\n', r"line 1: rule is a list of tables; write \[\[rule\]\] above"),
        (
            "[[rule]]\nwatch = false\n\n[[rule]]\nwatched = true\n",
            r"line 5: \[\[rule\]\] has no key 'watched'; did you mean",
        ),
        ('[[rule]]\nwatch = true\n[[rule]]\nworkload = "a"\n', r"line 3: \[\[rule\]\] has no effect; set at_least"),
        ("[[rule]]\ncase = 1\nwatch = true\n", r'line 2: \[\[rule\]\] case is a name or a glob; write case = "lstm\*"'),
        ("[[rule]]\nwatch = 0\n", r"line 2: \[\[rule\]\] watch is true or false"),
        ('[[rule]]\ntell = "team"\n', r'line 2: \[\[rule\]\] tell is a list .*; write tell = \["team"\]'),
        ("[[rule]]\nat_least = 2\n", r"line 2: \[\[rule\]\] at_least is a share; give a number between 0 and 1"),
        ("[[rule]]\nbudget = 3\n", r"line 2: \[\[rule\]\] budget needs a metric"),
        ('[[rule]]\nbudget = -1\nmetric = "time"\n', r"line 2: \[\[rule\]\] budget is the most .* 0 or more"),
        ('[[rule]]\nbudget = nan\nmetric = "time"\n', r"line 2: \[\[rule\]\] budget is the most"),
        (
            '[[rule]]\nbudget = 0\nmetric = "time"\n',
            r"line 2: \[\[rule\]\] budget of time is a share of the baseline's",
        ),
        ('[[rule]]\nbudget = 1\nmetric = "array*"\n', r"line 3: \[\[rule\]\] metric is 'array\*'; a budget is of one"),
        ("[environment]\nTHREADS = 1\n", r'line 2: \[environment\] THREADS is a string; write THREADS = "1"'),
        ('[environment]\n"A=B" = "1"\n', r"\[environment\] 'A=B' can be no variable of a process; leave it out"),
        ('[environment]\nA = "\\u0000"\n', r"line 2: \[environment\] 'A' can be no variable of a process"),
        ('[build]\npath = [""]\n', r"line 2: \[build\] path names ''; give a path below the top"),
        ('[build]\nfiles = ["a\\u0000"]\n', r"line 2: \[build\] files names .*; give a path below the top"),
        (f"a = {'9' * 5000}\n", "pullback.toml is not TOML: Exceeds the limit"),
        (f"a = {'[' * 5000}\n", "pullback.toml is not TOML: "),
        (f"\n{'a.' * 3000}a = 1\n", r"line 2: it has more than 200 dots; break it into several lines$"),
        ('"\u2028".' * 250 + "a = 1\n", "line 1: it has more than 200 dots"),  # which ends no line in TOML
        (f'[build]\npython = "3.{"9" * 5000}"\n', r"line 2: \[build\] python is '3.9+'; give a version of Python 3"),
        pytest.param(
            f'[environment]\nA = """\n[{" " * 50_000}"\n"""\n[build]\nimpor = []\n',
            r"line 6: \[build\] has no key 'impor'",
            id="a line of blanks",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text, said):
    with pytest.raises(UsageError, match=said):
        parse_project(text, Path("/home/me/ridge"))


def test_a_file_that_cannot_be_read_has_a_remedy(tmp_path, monkeypatch):
    path = tmp_path / "pullback.toml"
    path.write_bytes(b'[project]\nname = "\xff"\n')
    with pytest.raises(UsageError, match=r"pullback.toml cannot be read: .*; save it as UTF-8$"):
        read_project(path)

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", refuse)  # root can read every file
    with pytest.raises(UsageError, match=r"pullback.toml cannot be read \(Permission denied\); fix its permissions$"):
        read_project(path)


def test_a_byte_order_mark_is_no_part_of_the_file(tmp_path):
    (tmp_path / "pullback.toml").write_text(WHOLE, encoding="utf-8-sig")
    assert find_project(tmp_path).name == "ridge"
