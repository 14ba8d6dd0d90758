"""A process that compares gradients with closed forms, and imports nothing that is measured.

A worker checks what it computes, but it runs the code of a commit, which can change the check. So what workers of a commit computed is
written to files as well, and one process of a run checks it once more, with the engine that is installed in the place of the commit's.
Run as `python -P -m` with this name it reads orders, a JSON object with a case and a file each, and answers each with one line.

Workloads of others are a part of the commit, and so are their oracles: nobody can check those but the commit itself.
"""

import json
import os
import select
import stat
import subprocess
import sys
import time
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, Self, cast

from pullback_runners.errors import UsageError, VariantError
from pullback_runners.measurement.answer_forms import has, is_text, is_truth
from pullback_runners.measurement.answers import NoAnswerError, answer_of
from pullback_runners.measurement.gradient_check import array_of, check_gradient
from pullback_runners.measurement.oracles import read_gradient
from pullback_runners.measurement.renewal import die_with_parent, refuse_attaching
from pullback_runners.measurement.subject import INSTALLED
from pullback_runners.measurement.worker import take_standard_output
from pullback_runners.measurement.worker_process import python_environment
from pullback_runners.workloads import Case, Inputs, ValueAndGradients, find_workload

_TIMEOUT_S = 120.0
_NAMES_BYTES = 1 << 20
"""A file of a gradient may hold so much beside the numbers."""


class OracleProcess:
    """The process, started by the first check."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def check(self, case: Case, file: Path) -> dict[str, Any] | None:
        """The check of a gradient in a file, as a report writes it; None of workloads of others. VariantError says what is wrong."""
        process = self._process = self._process or _start()
        try:
            orders = cast("IO[bytes]", process.stdin)
            orders.write(json.dumps({"case": case.document(), "file": str(file)}).encode() + b"\n")
            orders.flush()
            answer = answer_of(_line(process), _is_check)
        except (OSError, ValueError, NoAnswerError) as error:
            self._end()  # or an answer that comes later would be taken for that of the next gradient
            raise VariantError("doubtful", f"its gradient cannot be checked outside of it ({error})") from error
        checked: dict[str, Any] | None = answer["checked"]
        if checked is not None and not checked["ok"]:
            raise VariantError(
                "doubtful",
                f"it found its gradient right, and a process without its code did not: {checked['complaint']}",
            )
        return checked

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
    for line in sys.stdin:
        order = json.loads(line)
        answer({"checked": _checked(Case.of_document(order["case"]), Path(order["file"]))})


def _checked(case: Case, file: Path) -> dict[str, Any] | None:
    expected = _expected(case)
    if expected is None:
        return None
    inputs, closed_form = expected
    try:
        _refuse_other_files(file, sum(array_of(each).nbytes for each in (closed_form[0], *closed_form[1].values())))
        return check_gradient(read_gradient(file), closed_form, inputs, case.dtype).document()
    except Exception as error:  # noqa: BLE001 - the file is written by code of others
        return {"ok": False, "complaint": f"what it wrote is no gradient ({type(error).__name__}: {error})"}


@lru_cache(maxsize=1)
def _expected(case: Case) -> tuple[Inputs, ValueAndGradients] | None:
    try:
        workload = find_workload(case.workload)
    except UsageError:
        return None
    if workload.is_foreign or not workload.has_oracle:
        return None
    inputs = workload.draw_inputs(case)
    return inputs, workload.closed_form(case, inputs)


def _refuse_other_files(file: Path, expected_bytes: int) -> None:
    about = file.lstat()
    if not stat.S_ISREG(about.st_mode) or about.st_size > expected_bytes + _NAMES_BYTES:
        raise ValueError("it is no file of the size of the gradient")


if __name__ == "__main__":
    main()
