"""Choosing the cases of a project, by a process of the subject's own interpreter: its workloads import what is measured.

Run as `python -P -m` with this name it reads one order from its standard input and answers with one line.
"""

import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pullback_runners.errors import LoadError, UsageError, VariantError
from pullback_runners.measurement.answer_forms import CHOICE, is_text, wrong_entry
from pullback_runners.measurement.answers import MOST_BYTES, NoAnswerError, answer_of
from pullback_runners.measurement.subject import Subject
from pullback_runners.measurement.worker import import_subject, take_standard_output
from pullback_runners.measurement.worker_process import interpreter, python_environment, start_module
from pullback_runners.tail import tail_of
from pullback_runners.variants import TIERS, known_variants
from pullback_runners.workloads import UNFUSED, AvailableVariants, Case, Choice, choose_cases
from pullback_runners.workloads.error_location import place_in

_TIMEOUT_S = 300


@dataclass(frozen=True)
class CaseSelection:
    """The cases and variants of a subject that will be measured."""

    cases: list[Case]
    files: list[Path]
    refused: list[str]
    """A sentence for everything asked for that cannot be had."""
    offers: Mapping[str, AvailableVariants]
    """The ways to measure each workload, by its name."""
    known: Sequence[str]
    """Every variant that may be named."""
    imports: Sequence[str]
    """Modules that came from the subject's folders."""
    modules: Sequence[str] = ()
    """Installed modules that the workloads import, in the order in which they were."""
    of_engine: bool = False
    """True if an engine is measured."""

    def remarks(self, subject: Subject | None) -> list[str]:
        """A sentence if the workloads run nothing of the commit that is measured."""
        if subject is None or subject.checkout is None or self.of_engine or self.imports:
            return []
        folders = ", ".join(path.name for path in subject.paths)
        parts = (
            f"the workloads import nothing from the commit's {folders}/, so that each commit would be the same; "
            f"correct [build] path, or name the modules in [build] import{subject.hint}"
        )
        return [parts]

    def variants(self, workload: str) -> list[str]:
        """The variants that commits are compared by if none are named: the tiers, where there is a NumPy form, and declared ones.

        Of a project's own NumPy function two tiers are enough: the tape, which runs its Python, and `native`, which runs the
        program made of it. The two between them change as these do, and each costs as much time.
        """
        offer = self.offers[workload]
        tiers = (UNFUSED, TIERS[-1]) if offer.is_foreign and not self.of_engine else TIERS
        return [*(tiers if offer.has_numpy else ()), *(offer.variants if offer.is_foreign else ())]


def choose_for(
    subject: Subject, suite: str, patterns: Sequence[str] = (), files: Sequence[Path] = (), device: str = "cpu"
) -> CaseSelection:
    """Choose the cases that a subject has; UsageError says why there are none.

    An engine is measured by workloads that are installed beside it, which an old one may not be able to import.
    """
    if subject.has_engine:
        choice = choose_cases(suite, patterns, files, device)
        return CaseSelection(
            choice.cases, choice.files, choice.refused, choice.offers, known_variants(), subject.imports, of_engine=True
        )
    order = {
        "subject": subject.document(),
        "checkout": None if subject.checkout is None else str(subject.checkout),
        "suite": suite,
        "patterns": list(patterns),
        "files": [str(path) for path in files],
        "device": device,
    }
    status, answered, complained = _asked(subject, order)
    if not answered:
        lines = complained.strip().splitlines()[-1:] or [f"exit status {status}"]
        python = interpreter(subject)[0]
        remedy = "" if python == sys.executable else "; install it there, or list it in [build] requirements"
        raise LoadError(f"{python} cannot load workloads: {lines[0]}{remedy}", complained)
    try:
        answer = answer_of(answered)
        _refuse_another_form(answer)
    except NoAnswerError as error:
        raise UsageError(f"the workload files wrote {error} as the answer of what loads them") from error
    if "raised" in answer:
        raise LoadError(f"{answer['failed']}{subject.hint}", answer["raised"])
    if "failed" in answer:
        raise UsageError(f"{answer['failed']}{subject.hint}")
    return CaseSelection(
        cases=[Case.of_document(each) for each in answer["cases"]],
        files=[Path(each) for each in answer["files"]],
        offers={name: _offer(each) for name, each in answer["offers"].items()},
        **{name: answer[name] for name in ("refused", "known", "imports", "modules")},
    )


def _refuse_another_form(answer: Mapping[str, Any]) -> None:
    """Raise NoAnswerError with the entry that is missing, or of another form."""
    is_failure = "failed" in answer or "raised" in answer
    wrong = wrong_entry(
        dict(answer), **(dict.fromkeys(("failed", *({"raised"} & answer.keys())), is_text) if is_failure else CHOICE)
    )
    if wrong is None and not is_failure:
        unknown = [each["workload"] for each in answer["cases"] if each["workload"] not in answer["offers"]]
        wrong = "offers" if unknown else None
    if wrong is not None:
        raise NoAnswerError(f"a JSON object whose {wrong!r} is missing, incomplete or of another form")


def _offer(document: Mapping[str, Any]) -> AvailableVariants:
    each = {name: document[name] for name in ("sentence", "is_foreign", "has_numpy", "baseline", "digests")}
    return AvailableVariants(**each, variants=tuple(document["variants"]))


def _asked(subject: Subject, order: Mapping[str, Any]) -> tuple[int, bytes, str]:
    """The exit status of a process that was given an order, the first line of its answer and what it wrote beside.

    Files and no pipes: what a workload starts in the background keeps these open as long as it runs. It ends with this.
    """
    with tempfile.TemporaryFile() as ordered, tempfile.TemporaryFile() as answers, tempfile.TemporaryFile() as errors:
        ordered.write(json.dumps(order).encode())
        ordered.seek(0)
        process = start_module(
            subject, __name__, python_environment(subject), stdin=ordered, stdout=answers, stderr=errors
        )
        try:
            status = process.wait(_TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            raise UsageError(f"the workload files were not loaded in {_TIMEOUT_S} s; they import too much") from error
        finally:
            process.kill()
            process.wait()
        answers.seek(0)
        return status, answers.readline(MOST_BYTES + 1), tail_of(errors).decode(errors="replace")


def main() -> None:
    """Answer one order."""
    answer = take_standard_output()
    order = json.load(sys.stdin)
    top = order["subject"]["top"]
    try:
        import_subject(order["subject"])
        files = [Path(path) for path in order["files"]]
        choice = choose_cases(order["suite"], order["patterns"], files, order["device"], top)
    except (UsageError, VariantError) as error:
        raised = error.__cause__
        answer({"failed": str(error), **({"raised": _traceback(raised)} if raised is not None else {})})
        return
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a commit raises where it is imported
        named = order["subject"]["imports"]
        text = error.msg if isinstance(error, SyntaxError) else str(error)
        message = text if isinstance(error, ImportError) else f"{type(error).__name__}{f': {text}' if text else ''}"
        where = "" if getattr(error, "name", None) in named else f", on importing {', '.join(named)}"
        failed = f"{message}{place_in((), error, top=top)}{where}, which [build] import names"
        answer({"failed": failed, "raised": _traceback(error)})
        return
    own = [*order["subject"]["paths"], *(str(path.parent) for path in choice.files)]
    if order["checkout"] is not None and (strayed := _strayed(order["checkout"], own)) is not None:
        answer({"failed": strayed})
        return
    answer(
        {
            "cases": [case.document() for case in choice.cases],
            "files": [str(path) for path in choice.files],
            "refused": choice.refused,
            "offers": {name: asdict(offer) for name, offer in choice.offers.items()},
            "known": _known(choice),
            "imports": order["subject"]["imports"] or _loaded_from(order["subject"]["paths"]),
            "modules": _installed(),
        }
    )


def _traceback(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def _known(choice: Choice) -> list[str]:
    """The variants that may be named: those of Pullback's workloads as well only where one of these is chosen."""
    return known_variants(of_ours=not all(choice.offers[case.workload].is_foreign for case in choice.cases))


def _strayed(checkout: str, own: Sequence[str]) -> str | None:
    """A sentence on a module that is not the commit's where one is measured.

    It came from the files checked out, as an editable install has it, or from where pyximport keeps one build of a name for all.
    """
    elsewhere = {Path(os.path.realpath(folder)) for folder in (*own, sys.prefix, sys.base_prefix)}
    installed = {"site-packages", "dist-packages"}  # of a user, whose home may be a clone
    ours = {"__main__", "pullback", "pullback_runners"}
    top = Path(os.path.realpath(checkout))
    for name, module in sorted(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or name.partition(".")[0] in ours:
            continue
        place = Path(os.path.realpath(file))
        is_told = Path(file).is_absolute()  # PyTorch has modules of which it tells `_ops.py`
        if not is_told or not elsewhere.isdisjoint(place.parents):
            continue
        if ".pyxbld" in place.parts:
            return (
                f"{name} came from {place}, where pyximport keeps one build for all commits; build it in [build] commands "
                "(cythonize -i), or call pyximport.install with a build_dir beside its source"
            )
        if top in place.parents and installed.isdisjoint(place.parts):
            return (
                f"{name} came from {place}, the files that are checked out, and not from the commit; "
                "name its folder in [build] path, or uninstall what puts it in front"
            )
    return None


def _installed() -> list[str]:
    """Modules of installed packages that have been imported, and the engine."""
    tops = set(_loaded_from([sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]))
    return ["pullback", *(name for name in sys.modules if name.partition(".")[0] in tops)]


def _loaded_from(folders: Sequence[str]) -> list[str]:
    """Packages and modules at the top of these folders that have been imported."""
    tops = {os.path.realpath(folder) for folder in folders}
    results = {
        name
        for name, module in sys.modules.items()
        if "." not in name and not name.startswith("_") and _folder_of(module) in tops
    }
    return sorted(results - {"pullback_runners"})


def _folder_of(module: Any) -> str | None:
    file = getattr(module, "__file__", None)
    if not file:  # of a namespace package, which any empty folder is
        has_modules = any(each.startswith(f"{getattr(module, '__name__', None)}.") for each in sys.modules)
        folders = list(getattr(module, "__path__", None) or ()) if has_modules else []
        return str(Path(os.path.realpath(folders[0])).parent) if folders else None
    place = Path(os.path.realpath(file))
    return str(place.parent.parent if place.stem == "__init__" else place.parent)


if __name__ == "__main__":
    main()
    os._exit(0)  # a thread that a workload has started may run for ever
