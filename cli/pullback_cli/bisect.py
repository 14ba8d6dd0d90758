"""`pullback bisect`: search this repository for the commit that made a gradient worse."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pullback_cli import completions
from pullback_cli.options import AsJson, Cases, Clone, ComparedVariants, Quiet
from pullback_cli.run_interrupts import interrupts, print_refusals, progress
from pullback_cli.usage_errors import RefusalError, needs, note
from pullback_service.ratio import Ratio

if TYPE_CHECKING:
    from pullback_cli.run_interrupts import Interrupts
    from pullback_runners.progress import Progress
    from pullback_runners.projects.configuration import ProjectFile
    from pullback_service.incidents.bisection import Answer, Culprit, KnownAnswer, Probe

NOTHING = 1
SKIPPED = 125
SHORT_HASH = 10


@needs("runner")
def bisect(
    good: Annotated[str, typer.Option("--good", metavar="REV", help="A commit without the regression.")],
    bad: Annotated[str, typer.Option("--bad", metavar="REV", help="A later commit that is worse.")] = "HEAD",
    suite: Annotated[
        str,
        typer.Option(
            help="standard (finds 1-2 %), quick or full; quick:poly9* is a part.", autocompletion=completions.suites
        ),
    ] = "standard",
    case: Cases = None,
    variant: ComparedVariants = None,
    repository: Clone = None,
    workloads: Annotated[
        list[Path] | None,
        typer.Option(help="A Python file with workloads; default: those of pullback.toml, in the bad commit."),
    ] = None,
    *,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Search for the commit that made a gradient slower, larger or wrong: commits are built and measured in turns with the good one.

    Both ends are compared first; the largest change between them is followed, on the commits in between that changed measured files. A commit that cannot be built is skipped; an ambiguous one is measured twice as long, then its neighbour. At the end the commit is compared with its parent.

    Examples:
    pullback bisect --good v1.2 --case 'lstm*' --variant native

    pullback bisect --good 3f2a91c --bad main --suite quick --json | jq -r .culprit.sha
    """
    from pullback_runners.revisions import require_project

    project = require_project((repository or Path.cwd()).resolve())
    commits = _commits(project, good, bad)
    with progress(quiet=quiet) as tell, interrupts() as stop:
        search = _Search(project, commits, suite, workloads, tell, stop, None if quiet or as_json else note)
        answer = search.run(case or (), variant or ())
    if as_json:
        typer.echo(json.dumps(answer))
    else:
        typer.echo(answer["sentence"])
        for each in answer["passed_over"]:
            typer.echo(f"passed over: {each['sha'][:SHORT_HASH]} {each['reason']}")
        if answer["reproduce"] is not None:
            typer.echo(f"the same again: {answer['reproduce']}")
    raise typer.Exit(answer["status"])


def _commits(project: "ProjectFile", good: str, bad: str) -> "Sequence[Mapping[str, Any]]":
    """The good end, and behind it the commits up to the bad one that changed what is measured."""
    from pullback_runners.git import git
    from pullback_runners.revisions import find_commit, find_commits

    first, last = (find_commit(project.top, revision) for revision in (good, bad))
    if git(project.top, "merge-base", "--is-ancestor", first["sha"], last["sha"]).returncode != 0:
        raise RefusalError(f"{good} is no ancestor of {bad}; give an older commit of the same branch")
    return [first, *find_commits(project, f"{first['sha']}..{last['sha']}")]


@dataclass(frozen=True)
class _Change:
    """The change that is followed: a metric of a case in a variant; counts by their values, and what fails by its failure."""

    case: str
    variant: str
    metric: str
    outcome: str
    ratio: Ratio
    values: tuple[float, float] | None

    @property
    def words(self) -> str:
        """The change in words."""
        what = f"{self.case} {self.variant}"
        if self.outcome == "failed":
            return f"{what} fails"
        if self.values is not None:
            return f"{what}: {self.metric} {self.values[0]:g}, then {self.values[1]:g}"
        assert self.ratio.bounded is not None  # noqa: S101 - measured
        factor, low, high = map(exp, self.ratio.bounded)
        return f"{what}: {self.metric} ×{factor:.3f} ({low:.3f} to {high:.3f}, {self.ratio.n} groups)"

    def as_json(self) -> dict[str, Any]:
        """The change as `--json` prints it."""
        named = {"case": self.case, "variant": self.variant, "metric": self.metric, "outcome": self.outcome}
        return {**named, **self.ratio._asdict(), "values": self.values}


class _InterruptedError(Exception):
    """Ctrl-C or SIGTERM came before a comparison was complete."""


@dataclass
class _Search:
    """A search on this machine."""

    project: "ProjectFile"
    commits: Sequence[Mapping[str, Any]]
    suite: str
    workloads: Sequence[Path] | None
    tell: "Callable[[Progress], None]"
    stop: "Interrupts"
    say: Callable[[str], None] | None
    answers: "dict[tuple[int, int], KnownAnswer]" = field(default_factory=dict)
    measured: dict[tuple[int, int], _Change] = field(default_factory=dict)
    passed_over: dict[int, str] = field(default_factory=dict)
    steps: list[dict[str, Any]] = field(default_factory=list)

    def run(self, cases: Sequence[str], variants: Sequence[str]) -> dict[str, Any]:
        """Compare the ends, then search; the answer as `--json` prints it."""
        change = None
        try:
            change = self._between_ends(cases, variants)
            if change is None:
                return self._answer(None, None, NOTHING, "Nothing to find: the bad end is no worse than the good one.")
            return self._found(change, self._search(change))
        except _InterruptedError:
            sentence = "Interrupted; the search can be begun again."
            if change is None:
                sentence = "Interrupted before both ends were compared."
            return self._answer(change, None, self.stop.status, sentence)

    def _between_ends(self, cases: Sequence[str], variants: Sequence[str]) -> _Change | None:
        from pullback_runners.errors import BuildError

        last = len(self.commits) - 1
        try:
            report = self._compare(0, last, cases, variants, 1)
        except BuildError as error:
            raise RefusalError(str(error)) from error
        change = _largest(report)
        if change is not None and self.say is not None:
            self.say(f"{change.words}; {last} commits changed measured files")
        return change

    def _search(self, change: _Change) -> "Culprit":
        from pullback_service.incidents.bisection import Culprit, KnownAnswer, next_step

        while not isinstance(step := next_step(len(self.commits) - 1, self.answers), Culprit):
            answer = self._ask(step, change)
            self.answers[step.reference, step.place] = KnownAnswer(answer, step.effort)
            self._note(step.reference, step.place, step.effort, answer)
        return step

    def _ask(self, step: "Probe", change: _Change) -> "Answer":
        from pullback_runners.errors import BuildError, LoadError

        try:
            report = self._compare(step.reference, step.place, [change.case], [change.variant], step.effort)
        except (BuildError, LoadError) as error:
            self.passed_over[step.place] = str(error).splitlines()[0]
            return "unusable"
        return self._judge(step.reference, step.place, change, report)

    def _compare(
        self, reference: int, place: int, cases: Sequence[str], variants: Sequence[str], effort: int
    ) -> Mapping[str, Any]:
        try:
            report = self._build_and_measure(reference, place, cases, variants, effort)
        except Exception as error:
            if self.stop():
                raise _InterruptedError from error
            raise
        if self.stop():
            raise _InterruptedError
        return report

    def _build_and_measure(
        self, reference: int, place: int, cases: Sequence[str], variants: Sequence[str], effort: int
    ) -> Mapping[str, Any]:
        from pullback_runners.comparison_runs import compare_commits
        from pullback_runners.projects.subjects import build_subject
        from pullback_runners.suites import narrowed_suite

        name, globs = narrowed_suite(self.suite)
        built = []
        for each in (reference, place, -1):
            built.append(build_subject(self.project, self.project.top, self.commits[each], self.tell))
            if self.stop():
                raise _InterruptedError
        older, newer, last = built
        print_refusals([warning for each in (older, newer) if (warning := each.warning())])
        return compare_commits(
            older,
            newer,
            name,
            cases or globs,
            variants=variants,
            usual=self.project.measure.variants,
            project=self.project.name,
            workload_files=self.workloads or self.project.workload_files(last.files, self.project.top),
            effort=effort,
            on_progress=self.tell,
            stop=self.stop,
        )

    def _judge(self, reference: int, place: int, change: _Change, report: Mapping[str, Any]) -> "Answer":
        if report["harness"]["equal_code"]:
            return "good"
        got = next((each for each in _changes(report) if _key(each) == _key(change)), None)
        if change.outcome == "failed":
            if got is not None and got.outcome == "failed":
                self.measured[reference, place] = got
                return "bad"
            return "good" if report["comparisons"] else "unusable"
        if got is None or got.outcome == "failed":
            self.passed_over[place] = "it gives no measurement"
            return "unusable"
        self.measured[reference, place] = got
        return _side(change, got, is_parent=reference != 0)

    def _note(self, reference: int, place: int, effort: int, said: str) -> None:
        commit, against = self.commits[place], self.commits[reference]
        got = self.measured.get((reference, place))
        step = {"sha": commit["sha"], "against": against["sha"], "effort": effort, "answer": said}
        self.steps.append({**step, **({} if got is None else {"change": got.as_json()})})
        if self.say is not None:
            why = self.passed_over.get(place, "") if said == "unusable" else "" if got is None else got.words
            self.say(f"{commit['sha'][:SHORT_HASH]} {said}{f', {why}' if why else ''}")

    def _found(self, change: _Change, found: "Culprit") -> dict[str, Any]:
        from pullback_service.incidents.bisection import EXPLAINED

        suspects = self.commits[found.first : found.last + 1]
        share = self._share(change, found)
        culprit = suspects[-1]
        named = f"{culprit['sha'][:SHORT_HASH]} {json.dumps(culprit['title'], ensure_ascii=False)}"
        got = self.measured.get((found.first - 1, found.last), change if found.last == len(self.commits) - 1 else None)
        if len(suspects) > 1:
            sentence = f"It is {named}, or one of the {len(suspects) - 1} before it, which give no answer."
            return self._answer(change, found, SKIPPED, sentence, share)
        if not found.is_borne_out:
            sentence = (
                f"The change begins at {named}, but a comparison of that commit with its parent does not show it."
            )
            return self._answer(change, found, NOTHING, sentence, share)
        sentence = f"It is {named}{'' if got is None else f': {got.words}'}."
        if share is not None and share < EXPLAINED:
            sentence += f" That explains {share:.0%} of the change: other commits between contribute too."
        return self._answer(change, found, 0, sentence, share)

    def _share(self, change: _Change, culprit: "Culprit") -> float | None:
        from pullback_service.incidents.bisection import share_of

        got = self.measured.get((culprit.first - 1, culprit.last))
        if got is None:
            return 1.0 if culprit.first == 1 and culprit.last == len(self.commits) - 1 else None
        if change.values is not None and got.values is not None:
            return (got.values[1] - got.values[0]) / (change.values[1] - change.values[0])
        if got.ratio.log_ratio is None or change.ratio.log_ratio is None:
            return None
        return share_of(got.ratio.log_ratio, change.ratio.log_ratio)

    def _answer(
        self,
        change: _Change | None,
        culprit: "Culprit | None",
        status: int,
        sentence: str,
        share: float | None = None,
    ) -> dict[str, Any]:
        suspects = [] if culprit is None else list(self.commits[culprit.first : culprit.last + 1])
        parent = None if culprit is None else self.commits[culprit.first - 1]["sha"]
        return {
            "status": status,
            "sentence": sentence,
            "good": self.commits[0]["sha"],
            "bad": self.commits[-1]["sha"],
            "change": None if change is None else change.as_json(),
            "culprit": _named(suspects[0]) if status == 0 else None,
            "suspects": [_named(each) for each in suspects],
            "share": share,
            "steps": self.steps,
            "passed_over": [
                {**_named(self.commits[place]), "reason": reason} for place, reason in sorted(self.passed_over.items())
            ],
            "reproduce": None
            if change is None or parent is None
            else f"pullback compare --against {parent[:SHORT_HASH]} --candidate {suspects[-1]['sha'][:SHORT_HASH]} "
            f"--suite {self.suite.partition(':')[0]} --case '{change.case}' --variant {change.variant}",
        }


def _side(change: _Change, got: _Change, *, is_parent: bool) -> "Answer":
    """The side of a change on which a measurement against the good end lies; against the parent, whether it shows the change."""
    from pullback_service.incidents.bisection import shown_by, side_of

    if change.values is not None and got.values is not None:
        before, after = change.values
        if is_parent:
            return "bad" if (got.values[1] - got.values[0]) * (after - before) > 0 else "good"
        return "bad" if abs(got.values[1] - after) < abs(got.values[1] - before) else "good"
    log_ratio, low, high, _ = got.ratio
    if log_ratio is None or change.ratio.log_ratio is None:
        return "unusable"
    return (shown_by if is_parent else side_of)(log_ratio, low, high, change.ratio.log_ratio)


def _named(commit: Mapping[str, Any]) -> dict[str, Any]:
    return {name: commit[name] for name in ("sha", "title", "author")}


def _key(change: _Change) -> tuple[str, ...]:
    return change.case, change.variant, change.metric


def _changes(report: Mapping[str, Any]) -> list[_Change]:
    from pullback_runners.workloads import Case

    return [
        _Change(
            case=Case.of_document(row["case"]).name,
            variant=row["variant"],
            metric=row["metric"],
            outcome=row["outcome"],
            ratio=Ratio(row["log_ratio"], row["low"], row["high"], row["n"]),
            values=tuple(row["values"]) if "values" in row else None,
        )
        for row in report["comparisons"]
        if row["outcome"] != "failed" or row["error"]["message"].startswith("candidate:")
    ]


def _largest(report: Mapping[str, Any]) -> _Change | None:
    """The change to follow: what fails at the bad end, else a count, else the largest that was measured; None where nothing is worse."""
    from pullback_runners.comparison_runs import DECIDING_METRICS

    worse = [
        change
        for change in _changes(report)
        if change.outcome == "failed" or (change.outcome in {"slower", "more"} and change.metric in DECIDING_METRICS)
    ]

    def rank(change: _Change) -> tuple[object, ...]:
        return change.outcome != "failed", change.values is None, -abs(change.ratio.log_ratio or 0.0), *_key(change)

    return min(worse, key=rank, default=None)
