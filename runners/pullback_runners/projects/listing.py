"""The cases of a subject, listed by its own interpreter: workloads import what only its environment has.

`python -P -m pullback_runners.projects.listing` reads the question from its standard input and answers with one JSON object.
"""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pullback_runners.errors import UsageError
from pullback_runners.measurement.subject import Subject
from pullback_runners.measurement.worker import import_subject
from pullback_runners.measurement.worker_process import interpreter
from pullback_runners.workloads import CPU, Case, Choice, Offer, choose_cases

TIMEOUT_S = 120.0
"""To import what workloads import; engines that compile at import take half a minute."""


def choose_elsewhere(
    subject: Subject, suite: str, patterns: Sequence[str] = (), files: Sequence[Path] = (), device: str = CPU
) -> Choice:
    """Choose cases as `choose_cases` does, with the subject's interpreter, paths and variables."""
    question = {
        "subject": subject.document(),
        "suite": suite,
        "patterns": list(patterns),
        "files": [str(file) for file in files],
        "device": device,
    }
    environment = {**os.environ, **subject.variables}
    if subject.harness is not None:
        environment["PYTHONPATH"] = str(subject.harness)
    try:
        done = subprocess.run(  # noqa: S603 - the interpreter of an environment that we made
            [*interpreter(subject), "-P", "-m", "pullback_runners.projects.listing"],
            input=json.dumps(question),
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as error:
        raise UsageError(
            f"{', '.join(map(str, files))} took more than {TIMEOUT_S:.0f} s to import; declare workloads without computing"
        ) from error
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise UsageError(f"the workloads cannot be listed: {last}")
    answer: dict[str, Any] = json.loads(done.stdout)
    if "wrong" in answer:
        raise UsageError(answer["wrong"])
    return Choice(
        [Case.of_document(case) for case in answer["cases"]],
        [Path(file) for file in answer["files"]],
        answer["refused"],
        {name: Offer(**{**offer, "variants": tuple(offer["variants"])}) for name, offer in answer["offers"].items()},
        answer["modules"],
    )


def main() -> None:
    """Answer the question."""
    question = json.load(sys.stdin)
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a workload prints is no part of the answer
    json.dump(_answer(question), channel)


def _answer(question: dict[str, Any]) -> dict[str, Any]:
    with contextlib.suppress(Exception):  # a worker meets it again, and answers with the reason
        import_subject(question["subject"])
    try:
        choice = choose_cases(
            question["suite"], question["patterns"], [Path(file) for file in question["files"]], question["device"]
        )
    except UsageError as error:
        return {"wrong": str(error)}
    return {
        "cases": [case.document() for case in choice.cases],
        "files": [str(file) for file in choice.files],
        "refused": choice.refused,
        "offers": {name: vars(offer) for name, offer in choice.offers.items()},
        "modules": choice.modules,
    }


if __name__ == "__main__":
    main()
