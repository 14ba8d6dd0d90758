import subprocess
import sys

import numpy as np
import pytest

from pullback_runners.errors import UsageError
from pullback_runners.measurement.gradient_check import array_of
from pullback_runners.workloads import choose_cases, find_workload, known_workloads, load_workload_file, registry


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


@pytest.fixture
def own_registry(monkeypatch):
    """A registry for this test alone."""
    registry.known_workloads()
    monkeypatch.setattr(registry, "_workloads", dict(registry._workloads))


MINE = """
from pullback_runners.workloads import grid, workload

@workload(wrt="x", quick=grid(n=(1,)))
def mine(n):
    return lambda x: x
"""


def test_a_file_declares_workloads_as_often_as_it_is_loaded(tmp_path, own_registry):
    file = tmp_path / "mine.py"
    file.write_text(MINE)
    for _ in range(2):
        load_workload_file(file)
    assert find_workload("mine").is_foreign
    assert find_workload("mine").sentence == "(its function has no docstring)"


def test_a_run_with_a_file_measures_the_workloads_of_the_file(tmp_path, own_registry):
    file = tmp_path / "mine.py"
    file.write_text(MINE)
    assert [case.workload for case in choose_cases("quick", files=[file]).cases] == ["mine"]
    assert [case.workload for case in choose_cases("quick", ["mine*"], [file]).cases] == ["mine"]
    assert [case.workload for case in choose_cases("quick", ["*"], [file]).cases] == ["mine"]
    assert "lstm" in {case.workload for case in choose_cases("quick", ["lstm"], [file]).cases}


def test_the_remedy_for_an_unreadable_file_is_its_permissions(tmp_path, own_registry, monkeypatch):
    file = tmp_path / "mine.py"
    file.write_text(MINE)

    def refuse(path, **_):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(registry.runpy, "run_path", refuse)  # root can read every file
    with pytest.raises(UsageError, match=r"mine.py cannot be loaded.*; fix its permissions$"):
        load_workload_file(file)


def test_a_file_that_declares_nothing_is_refused(tmp_path, own_registry):
    file = tmp_path / "mine.py"
    file.write_text("import numpy\n")
    with pytest.raises(UsageError, match=r"mine\.py declares no workload; decorate"):
        load_workload_file(file)


def test_a_file_cannot_take_the_name_of_one_of_ours(tmp_path, own_registry):
    file = tmp_path / "mine.py"
    file.write_text(MINE.replace("def mine", "def lstm"))
    with pytest.raises(UsageError, match="lstm is one of Pullback's own; give yours another name"):
        load_workload_file(file)
    assert not find_workload("lstm").is_foreign


def test_a_suite_that_is_misspelt_is_refused_with_the_known_ones(tmp_path, own_registry):
    file = tmp_path / "mine.py"
    file.write_text(MINE.replace("quick", "quik"))
    with pytest.raises(UsageError) as refused:
        load_workload_file(file)
    assert str(refused.value) == (
        f"{file} cannot be loaded (line 4): workload mine has sizes for 'quik', which is no suite; "
        "known: quick, standard, full, trial; fix the file"
    )
    assert "mine" not in registry._workloads


def test_a_function_that_takes_its_arguments_instead_of_its_sizes_is_refused(tmp_path, own_registry):
    file = tmp_path / "mine.py"
    file.write_text(MINE.replace("def mine(n)", "def mine(x, *, n)"))
    with pytest.raises(UsageError) as refused:
        load_workload_file(file)
    assert str(refused.value) == (
        f"{file} cannot be loaded (line 4): workload mine takes (x, *, n), but is called with its sizes, (n), and returns the "
        "function to differentiate; write def mine(n): return lambda x: ...; fix the file"
    )


def test_a_file_that_raises_behind_its_workloads_declares_none_and_nothing_else_is_measured(tmp_path):
    file = tmp_path / "mine.py"
    declared = "from pullback_runners.workloads import grid, workload\n@workload(wrt='x', quick=grid(n=(1,)))\ndef mine(n):\n    'x'\n"
    file.write_text(f"{declared}def (\n")
    with pytest.raises(UsageError, match=r"cannot be loaded \(line 5\): SyntaxError: invalid syntax; fix the file$"):
        choose_cases("quick", [], [file])
    file.write_text(f"{declared}1 / 0\n")
    with pytest.raises(UsageError, match=r"\(line 5\): ZeroDivisionError: division by zero; fix the file$"):
        choose_cases("quick", [], [file])
    assert "mine" not in registry._workloads


def test_what_a_function_of_the_file_raises_while_it_is_loaded_comes_with_its_name(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("def sizes():\n    return 1 / 0\n\nsizes()\n")
    with pytest.raises(UsageError, match=r"cannot be loaded \(line 2, in sizes\): ZeroDivisionError"):
        load_workload_file(file)


class EntryPoint:
    """What an installed package says it has."""

    def __init__(self, load):
        self.name, self.value, self.load = "mine", "mine.workloads", load


@pytest.fixture
def installed(monkeypatch, own_registry):
    def install(*entry_points):
        monkeypatch.setattr("importlib.metadata.entry_points", lambda group: entry_points)
        registry.broken_packages.cache_clear()

    yield install
    monkeypatch.undo()
    registry.broken_packages.cache_clear()


def test_an_installed_package_offers_its_workloads_by_an_entry_point(installed):
    installed(EntryPoint(lambda: exec(MINE, {"__name__": "mine.workloads"})))  # noqa: S102 - our own text
    assert find_workload("mine").cases("quick")


def test_a_package_that_cannot_be_loaded_is_a_sentence_and_the_others_go_on(installed):
    def raise_():
        raise ImportError("no such thing")

    installed(EntryPoint(raise_), EntryPoint(lambda: exec(MINE, {"__name__": "mine.workloads"})))  # noqa: S102 - our own text
    choice = choose_cases("quick", ["mine", "densse", "mul_restore"])
    assert [case.workload for case in choice.cases] == ["mine", "mul_restore"]
    assert len(choice.refused) == 2
    assert "ImportError('no such thing'); fix or uninstall the package" in choice.refused[0]
    assert "no case of suite 'quick' matches 'densse'" in choice.refused[1]


def test_files_that_cannot_be_loaded_are_left_out_and_the_others_go_on(tmp_path, own_registry):
    good, broken, missing = (tmp_path / name for name in ("good.py", "broken.py", "missing.py"))
    good.write_text(MINE)
    broken.write_text("raise RuntimeError('boom')")
    choice = choose_cases("quick", ["mine"], [broken, good, missing])
    assert (choice.files, [case.workload for case in choice.cases]) == ([good], ["mine"])
    assert ["broken.py" in choice.refused[0], "missing.py" in choice.refused[1]] == [True, True]


def test_where_nothing_is_left_to_measure_the_reason_is_raised(tmp_path):
    with pytest.raises(UsageError, match=r"nowhere\.py"):
        choose_cases("quick", ["densse"], [tmp_path / "nowhere.py"])


def test_workloads_are_declared_also_beside_an_engine_that_lacks_what_they_need(tmp_path):
    # Earlier commits are measured with these workloads; what an engine does not have fails its own cases only.
    (tmp_path / "pullback").mkdir()
    (tmp_path / "pullback" / "__init__.py").write_text("")
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from pullback_runners.workloads import known_workloads\n"
        "from pullback_runners.peers import PEERS, find_peer\n"
        "print(len(known_workloads()), sum(find_peer(name).offers(each) for name in PEERS for each in known_workloads()))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[0]) == len([each for each in known_workloads() if not each.is_foreign])


def test_an_environment_without_scipy_loads_the_workloads_that_do_not_need_it():
    program = (
        "import sys; sys.modules['scipy'] = None\n"
        "from pullback_runners.workloads.registry import known_workloads\n"
        "print(*(each.name for each in known_workloads()))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "dense_bias_act" in done.stdout.split()
    assert "black_scholes" not in done.stdout.split()


def test_a_workload_of_two_files_is_said_to_be_that_of_the_second(tmp_path, own_registry):
    files = [tmp_path / "one.py", tmp_path / "two.py"]
    for file in files:
        file.write_text(MINE)
    (said,) = choose_cases("quick", files=files).refused
    assert said == (
        f"workload mine is declared by {files[0]} and by {files[1]}, and the second one is measured; "
        "give one of them another name"
    )
    assert choose_cases("quick", files=files[:1] * 2).refused == []


@pytest.mark.parametrize("how", ["peer", "variant"])
def test_a_variant_cannot_take_the_name_of_a_tier(tmp_path, own_registry, how):
    file = tmp_path / "mine.py"
    file.write_text(f"{MINE}\n\n@mine.{how}('native')\ndef _(x, *, n):\n    return 0.0, {{'x': x}}\n")
    with pytest.raises(UsageError, match="workload mine declares a variant 'native', which is a tier of Pullback's"):
        load_workload_file(file)


@pytest.mark.parametrize("name", ["", " a", "a\nb", "a" * 201, 3])
def test_a_variant_has_a_name_that_the_service_takes(tmp_path, own_registry, name):
    file = tmp_path / "mine.py"
    file.write_text(f"{MINE}\n\n@mine.peer({name!r})\ndef _(x, *, n):\n    return 0.0, {{'x': x}}\n")
    with pytest.raises(UsageError, match="workload mine declares a variant .*; give it a name of one line and at most"):
        load_workload_file(file)
