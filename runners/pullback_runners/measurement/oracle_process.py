"""A process that compares gradients with their references, and imports nothing that is measured.

A worker checks what it computes, but it runs the code of a commit, which can change the check. So what workers computed is written to
files as well, and one process of a run checks it once more, with the engine that is installed in the place of the commit's.
Run as `python -P -m` with this name it reads orders, a JSON object with a case and a file each, and answers each with one line. It keeps
the gradients of a case that it found right: what others of the case are compared with nobody can write any more.

our workloads           the closed form, computed here
workloads of others     their closed form, which a worker wrote beside the gradient; else a gradient of the reference that was right; else
                        differences of the value along directions drawn here, for which the answer asks for values at arguments in a file
timed processes         the gradient that the variant had when it was examined

Workloads of others are a part of the commit, their functions and closed forms too: nobody can check those but the commit itself.
"""

import json
import os
import secrets
import select
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Self, cast

from pullback_runners.errors import VariantError
from pullback_runners.measurement.answer_forms import has, is_text, is_truth
from pullback_runners.measurement.answers import NoAnswerError, answer_of
from pullback_runners.measurement.finite_differences import NAME as DIFFERENCES
from pullback_runners.measurement.finite_differences import FiniteDifferences
from pullback_runners.measurement.gradient_check import AGREEMENT, GradientCheck, array_of, check_gradient
from pullback_runners.measurement.oracles import arguments_file, closed_form_file, read_gradient, write_gradient
from pullback_runners.measurement.renewal import die_with_parent, refuse_attaching
from pullback_runners.measurement.subject import INSTALLED
from pullback_runners.measurement.worker import take_standard_output
from pullback_runners.measurement.worker_process import KeptGradient, python_environment
from pullback_runners.workloads import Case, Inputs, ValueAndGradients, own_workload

_TIMEOUT_S = 120.0
_MOST_BYTES = 16 << 30
"""The most bytes of arguments, which are limited by the memory that their processes have."""
_NAMES_BYTES = 1 << 20
"""A file of a gradient may hold so much beside the numbers."""


class OracleProcess:
    """The process, started by the first check unless it was before. Arguments at which it asks for values are files in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = folder

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def start(self) -> None:
        """Let it import what it needs while workers do."""
        self._process = self._process or _start()

    def check(self, kept: KeptGradient) -> dict[str, Any] | None:
        """The check of a gradient in a file, as a report writes it; None where there is nothing to compare it with. VariantError says what is wrong."""
        raised: VariantError | None = None
        answer = self._ask(
            {
                "case": kept.case.document(),
                "file": str(kept.file),
                "first": None if kept.first is None else str(kept.first),
                "reference": None if kept.reference is None else (kept.reference[0], str(kept.reference[1])),
                "folder": str(self._folder),
            }
        )
        while "at" in answer:
            value = None
            if raised is None or raised.kind == "exception":
                try:
                    value = kept.value_at(answer["at"])
                except VariantError as error:
                    raised = error  # of this worker: the process goes on with what it knows of others
            answer = self._ask({"value": value})
        checked: dict[str, Any] | None = answer["checked"]
        if raised is not None and (raised.kind != "exception" or checked is None or not checked["ok"]):
            raise raised
        if checked is not None and not checked["ok"]:
            if checked.get("oracle") == DIFFERENCES:  # which workers leave to this process
                raise VariantError("gradient", checked["complaint"])
            raise VariantError(
                "doubtful",
                f"it found its gradient right, and a process without its code did not: {checked['complaint']}",
            )
        return checked

    def _ask(self, order: dict[str, Any]) -> dict[str, Any]:
        try:
            self.start()
            process = cast("subprocess.Popen[bytes]", self._process)
            orders = cast("IO[bytes]", process.stdin)
            orders.write(json.dumps(order).encode() + b"\n")
            orders.flush()
            return answer_of(_line(process), _is_answer)
        except (OSError, ValueError, NoAnswerError) as error:
            self._end()  # or an answer that comes later would be taken for that of the next gradient
            raise VariantError("doubtful", f"its gradient cannot be checked outside of it ({error})") from error

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
        self._process = None


def _start() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(  # noqa: S603 - our own module
        [sys.executable, "-P", "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=python_environment(INSTALLED),
        start_new_session=True,
    )


def _is_answer(answer: dict[str, Any]) -> bool:
    return is_text(answer.get("at")) or _is_check(answer)


def _is_check(answer: dict[str, Any]) -> bool:
    checked = answer.get("checked", ())
    return checked is None or (has(checked, ok=is_truth) and (checked["ok"] or has(checked, complaint=is_text)))


def _line(process: "subprocess.Popen[bytes]") -> bytes:
    """The next line of output; ValueError says why there is none."""
    answers = cast("IO[bytes]", process.stdout)
    deadline, line = time.monotonic() + _TIMEOUT_S, b""
    while not line.endswith(b"\n"):
        if not select.select([answers], [], [], max(deadline - time.monotonic(), 0.0))[0]:
            raise ValueError(f"no answer in {_TIMEOUT_S:g} s")
        received = os.read(answers.fileno(), 1 << 16)
        if not received:
            raise ValueError("the process that checks has ended")
        line += received
    return line


def main() -> None:
    """Answer orders until the input ends."""
    answer = take_standard_output()
    die_with_parent()
    refuse_attaching()
    orders = map(json.loads, sys.stdin)

    def value_at(file: str) -> float | None:
        answer({"at": file})
        value: float | None = next(orders)["value"]
        return value

    checks: _Checks | None = None
    for order in orders:
        case = Case.of_document(order["case"])
        if checks is None or checks.case != case:
            checks = _Checks(case)
        try:
            checked = checks.check(order, value_at)
        except Exception as error:  # noqa: BLE001 - files and values are written by code of others
            checked = {"ok": False, "complaint": f"what it wrote is no gradient ({type(error).__name__}: {error})"}
        answer({"checked": checked})


class _Checks:
    """The checks of one case, and the gradients of it that were right, by their files."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self._right: dict[str, ValueAndGradients] = {}
        self._workload = own_workload(case.workload)

    @cached_property
    def _expected(self) -> tuple[Inputs, ValueAndGradients] | None:
        """Arguments and closed form of a workload of ours; None if it has none."""
        if self._workload is None or not self._workload.has_oracle:
            return None
        inputs = self._workload.draw_inputs(self.case)
        return inputs, self._workload.closed_form(self.case, inputs)

    def check(self, order: dict[str, Any], ask: Callable[[str], float | None]) -> dict[str, Any] | None:
        file = Path(order["file"])
        if self._workload is not None:
            if self._expected is None:
                return None
            inputs, closed_form = self._expected
            return check_gradient(_read(file, _bytes_of(closed_form)), closed_form, inputs, self.case.dtype).document()
        if order["first"] is not None:
            first = self._right.get(order["first"])
            if first is None:
                return {"ok": False, "complaint": "the gradient that it had first is not known any more"}
            return self._agrees(_read(file, _bytes_of(first)), first, "its first gradient").document()
        done, computed = self._examined(file, order, ask)
        if done.ok:
            self._right[order["file"]] = computed
        return done.document()

    def _examined(
        self, file: Path, order: dict[str, Any], ask: Callable[[str], float | None]
    ) -> tuple[GradientCheck, ValueAndGradients]:
        """The check of a gradient of a workload of others, and the gradient."""
        _, inputs = _read(arguments_file(file))
        if closed_form_file(file).exists():
            expected = _read(closed_form_file(file))
            computed = _read(file, _bytes_of(expected))
            return check_gradient(computed, expected, inputs, self.case.dtype), computed
        computed = _read(file, _bytes_of((0.0, inputs)))
        name, other = order["reference"] or (None, None)
        if other in self._right:
            return self._agrees(computed, self._right[other], f"variant {name}"), computed

        def value_at(moved: Inputs) -> float:
            with tempfile.NamedTemporaryFile(dir=order["folder"]) as there:
                write_gradient((0.0, moved), there)
                there.flush()
                value = ask(there.name)
            if value is None:
                raise ValueError("its value cannot be computed at other arguments")
            return value

        # Who knows the directions can be wrong across them.
        differences = FiniteDifferences(value_at, inputs, tuple(inputs), self.case.dtype, secrets.randbits(64))
        return differences.check(computed), computed

    def _agrees(self, computed: ValueAndGradients, expected: ValueAndGradients, oracle: str) -> GradientCheck:
        return check_gradient(computed, expected, expected[1], self.case.dtype, oracle, AGREEMENT)


def _read(file: Path, most_bytes: int = _MOST_BYTES) -> ValueAndGradients:
    """A gradient in a file of at most so many bytes of numbers."""
    about = file.lstat()
    if not stat.S_ISREG(about.st_mode) or about.st_size > most_bytes + _NAMES_BYTES:
        raise ValueError("it is no file of the size of the gradient")
    return read_gradient(file)


def _bytes_of(gradient: ValueAndGradients) -> int:
    """Bytes of a value and gradients."""
    value, gradients = gradient
    return sum(array_of(each).nbytes for each in (value, *gradients.values()))


if __name__ == "__main__":
    main()
