"""Exit statuses of every command: the table that their help is completed from, and docs/exit-statuses.md."""

import inspect
from collections.abc import Mapping
from typing import Final, TypeAlias

import typer

Meanings: TypeAlias = Mapping[str, str]
"""Meanings by status, in the order in which they are shown."""

DONE: Final = 0
USAGE: Final = 2
UNAVAILABLE: Final = 75  # EX_TEMPFAIL of sysexits.h: trying again later may help

_DONE: Final[dict[str, str]] = {"0": "done"}
_REFUSED: Final[dict[str, str]] = {"2": "wrong usage, or the service refused"}
_UNAVAILABLE: Final[dict[str, str]] = {"75": "the service cannot be reached, or is out of order; try again later"}
_INTERRUPTED: Final[dict[str, str]] = {"130, 143": "interrupted by Ctrl-C or SIGTERM"}
_KEPT: Final[dict[str, str]] = {"130, 143": "interrupted by Ctrl-C or SIGTERM; finished results are kept"}
_OF_A_SERVICE: Final[dict[str, str]] = _DONE | _REFUSED | _UNAVAILABLE
_OF_JOBS: Final[dict[str, str]] = {
    "0": "done for all jobs",
    "2": "wrong usage, or the service refused one of the jobs; the others are changed",
    **_UNAVAILABLE,
}
_OF_THE_DATABASE: Final[dict[str, str]] = _DONE | {
    "2": "wrong usage, a refusal, or a database that cannot be reached or is of another release"
}
_NO_INCIDENT: Final = "there is no such incident, it was merged into another one, or the service refused"

MEANINGS: Final[Mapping[str, Meanings]] = {
    "init": {
        "0": "written, and a case of each workload was measured",
        "1": "written, and a case failed, or an environment could not be made",
        "2": "nothing written: wrong usage, no repository, or the files are there already",
        "130, 143": "interrupted by Ctrl-C or SIGTERM; written files are kept",
    },
    "run": {
        "0": "all cases measured",
        "1": "a case or a commit failed",
        "2": "wrong usage, even of a part of the request, or a file that cannot be written",
        **_KEPT,
    },
    "compare": {
        "0": "no regression",
        "3": "a regression: slower, or more memory; also one that is only likely, as on a busy machine without an A/A control",
        "1": "no regression, but something could not be compared",
        "2": "wrong usage, even of a part of the request, or a commit that cannot be built",
        **_KEPT,
    },
    "bisect": {
        "0": "the commit is found",
        "1": "the bad end is no worse than the good one, or no single commit shows the change",
        "125": "one of several commits: those before it cannot be built, or give no answer",
        "2": "wrong usage, or an end cannot be built",
        **_INTERRUPTED,
    },
    "up": {
        "0": "stopped by Ctrl-C, SIGTERM or `pullback down`; with --detach: ready",
        "1": "one of its processes ended again and again",
        "2": "wrong usage, or it could not be started",
    },
    "status": {
        "0": "running; of a service: nothing needs attention",
        "1": "nothing is running on the folder, or the service needs attention",
        **_REFUSED,
        **_UNAVAILABLE,
    },
    "down": {"0": "stopped, or nothing was running", "2": "wrong usage, or the folder cannot be used"},
    "workloads": {"0": "all shown", "2": "wrong usage, or a file that cannot be loaded; the others are still shown"},
    "upload": {
        "0": "everything is stored, now or before",
        "2": "wrong usage, a file that cannot be read (nothing is sent), or the service refused one (those before it are stored)",
        "75": "the service cannot be reached, or is out of order; repeat the command: nothing is stored twice",
    },
    "check": {
        "5": "a wrong gradient",
        "3": "a regression: slower in turns, or more memory",
        "4": "missing: a case or variant that the base has and the head has not",
        "8": "a regression that is only likely, with --fail-on likely",
        "6": "ambiguous although it was measured in turns, with --fail-on ambiguous",
        "7": "over a budget of pullback.toml, with --fail-on budget",
        "1": "not enough data, or the service does not know the commit",
        "0": "no finding that fails the check",
        "2": "wrong usage, or not allowed",
        **_UNAVAILABLE,
        **_INTERRUPTED,
    },
    "import": {
        "0": "everything is stored, now or before",
        "2": "wrong usage, a history that cannot be read, or the service refused; reports before it are stored",
        "75": "the service cannot be reached, or is out of order; repeat the command: nothing is stored twice",
    },
    "export": {
        "0": "written",
        "2": "wrong usage, a file that cannot be written, or the service refused",
        "75": "the service cannot be reached, is out of order, or closed the connection early; try again later",
        "141": "the reader of its output closed the pipe",
    },
    "log": {"0": "sent", "2": "wrong usage, git cannot read the branch, or the service refused", **_UNAVAILABLE},
    "job list": {"0": "listed, also if there are none", **_REFUSED, **_UNAVAILABLE},
    "job show": {
        "0": "shown; with --follow: the job is done",
        "1": "with --follow: the job failed, was cancelled or lost",
        "2": "wrong usage, there is no such job, or the service refused",
        **_UNAVAILABLE,
    },
    "job create": {
        "0": "the job is created, or was there",
        "2": "wrong usage, an unknown commit, or the service refused",
        **_UNAVAILABLE,
    },
    **dict.fromkeys(("job cancel", "job retry", "job approve"), _OF_JOBS),
    "job priority": _OF_A_SERVICE,
    "job backfill": _OF_A_SERVICE,
    "incident list": {"0": "listed, also if there are none", **_REFUSED, **_UNAVAILABLE},
    "incident show": {
        "0": "shown",
        "2": "wrong usage, there is no such incident, or the service refused",
        **_UNAVAILABLE,
    },
    "incident verdict": {"0": "recorded", "2": f"wrong usage, {_NO_INCIDENT}", **_UNAVAILABLE},
    "incident assign": {"0": "assigned", "2": f"wrong usage, {_NO_INCIDENT}", **_UNAVAILABLE},
    "incident confirm": {
        "0": "a job is queued, or was already",
        "2": f"wrong usage, no agent can measure it, {_NO_INCIDENT}",
        **_UNAVAILABLE,
    },
    "incident bisect": {
        "0": "the search is running",
        "2": "wrong usage, the incident is not confirmed or begins at one commit, no agent can measure it, or the service refused",
        **_UNAVAILABLE,
    },
    "rules": {
        "0": "the rules are in force, or shown",
        "2": "wrong usage, or the file or a rule is refused, with its line: the previous rules remain in force",
        **_UNAVAILABLE,
    },
    "report withdraw": {
        "0": "withdrawn, now or before",
        "2": "wrong usage, there is no such report, or the service refused",
        **_UNAVAILABLE,
    },
    **dict.fromkeys(("project create", "project list", "project set"), _OF_THE_DATABASE),
    "channel add": {"0": "created", **_REFUSED, **_UNAVAILABLE},
    "channel list": {"0": "listed, also if there are none", **_REFUSED, **_UNAVAILABLE},
    "channel show": _OF_A_SERVICE,
    "channel test": {
        "0": "the message arrived",
        "1": "it did not arrive, or no worker sent it within --wait",
        **_REFUSED,
        **_UNAVAILABLE,
    },
    "channel remove": _OF_A_SERVICE,
    **dict.fromkeys(("token create", "token list", "token revoke", "token enroll"), _OF_THE_DATABASE),
    "serve": {"2": "wrong usage, a wrong setting, or a port in use", "130, 143": "stopped by Ctrl-C or SIGTERM"},
    "worker": {"0": "stopped by Ctrl-C or SIGTERM", "2": "wrong usage, or a wrong setting"},
    "agent": {
        "0": "stopped by Ctrl-C or SIGTERM; with --once: after one job, or none",
        "2": "wrong usage, this machine does not support the isolation, or the service refused; an unreachable service is awaited",
    },
    "migrate": _OF_THE_DATABASE,
    "db backup": _OF_THE_DATABASE,
    "db restore": _OF_THE_DATABASE,
    "db upgrade": _OF_THE_DATABASE,
    "db check": _OF_THE_DATABASE | {"0": "no problems found", "1": "problems found"},
    **dict.fromkeys(("db rebuild", "db recompute"), _OF_THE_DATABASE),
    "db detect": _OF_THE_DATABASE
    | {"0": "nothing differs", "1": "something differs", "130": "interrupted; findings so far are listed"},
    "gradbench": {"0": "the input ended, or its output was closed", "2": "wrong usage", "130": "interrupted"},
    "version": {"0": "printed", "2": "wrong usage"},
}

_HEADINGS: Final[Mapping[str, str]] = {
    "bisect": "Exit status, as of git bisect run:",
    "check": "Exit status, of several the first one:",
}


def add_exit_statuses(app: typer.Typer, path: str = "") -> None:
    """Complete the help of every command with its exit statuses, before its examples."""
    for command in app.registered_commands:
        name = f"{path} {command.name or getattr(command.callback, '__name__', '')}".strip()
        lines = [f"{status}  {meaning}" for status, meaning in MEANINGS.get(name, {}).items()]
        text = inspect.getdoc(command.callback) or ""
        command.help = _before_examples(text, "\n".join([_HEADINGS.get(name, "Exit status:"), *lines]))
    for group in app.registered_groups:
        name = f"{path} {group.name}".strip()
        inner = group.typer_instance
        if inner is None:
            continue
        add_exit_statuses(inner, name)
        of_commands = [each for key, of in MEANINGS.items() if key.startswith(f"{name} ") for each in of]
        *most, last = sorted({int(status) for each in of_commands for status in each.split(", ")})
        sentence = f"Exit status: {', '.join(map(str, most))} or {last}, as the help of each command lists."
        callback = inner.registered_callback
        group.help = _before_examples(inspect.getdoc(callback.callback if callback else None) or "", sentence)


def _before_examples(text: str, block: str) -> str:
    """The help with a block in front of its examples."""
    head, mark, examples = text.partition("\nExample")
    return f"{head.rstrip()}\n\n{block}\n{mark}{examples}" if mark else f"{text}\n\n{block}"
