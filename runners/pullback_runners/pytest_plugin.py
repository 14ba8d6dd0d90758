"""A plugin for pytest: with `--pullback FILE` tests that ask for `gradient_benchmark` are timed, and a report is written.

It is loaded by every pytest in an environment that has Pullback, so nothing is imported before the option is given.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from pullback_runners.in_process import InProcessTimings


_measured: pytest.StashKey[InProcessTimings] = pytest.StashKey()
_taking_back: pytest.StashKey[list[Callable[[str], None]]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("pullback").addoption(
        "--pullback",
        metavar="FILE",
        help="time what tests give to gradient_benchmark, and write a report for pullback upload",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse what cannot be done before a test runs."""
    file = config.getoption("--pullback")
    if file is None:
        return
    if getattr(config.option, "numprocesses", None) or hasattr(config, "workerinput"):
        raise pytest.UsageError("--pullback times one test at a time; leave out -n")
    folder = Path(file).absolute().parent
    if not folder.is_dir() or Path(file).is_dir():
        raise pytest.UsageError(f"--pullback cannot write {file}; give a file in a folder that exists")
    from pullback_runners.in_process import InProcessTimings  # noqa: PLC0415 - NumPy and more, for this option alone

    config.stash[_measured] = InProcessTimings()


def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Take back what was measured in a test that failed: its assertions are what says that a gradient is right."""
    if call.when == "call" and call.excinfo is not None:
        for take_back in item.stash.get(_taking_back, ()):
            take_back(f"its test failed: {call.excinfo.exconly(tryshort=True).splitlines()[0]}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the report of what was measured."""
    measured = session.config.stash.get(_measured, None)
    if measured is not None:
        measured.write(session.config.rootpath, Path(session.config.getoption("--pullback")))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say what was measured, and where it is."""
    measured = config.stash.get(_measured, None)
    if measured is not None:
        terminalreporter.section("gradients")
        for line in measured.lines():
            terminalreporter.write_line(line)
        terminalreporter.write_line(f"written to {config.getoption('--pullback')}; pullback upload sends it")


@pytest.fixture
def gradient_benchmark(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Call a function without arguments and return its result; with `--pullback FILE` it is timed.

    Keywords are the sizes of the case, beside the parameters of the test. `variant` is how it is computed.
    """
    measured = request.config.stash.get(_measured, None)

    def benchmark(call: Callable[[], Any], *, variant: str = "function", **sizes: Any) -> Any:
        result = call()
        if measured is not None:
            parameters = request.node.callspec.params if hasattr(request.node, "callspec") else {}
            name = getattr(request.node, "originalname", None) or request.node.name
            case = (name.removeprefix("test_"), {**parameters, **sizes}, variant)
            request.node.stash.setdefault(_taking_back, []).append(measured.measure(*case, call))
        return result

    return benchmark
