"""Pages: every one of the dashboard, as a browser asks for it; what it loads beside them is cached for ever.

Pages of reports show what was uploaded, of which the filled points have nothing: for them two reports as agents send
them are uploaded first, of all the cases, with every slice of every process.
"""

import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import numpy as np
import orjson
from benchmarks.service_load import shape
from benchmarks.service_load.calling import Connection
from benchmarks.service_load.processes import Service
from benchmarks.service_load.thresholds import Figure
from benchmarks.service_load.turns import Address, ask_in_turns
from benchmarks.service_load.uploading import report_of

SLICES = 100


@dataclass(frozen=True, slots=True)
class PageObjects:
    """The objects made for pages of one thing: a project with two commits, the report of the later one, and a job."""

    project: str
    sha: str
    report: str
    job: int


def ask_pages(service: Service, commits: int) -> Iterator[Figure]:
    """Every page, in turns, with ten million points behind it."""
    connection = service.connect()
    shown = make(connection)
    connection.close()
    yield from ask_in_turns(service, _addresses(shown, commits), most_ms=80, but={"case at a commit": 60}, times=30)


def _addresses(shown: PageObjects, commits: int) -> Mapping[str, Address]:
    load, own = f"/projects/{shape.PROJECT}", f"/projects/{shown.project}"

    def compared(chance: random.Random) -> str:
        base, head = chance.sample(range(commits), 2)
        return f"{load}/compare?base={shape.sha_of(base)}&head={shape.sha_of(head)}"

    def workload(chance: random.Random, ending: str = "") -> str:
        return f"{load}/workloads/{chance.choice(shape.load_cases()).workload}{ending}"

    def machine(chance: random.Random) -> str:
        return f"machine={chance.choice(shape.MACHINES)}"

    def metric(chance: random.Random) -> str:
        return f"metric={chance.choice(shape.METRICS).name}"

    def case(chance: random.Random) -> str:
        return quote(chance.choice(shape.load_cases()).label, safe="")

    return {
        "overview": lambda _: f"/?project={shape.PROJECT}",
        "overview, a machine and a metric": lambda chance: (
            f"/?project={shape.PROJECT}&{machine(chance)}&{metric(chance)}"
        ),
        "overview, changes": lambda chance: f"/?project={shape.PROJECT}&changed=1&sort=worst&{machine(chance)}",
        "overview, JSON": lambda _: f"/overview.json?project={shape.PROJECT}",
        "workload": workload,
        "workload, absolute on a machine": lambda chance: workload(chance, f"?y=absolute&{machine(chance)}"),
        "workload's chart": lambda chance: workload(chance, ".svg"),
        "workload's badge": lambda chance: workload(chance, ".badge.svg"),
        "case at a commit": lambda chance: f"{own}/commits/{shown.sha}/cases/{case(chance)}",
        "commit": lambda _: f"{own}/commits/{shown.sha}",
        "report": lambda _: f"/reports/{shown.report}",
        "compare, without a selection": lambda _: f"{load}/compare",
        "compare": compared,
        "compare, everything shown": lambda chance: f"{compared(chance)}&show=all",
        "compare on a machine": lambda chance: f"{compared(chance)}&{machine(chance)}&{metric(chance)}",
        "explore": lambda _: f"{load}/explore",
        "explore, twenty series drawn": lambda chance: (
            f"{load}/explore?workload={chance.choice(shape.WORKLOADS[:12])}&metric=time&param.n=32&last=400"
        ),
        "fleet and queue": lambda _: "/jobs",
        "job": lambda _: f"/jobs/{shown.job}",
        "feed": lambda _: f"{load}/feed.atom",
        "help": lambda _: "/help",
    }


def make(connection: Connection) -> PageObjects:
    """Upload two whole reports, whose pages show what is in them, and wish for a job."""
    run = time.time_ns()
    project = f"pages-{run}"
    reports = [_report(project, run, number) for number in (1, 2)]
    made = [_sent(connection, "/api/v1/reports", report) for report in reports]
    commit = reports[-1]["commit"]
    job = _sent(connection, "/api/v1/jobs?force=true", {"project": project, "commit": commit, "suite": "quick"})
    return PageObjects(project, commit["sha"], made[-1]["id"], job["id"])


def _sent(connection: Connection, path: str, content: Mapping[str, Any]) -> Any:
    answer = connection.send("POST", path, orjson.dumps(content))
    if answer.status != 201:
        raise RuntimeError(f"{path} was answered with {answer.status}: {answer.body[:500]!r}")
    return answer.json()


def _report(project: str, run: int, commit: int) -> dict[str, Any]:
    """A standard run of all cases as an agent sends it, about 6 MB."""
    random_values = np.random.default_rng([shape.SEED, commit])
    cases = [_case(case, random_values) for case in shape.load_cases()]
    return report_of(project, run, commit, 0, "agent", cases)


def _case(case: shape.LoadedCase, chance: np.random.Generator) -> dict[str, Any]:
    variants, paired = [], []
    for name, kind in shape.VARIANTS:
        slices = 1e-4 * np.exp(chance.normal(0, 0.02, (shape.PROCESSES, SLICES)))
        counts = {
            metric.name: {"unit": metric.unit, "value": 4096, "method": metric.method}
            for metric in shape.METRICS
            if metric.exact
        }
        measured = {
            "unit": "s",
            "clock": "cpu",
            "processes": np.median(slices, axis=1).tolist(),
            "slices": slices.tolist(),
        }
        variants.append(
            {"variant": name, "kind": kind, "program_hash": None, "plan": None, "metrics": {"time": measured, **counts}}
        )
        if name != shape.BASELINE:
            ratio = {"log_ratio": -0.5, "low": -0.51, "high": -0.49, "n": 20, "outcome": "faster"}
            paired.append({"variant": name, "baseline": shape.BASELINE, "metric": "time", **ratio})
    return {
        "case": {"workload": case.workload, "params": case.params, "dtype": case.dtype, "device": case.device},
        "gradient": {"ok": True, "max_rel_error": 1e-7, "oracle": "closed form"},
        "error": None,
        "variants": variants,
        "paired": paired,
    }
