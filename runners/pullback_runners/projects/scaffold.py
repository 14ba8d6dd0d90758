"""The first files of a project: `pullback.toml` and a workload that was tried before it is left there."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pullback_runners.errors import UsageError
from pullback_runners.git import git, is_bare, last_line
from pullback_runners.measurement.examination import examine
from pullback_runners.measurement.member import Member
from pullback_runners.measurement.subject import Subject
from pullback_runners.measurement.subject_cases import choose_for
from pullback_runners.measurement.worker_process import WorkerSettings
from pullback_runners.projects.configuration import FILE
from pullback_runners.projects.drafts import example_for, workload_name, workload_text
from pullback_runners.projects.functions import PlainFunction
from pullback_runners.workloads import FIX_IT, known_workloads

MOST_TRIED = 5
"""Functions tried before an example takes their place; a trial takes a second or two."""
_OF_AXES = re.compile(r"\b(axis|axes|dim|dims|dimensions?|dimensional|ndim|rank|shapes?|indices|indexed|unpack)\b")
"""Words of errors that arrays with another number of axes may mend."""


@dataclass(frozen=True)
class Draft:
    """A workload file that was written, and what was tried before."""

    function: PlainFunction
    refused: tuple[str, ...]
    """A sentence for each function that was tried and cannot be taken."""


def require_work_tree(start: Path) -> Path:
    """The top of the repository that a folder is in; UsageError where no project can begin."""
    try:
        output = git(start, "rev-parse", "--show-toplevel")
    except FileNotFoundError as error:
        raise UsageError("git is not installed, and a project's commits are read by it; install git") from error
    if output.returncode != 0:
        if is_bare(start) or "work tree" in last_line(output):
            raise UsageError(
                f"{start} is a bare repository, where {FILE} cannot be written; clone it and go to the clone"
            )
        raise UsageError(f"{start} is in no git repository; go to yours, or begin one by `git init`")
    above = git(start, "rev-parse", "--show-superproject-working-tree").stdout.decode(errors="surrogateescape").strip()
    if above:
        raise UsageError(
            f"{start} is in a submodule of {above}, whose commits are not those of a project; go to a clone of its own"
        )
    return Path(output.stdout.decode(errors="surrogateescape").removesuffix("\n"))


def write_workload(
    file: Path,
    functions: Sequence[PlainFunction],
    engine: str,
    project: str,
    subject: Subject | None,
    *,
    tell: Callable[[str], None] = lambda _: None,
) -> Draft:
    """Write a workload file for the first of these functions whose gradient is right when tried, else with an example.

    Without a subject nothing is tried: the first one is taken as it is.
    """
    taken = {each.name for each in known_workloads()}
    refused: list[str] = []
    for function in [*functions[:MOST_TRIED], example_for(engine)]:
        if function.module and subject is not None:
            tell(f"trying {function.module}.{function.name}")
        reasons: list[str] = []
        for shaped in (function, *function.of_matrices()):
            if reasons and not _OF_AXES.search(reasons[0]):
                break
            file.write_text(workload_text(shaped, workload_name(function, taken), project), encoding="utf-8")
            if subject is None:
                return Draft(function, ())
            reason = why_not(file, subject)
            if reason is None or not function.module:
                return Draft(shaped, tuple(refused))
            reasons.append(reason)
        refused.append(f"{function.module}.{function.name} ({function.place}) was not taken: {reasons[0]}")
    raise AssertionError("the example is taken whatever it gives")


def why_not(file: Path, subject: Subject) -> str | None:
    """The reason why a workload file gives no correct gradient; None if its first case does."""
    try:
        choice = choose_for(subject, "trial", files=[file])
    except UsageError as error:
        return str(error).replace(FIX_IT, "")  # nobody but init has written it
    case = choice.cases[0]
    offer = choice.offers[case.workload]
    members = [Member(name, subject) for name in (offer.variants or ("unfused",))]
    settings = WorkerSettings(choice.files, timeout_s=20.0, modules=choice.modules)
    _, failures = examine(case, members, settings)
    return next((failure.message for failure in failures.values()), None)
