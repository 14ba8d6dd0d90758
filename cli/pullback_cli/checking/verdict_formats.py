"""A verdict in all formats: for a terminal, Markdown, a check run of GitHub, JUnit, JSON. Pure: values in, text out.

Names, messages and titles are strangers' text. It is of one line here, without control characters, and in Markdown it is code, so that
it mentions nobody, links nowhere and ends no cell.
"""

import json
import math
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit
from xml.etree import ElementTree as ET

from pullback_cli.checking.verdict import Verdict, has_changes
from pullback_dashboards.wording.markdown import code, neutral
from pullback_runners.report.words import bytes_in_words, duration_in_words
from pullback_service.client.models import CheckAnswer, CheckFinding
from pullback_service.visible_text import visible

NAME = "pullback"
MOST_ROWS = 50
MOST_CASES = 8
LONGEST_REASON = 300
LONGEST_CHECK_RUN_TEXT = 65_000  # GitHub takes 65,535 characters
EXTERNAL = "external"

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]+")
_WORSE = ("wrong-gradient", "regression", "missing", "likely", "ambiguous")
_LARGE = 1.5  # from here on a factor reads better than percent


@dataclass(frozen=True, slots=True)
class Row:
    """A finding as a reader sees it."""

    finding: str
    case: str
    variant: str
    metric: str
    change: str
    evidence: str
    machine: str


STYLES = {
    "wrong gradient": "bold red", "regression": "red", "missing": "red", "likely": "red dim", "ambiguous": "yellow", "budget": "red",
    "better": "green", "likely better": "green dim",
}  # fmt: skip
HEADINGS = ("finding", "case", "variant", "metric", "change", "evidence", "machine")


def rows_of(findings: Iterable[CheckFinding]) -> list[Row]:
    """The table of what changed."""
    return [
        Row(
            finding=each.kind.replace("-", " "),
            case=line(each.case),
            variant=line(each.variant or "all"),
            metric=line(each.metric or ""),
            change=_change(each),
            evidence=_evidence(each),
            machine=line(each.machine),
        )
        for each in findings
    ]


def _change(finding: CheckFinding) -> str:
    if finding.metric is None:
        return line(finding.reason or "")[:LONGEST_REASON]
    if finding.evidence == "exact" and finding.base is not None and finding.head is not None:
        factor = "" if finding.log_ratio is None else f" ({_ratio(finding.log_ratio)})"
        before, after = (_quantity(value, finding.unit) for value in (finding.base, finding.head))
        if before == after:  # they differ by less than three digits show, and so does their factor
            return " to ".join(_number(value, finding.unit) for value in (finding.base, finding.head))
        return f"{before} to {after}{factor}"
    if finding.log_ratio is None:
        return line(finding.reason or "")[:LONGEST_REASON]
    is_large = abs(finding.log_ratio) >= math.log(_LARGE)
    ends = [] if finding.low is None or finding.high is None else [finding.low, finding.high]
    interval = " to ".join(_ratio(each, is_large=is_large) for each in ends)
    return f"{_ratio(finding.log_ratio)}{f' ({interval})' if interval else ''}"


def _ratio(log_ratio: float, *, is_large: bool | None = None) -> str:
    """A change: "+5.1 %", from half as much again on "1.7×"; the ends of an interval are written as their middle is."""
    if abs(log_ratio) >= math.log(_LARGE) if is_large is None else is_large:
        factor = math.exp(log_ratio)
        return f"{factor:,.0f}×" if factor >= 100 else f"{factor:.3g}×"
    percent = 100 * math.expm1(log_ratio)
    return f"{percent:+.1f} %".replace("-", "−")


def _quantity(value: float, unit: str | None) -> str:
    if unit == "s" and value > 0:
        return duration_in_words(value)
    if unit == "B" and value == int(value):
        return bytes_in_words(int(value))
    return _number(value, unit)


def _number(value: float, unit: str | None) -> str:
    number = f"{value:,.0f}" if value == int(value) else f"{value:.4g}"
    return number if unit in {None, "1", "count"} else f"{number} {line(unit)}"


def _evidence(finding: CheckFinding) -> str:
    words = {
        "exact": "counted",
        "paired": "in turns",
        "ratios": "ratios at different times",
        "values": "values at different times",
    }
    text = words.get(finding.evidence or "", "")
    text += f", {finding.n} groups" if finding.evidence == "paired" and finding.n else ""
    others = [f"{line(each.machine)}: {each.outcome.replace('_', ' ')}" for each in finding.elsewhere]
    doubt = line(finding.reason)[:LONGEST_REASON] if finding.kind == "ambiguous" and finding.reason else ""
    return "; ".join(part for part in (text, doubt, *others) if part)


def reproduce(answer: CheckAnswer) -> str | None:
    """The command that measures what is worse here, in turns, on the device of the gravest; None where that is nothing, or only another tool could."""
    worse = [each for each in answer.findings if each.kind in _WORSE and each.variant_kind != EXTERNAL]
    if answer.base is None or not worse:
        return None
    device = worse[0].device or "cpu"
    worse = [each for each in worse if (each.device or "cpu") == device]
    cases = list(dict.fromkeys(each.case for each in worse))
    variants = list(dict.fromkeys(each.variant for each in worse))
    options = [part for case in cases[:MOST_CASES] for part in ("--case", line(case))]
    options += [part for each in variants for part in ("--variant", line(each or ""))] if None not in variants else []
    words = ["pullback", "compare", "--against", answer.base.sha[:10], "--candidate", answer.head.sha[:10]]
    words += [] if device == "cpu" else ["--device", line(device)]
    return shlex.join([*words, "--suite", answer.suite.partition(":")[0], *options])


def page_of(server: str, answer: CheckAnswer) -> str | None:
    """The address of the page with both commits, where others than this machine can see it."""
    if answer.base is None or urlsplit(server).hostname in {"127.0.0.1", "localhost", "::1"}:
        return None
    both = urlencode({"base": answer.base.sha, "head": answer.head.sha})
    return f"{server.rstrip('/')}/projects/{quote(answer.project, safe='')}/compare?{both}"


def marker_of(project: str) -> str:
    """The beginning of a comment of ours: readers do not see it, and the next check finds the comment by it."""
    return f"<!-- pullback-check {quote(project, safe='')} -->"


def markdown_of(answer: CheckAnswer, verdict: Verdict, server: str) -> str:
    """The answer as a comment."""
    lines = [marker_of(answer.project), f"**Pullback: {neutral(line(verdict.sentence))}**", ""]
    rows = rows_of(answer.findings)
    if rows:
        lines += [f"| {' | '.join(HEADINGS)} |", f"|{'---|' * len(HEADINGS)}"]
        lines += [f"| {' | '.join(_cells(row))} |" for row in rows[:MOST_ROWS]]
        lines += [""]
    if len(rows) > MOST_ROWS:
        lines += [f"{len(rows) - MOST_ROWS} more findings are not shown.", ""]
    lines += [f"- {neutral(line(remark))}" for remark in verdict.remarks]
    lines += [""] if verdict.remarks else []
    command = reproduce(answer)
    if command is not None:
        lines += ["The same here:", "", "```sh", command, "```", ""]
    page = page_of(server, answer)
    if page is not None:
        lines += [f"[Both commits, series by series](<{page}>)", ""]
    return "\n".join(lines)


def _cells(row: Row) -> Sequence[str]:
    """A row in Markdown: names are code, and so is the message of a failure."""
    names = {name: code(getattr(row, name), in_cell=True) for name in ("case", "variant", "metric", "machine")}
    change = neutral(row.change) if row.metric else code(row.change, in_cell=True)
    metric = names["metric"] if row.metric else ""
    return row.finding, names["case"], names["variant"], metric, change, neutral(row.evidence), names["machine"]


def check_run_of(answer: CheckAnswer, verdict: Verdict, server: str) -> dict[str, Any]:
    """The body of `POST /repos/{owner}/{repo}/check-runs`: https://docs.github.com/rest/checks/runs."""
    page = page_of(server, answer)
    return {
        "name": NAME,
        "head_sha": answer.head.sha,
        "status": "completed",
        "conclusion": verdict.conclusion,
        **({} if page is None else {"details_url": page}),
        "output": {
            "title": line(verdict.sentence)[:255],
            "summary": neutral(line(verdict.sentence)),
            "text": markdown_of(answer, verdict, server)[:LONGEST_CHECK_RUN_TEXT],
        },
    }


def json_of(answer: CheckAnswer, verdict: Verdict, fail_on: Sequence[str]) -> dict[str, Any]:
    """The answer for programs; docs/gate.md lists its members."""
    return {
        "status": verdict.status,
        "conclusion": verdict.conclusion,
        "sentence": verdict.sentence,
        "changed": has_changes(answer),
        "failed_on": list(verdict.failed_on),
        "fail_on": list(fail_on),
        "remarks": list(verdict.remarks),
        "reproduce": reproduce(answer),
        "check": answer.model_dump(mode="json"),
    }


def junit_of(answer: CheckAnswer, verdict: Verdict) -> str:
    """One test for the answer and one for each finding: https://github.com/testmoapp/junitxml."""
    failures = [each for each in answer.findings if each.kind in verdict.failed_on]
    no_data = verdict.conclusion == "neutral"
    total = {"tests": str(1 + len(answer.findings)), "failures": str(len(failures)), "errors": str(int(no_data))}
    suites = ET.Element("testsuites", {"name": "pullback check", **total})
    suite = ET.SubElement(suites, "testsuite", {"name": line(answer.project), "skipped": "0", **total})
    first = ET.SubElement(suite, "testcase", {"classname": "pullback", "name": "check"})
    text = "\n".join(map(line, (verdict.sentence, *verdict.remarks)))
    if no_data:
        ET.SubElement(first, "error", {"type": "not-enough-data", "message": line(verdict.sentence)}).text = text
    else:
        ET.SubElement(first, "system-out").text = text
    for each, row in zip(answer.findings, rows_of(answer.findings), strict=True):
        name = " ".join(part for part in (row.case, row.variant, row.metric, "on", row.machine) if part)
        test = ET.SubElement(suite, "testcase", {"classname": line(each.workload), "name": name})
        parts = "; ".join(part for part in (row.change, row.evidence) if part)
        if each in failures:
            ET.SubElement(test, "failure", {"type": each.kind, "message": f"{row.finding}: {row.change}"}).text = parts
        else:
            ET.SubElement(test, "system-out").text = f"{row.finding}: {parts}"
    ET.indent(suites)
    return ET.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def as_text(document: dict[str, Any]) -> str:
    """JSON as a file has it."""
    return json.dumps(document, indent=2) + "\n"


def line(text: str) -> str:
    """Text of one line, without control characters, which terminals obey and XML does not allow, and nothing unseen in it."""
    return visible(" ".join(_CONTROL.sub(" ", text).split()))
