"""GradBench's logs (https://github.com/gradbench/gradbench, CONTRIBUTING.md "Protocol"): JSON lines, raw or trimmed.

A message of the eval is followed by the response of the tool; `analysis` messages judge an earlier response. Lines are
read one at a time and dropped: a response can hold 200,000 timings on one line of 8.5 MB, an input even more.

A message counts with the mean of its "evaluate" timings, first run included, because that is GradBench's own number:
logs and published summaries continue one series. The tool is the variant. A response judged invalid is a failure: a
wrong gradient is no fast gradient. The log does not say how the run ended; the outcome is derived from what is in it,
and a last message without a response is a crash or a timeout.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import fsum
from pathlib import PurePosixPath
from typing import Any, Literal

import orjson

from pullback_service.importers import imported_names
from pullback_service.importers.contents import Source, json_lines
from pullback_service.importers.imported_names import Scalar
from pullback_service.importers.importer import Importer
from pullback_service.importers.json_paths import LocatedValue, refuse, text_at
from pullback_service.importers.limits import MOST_RESULTS, MOST_SAMPLES
from pullback_service.importers.results import (
    FailedResult,
    ImportedFile,
    Result,
    ResultCollector,
    UploadOptions,
    metrics_of,
)
from pullback_service.importers.units import Unit

Outcome = Literal["success", "invalid", "failure", "undefined", "unfinished"]

# Which functions of an eval are timed against each other (GradBench crates/gradbench/src/stats.rs, March 2026).
CLASSIC: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("ba", "gmm", "ht", "lstm"), ("objective", "jacobian")),
    "kmeans": ("cost", "dir"),
    **dict.fromkeys(("det", "llsq", "lse", "ode"), ("primal", "gradient")),
}
NESTED = ("particle", "saddle")

_NANOSECONDS = Unit(1e-9, "s")
_PAIRS = re.compile(r"[A-Za-z_]\w*=[^,=]+(,[A-Za-z_]\w*=[^,=]+)*\Z")


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One function at one input: a message, its response and the judgement of it."""

    path: str
    module: str
    function: str
    description: str | None
    runs: int = 0
    evaluate_ns: float = 0.0
    other_ns: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    failed: FailedResult | None = None

    @property
    def mean_ns(self) -> float | None:
        """Mean of the runs, as GradBench has it; None where the tool timed nothing."""
        return self.evaluate_ns / self.runs if self.runs else None


@dataclass(frozen=True, slots=True)
class Log:
    """One conversation between an eval and a tool."""

    path: str
    eval: str | None
    tool: str | None
    evaluations: Sequence[Evaluation]
    undefined: str | None
    outcome: Outcome
    duration_s: float | None


def read_log(lines: Iterable[LocatedValue]) -> Log:
    """Follow a conversation; whatever contradicts the protocol is refused with its line."""
    reader = _Reader()
    for line in lines:
        reader.take(line)
    return reader.finish()


def score(log: Log) -> float | None:
    """GradBench's score: higher is better. None for an unsuccessful log, or one of an eval without a rule."""
    if log.outcome != "success":
        return None
    if log.eval == "hello":
        return 1.0
    means = [each.mean_ns or 0.0 for each in log.evaluations if each.description is not None]
    if log.eval in CLASSIC:
        total = fsum(means)
        return 1e9 / total if total else None
    fastest = min((mean for mean in means if mean), default=None)
    return 1e9 / fastest if log.eval in NESTED and fastest else None


def recognises(source: Source) -> bool:
    """Lines of messages, or a folder of such files."""
    return source.is_lines() or (source.files is not None and any(name.endswith(".jsonl") for name in source.files))


def read(source: Source, options: UploadOptions) -> ImportedFile:
    """One result for every function at every input."""
    del options  # the format fixes units and directions
    gathering = ResultCollector()
    logs = [read_log(json_lines(source.body))] if source.files is None else _logs_of(source.files)
    for log in logs:
        names = " with ".join(part for part in (log.eval, log.tool) if part) or "a log without a start"
        worth = score(log)
        gathering.note(f"{names}: {log.outcome}" + (f", GradBench score {worth:.6g}" if worth is not None else ""))
        for result in _results(log, gathering):
            gathering.add(result)
    return ImportedFile(
        "GradBench",
        gathering.results,
        gathering.notes(),
        duration_s=fsum(log.duration_s for log in logs if log.duration_s is not None) or None,
    )


def case_of(module: str, function: str, description: str | None) -> dict[str, Scalar]:
    """Parameters of a case, from a log or from a published summary: `k=10,n=1000` is two, `2_5_1000` is one."""
    params: dict[str, Scalar] = {"function": imported_names.parameter(function)}
    if description is None:
        return params
    if _PAIRS.match(description):
        pairs = [pair.split("=", 1) for pair in description.split(",")]
        if len({key for key, _ in pairs} | {"function"}) == len(pairs) + 1:
            return params | {imported_names.name(key, module): imported_names.literal(value) for key, value in pairs}
    return params | {"size": imported_names.parameter(description)}


def _logs_of(files: Mapping[str, bytes]) -> list[Log]:
    logs = []
    for name, content in sorted(files.items()):
        if name.endswith(".jsonl"):
            log = read_log(json_lines(content, name))
            logs.append(replace(log, tool=log.tool or _tool_by_path(PurePosixPath(name))))
    return logs


def _tool_by_path(path: PurePosixPath) -> str:
    """`gmm/jax.jsonl` as `gradbench repo run -o` names it, or `run-gmm-jax/log.jsonl` as older nightlies did."""
    if path.stem != "log":
        return path.stem
    return path.parent.name.removeprefix("run-").partition("-")[2] or path.parent.name or "unknown"


def _results(log: Log, gathering: ResultCollector) -> Iterable[Result]:
    variant = imported_names.name(log.tool, log.path) if log.tool and log.tool.strip() else None
    seen: set[tuple[str, str, str | None]] = set()
    for each in log.evaluations:
        key = (each.module, each.function, each.description)
        if key in seen:
            refuse(each.path, f"evaluates {each.module} {each.function} at an input seen before")
        seen.add(key)
        workload = imported_names.name(each.module, each.path)
        params = case_of(each.module, each.function, each.description)
        mean = each.mean_ns
        metrics = {}
        if each.failed is None and mean is not None:
            metrics = metrics_of(
                time=gathering.single(mean, _NANOSECONDS, "smaller", method="mean of runs, as GradBench scores them")
            )
            for name, (count, total) in each.other_ns.items():
                other = gathering.single(total / count, _NANOSECONDS, "smaller", method="mean")
                if other is not None:
                    metrics[imported_names.name(f"{name}_time", each.path)] = other
        failed = each.failed
        if failed is None and not metrics:
            failed = FailedResult("no-value", "The tool timed no run of this function.")
        yield Result(each.path, workload, params, metrics, failed, variant)
    if log.undefined is not None:
        workload = imported_names.name(log.eval or "unknown", log.path)
        yield Result(
            log.path, workload, failed=FailedResult("undefined", imported_names.message(log.undefined)), variant=variant
        )


class _Reader:
    """The state between two lines: the message that waits for its response, and what was heard so far."""

    def __init__(self) -> None:
        self._path = "line 1: $"
        self._eval: str | None = None
        self._tool: str | None = None
        self._waiting: tuple[LocatedValue, int] | None = None
        self._by_id: dict[int, Evaluation] = {}
        self._undefined: str | None = None
        self._last_ns: float | None = None
        self._undescribed: dict[tuple[str, str], int] = {}

    def take(self, line: LocatedValue) -> None:
        """One line of the log: a message or a response."""
        elapsed = line.get("elapsed")
        if elapsed is not None and elapsed.get("nanoseconds") is not None:
            self._last_ns = elapsed.need("nanoseconds").number()
        message, response = line.get("message"), line.get("response")
        if message is not None:
            self._take_message(message)
        elif response is not None:
            self._take_response(response)
        else:
            line.refuse("is neither a message nor a response: send the log that `gradbench run -o` writes")

    def finish(self) -> Log:
        """The results of the conversation."""
        unfinished = self._waiting is not None
        if self._waiting is not None:
            message, number = self._waiting
            reason = "The tool did not answer: it crashed, or the run was interrupted."
            if text_at(message.get("kind")) == "evaluate":
                self._fail(number, FailedResult("no-answer", reason))
            elif text_at(message.get("kind")) == "define":
                self._undefined = reason
        kinds = {each.failed.kind for each in self._by_id.values() if each.failed is not None}
        outcome: Outcome = (
            "unfinished"
            if unfinished or self._eval is None
            else "undefined"
            if self._undefined is not None
            else "failure"
            if kinds - {"invalid"}
            else "invalid"
            if kinds
            else "success"
        )
        seconds = self._last_ns / 1e9 if self._last_ns is not None and 0 <= self._last_ns < 1e18 else None
        return Log(self._path, self._eval, self._tool, list(self._by_id.values()), self._undefined, outcome, seconds)

    def _take_message(self, message: LocatedValue) -> None:
        if self._waiting is not None:
            message.refuse("follows a message that has no response")
        kind = message.need("kind").text()
        number = _whole(message.need("id"))
        if kind == "start":
            self._eval, self._path = text_at(message.get("eval")), message.path
        elif kind == "evaluate":
            self._begin(message, number)
        elif kind == "analysis":
            self._judge(message)
        elif kind != "define":
            message.need("kind").refuse("must be start, define, evaluate or analysis")
        # An input can be megabytes: only what is read again is kept until the response.
        kept = {key: message.value[key] for key in ("kind", "id") if key in message.value}
        self._waiting = (LocatedValue(kept, message.path), number)

    def _begin(self, message: LocatedValue, number: int) -> None:
        if number in self._by_id:
            message.need("id").refuse("was used before")
        if len(self._by_id) >= MOST_RESULTS:
            message.refuse(f"is one evaluation too many: the limit is {MOST_RESULTS} (MOST_RESULTS)")
        module, function = message.need("module").text(), message.need("function").text()
        described = text_at(message.get("description"))
        if described is None:
            described = self._undescribed_input(message.value.get("input"), module, function)
        self._by_id[number] = Evaluation(message.path, module, function, described)

    def _undescribed_input(self, given: Any, module: str, function: str) -> str:
        """`hello` describes nothing: a number speaks for itself, anything else by its digest, a trimmed one by its turn."""
        turn = self._undescribed[module, function] = self._undescribed.get((module, function), 0) + 1
        if given is None:
            return f"turn={turn}"
        if isinstance(given, int | float) and not isinstance(given, bool):
            return f"input={given:g}"
        return f"input={hashlib.sha256(orjson.dumps(given)).hexdigest()[:12]}"

    def _judge(self, message: LocatedValue) -> None:
        of = message.need("of")
        judged = _whole(of)
        if judged not in self._by_id:
            of.refuse("is not the id of an earlier evaluation")
        if message.need("valid").value is not True:
            reason = text_at(message.get("error")) or "The eval judged the output wrong."
            self._fail(judged, FailedResult("invalid", imported_names.message(reason)))

    def _take_response(self, response: LocatedValue) -> None:
        if self._waiting is None:
            response.refuse("follows no message")
        message, number = self._waiting
        self._waiting = None
        kind = message.need("kind").text()
        if kind == "start":
            self._tool = text_at(response.get("tool"))
        elif kind == "define" and response.need("success").value is not True:
            self._undefined = text_at(response.get("error")) or "The tool does not define this module."
        elif kind == "evaluate":
            self._end(response, number)

    def _end(self, response: LocatedValue, number: int) -> None:
        # Logs before 2025 have no `success`: an output was success.
        success = response.get("success")
        if (success is not None and success.value is not True) or response.get("error") is not None:
            reason = text_at(response.get("error")) or "The tool reported a failure."
            self._fail(number, FailedResult("failure", imported_names.message(reason)))
            return
        timings = response.get("timings")
        if timings is None:
            return
        if timings.count() > MOST_SAMPLES:
            timings.refuse(f"has {timings.count()} timings; the limit is {MOST_SAMPLES} (MOST_SAMPLES)")
        sums: dict[str, tuple[int, float]] = {}
        for timing in timings.each():
            name = timing.need("name").text()
            nanoseconds = timing.need("nanoseconds").number()
            if not 0 <= nanoseconds < 1e18:
                timing.need("nanoseconds").refuse("must be a time of at least 0 and less than 30 years")
            count, total = sums.get(name, (0, 0.0))
            sums[name] = (count + 1, total + nanoseconds)
        runs, total = sums.pop("evaluate", (0, 0.0))
        self._by_id[number] = replace(self._by_id[number], runs=runs, evaluate_ns=total, other_ns=sums)

    def _fail(self, number: int, failed: FailedResult) -> None:
        self._by_id[number] = replace(self._by_id[number], failed=failed)


def _whole(at: LocatedValue) -> int:
    if isinstance(at.value, bool) or not isinstance(at.value, int):
        at.refuse("must be a whole number")
    return at.value


IMPORTER = Importer("gradbench", "GradBench", recognises, read)
