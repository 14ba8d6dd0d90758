"""The life of a project: its commits are measured one after the other, and agents answer the jobs of its incidents by what is true."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from math import exp
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import orjson
from benchmarks.incidents.noise import SUITE, Noise
from benchmarks.incidents.planting import REWRITTEN
from benchmarks.incidents.truth import BASELINE, VARIANTS, Truth, sha_of
from benchmarks.service_load.calling import Answer, Connection

from pullback_runners.report.document import counts_document

if TYPE_CHECKING:
    import psycopg

BRANCH: Final = "main"
FIRST_DAY: Final = datetime(2026, 1, 1, tzinfo=UTC)
LATE: Final = 20
"""Commits after which a late upload comes."""
WITHDRAWN_AFTER: Final = 2
BUSY: Final = 5
"""Commits for which a machine is busy, by a factor on its noise."""
BUSY_SCALE: Final = 3.0
WRONG_TIMES, WRONG_COUNTS = 0.4, 3
"""What a report has that should never have come."""
LOOK_EVERY_S: Final = 0.01
PATIENCE_S: Final = 600.0
_SETTLED: Final = "SELECT NOT EXISTS (SELECT FROM report WHERE detected_at IS NULL)"  # jobs are queued with the mark


class Life:
    """A project and its machines, each with an agent."""

    def __init__(
        self, connection: Connection, database: "psycopg.Connection[Any]", project: str, truth: Truth, noise: Noise
    ) -> None:
        self.project, self.truth = project, truth
        self.places: dict[str, int] = {}
        """The place of every commit that there was, also of those that a force-push took away."""
        self.jobs = 0
        self._connection, self._database, self._noise = connection, database, noise
        self._shas: list[str] = []
        self._now = 0
        self._agents = [self._enroll(machine) for machine in range(truth.machines)]

    def live(self) -> Iterator[int]:
        """Measure all commits, and answer all jobs behind each; yields how far it is."""
        late: dict[int, list[tuple[int, int]]] = {}
        wrong: dict[int, list[tuple[str, int, int]]] = {}
        self.answer_all()
        for place in range(1, self.truth.commits):
            self.push(place)
            held_back = {each.machine for each in self.truth.silent_at("late upload", place)}
            spoilt = {each.machine for each in self.truth.silent_at("withdrawn", place)}
            for machine in range(self.truth.machines):
                if machine in held_back:
                    late.setdefault(min(place + LATE, self.truth.commits - 1), []).append((place, machine))
                elif machine in spoilt:
                    report = self.run(place, machine, is_wrong=True)
                    wrong.setdefault(place + WITHDRAWN_AFTER, []).append((report, place, machine))
                else:
                    self.run(place, machine)
            for earlier, machine in late.pop(place, ()):
                self.run(earlier, machine)
            for report, earlier, machine in wrong.pop(place, ()):
                _ok(self._connection.post(f"/api/v1/reports/{report}/withdraw", {}))
                self.run(earlier, machine)
            for _ in self.truth.silent_at("force-push", place):
                self._rewrite(range(place - REWRITTEN + 1, place + 1))
            self.answer_all()
            yield place + 1

    def push(self, place: int, branch: str = "") -> None:
        """Let a commit be the newest one."""
        sha = sha_of(place, f"{self.project} {branch}")
        self._shas[place:] = [sha]
        self.places[sha] = place
        self._now = place

    def tell_log(self, places: Iterable[int]) -> None:
        """Tell the service of commits of the branch."""
        commits = [self._commit(place) | {"branch": None} for place in sorted(places, reverse=True)]
        for commit in commits:
            del commit["dirty"]
        _ok(self._connection.post("/api/v1/commits", {"project": self.project, "branch": BRANCH, "commits": commits}))

    def run(
        self, place: int, machine: int, *, is_wrong: bool = False, comparisons: Sequence[Mapping[str, Any]] = ()
    ) -> str:
        """Upload the run of a commit on a machine; the id of its report."""
        document = self._run(place, machine, is_wrong=is_wrong) | {"comparisons": comparisons}
        _ok(self._connection.post("/api/v1/reports", document))
        return str(document["id"])

    def answer_all(self) -> None:
        """Answer the jobs of all machines, until none is left and nothing waits for a look."""
        self._settle()
        while sum(self._answer(machine) for machine in range(self.truth.machines)):
            self._settle()

    def compare(
        self, reference: int, candidate: int, *, pairs: Iterable[tuple[int, int]], effort: int = 1
    ) -> list[dict[str, Any]]:
        """The comparisons of two commits in (case, variant) pairs, by what is true and by chance."""
        return list(chain.from_iterable(self._compared(reference, candidate, pair, effort) for pair in pairs))

    def get_all(self, path: str) -> Iterator[dict[str, Any]]:
        """All items of a list."""
        cursor = ""
        while True:
            page = _ok(self._connection.get(f"{path}{cursor}")).json()
            yield from page["items"]
            if page["next"] is None:
                return
            cursor = f"&cursor={page['next']}"

    def get(self, path: str) -> dict[str, Any]:
        """One thing."""
        return dict(_ok(self._connection.get(path)).json())

    def _rewrite(self, places: Iterable[int]) -> None:
        """Put other commits with the same files in the place of the newest ones, and measure those."""
        rewritten = list(places)
        self._settle()
        for place in rewritten:
            self.push(place, "rewritten")
        self.tell_log([rewritten[0] - 1, *rewritten])
        for place in rewritten:
            for machine in range(self.truth.machines):
                self.run(place, machine)

    def _enroll(self, machine: int) -> int:
        """Enroll the agent of a machine, and let it do a first job, by which the service knows how it measures."""
        body = {"name": f"agent of {self.project} {machine}", "machine": self._machine(machine), "labels": {}}
        agent = int(_ok(self._connection.post("/api/v1/agents/enroll", body)).json()["agent_id"])
        if machine == 0:
            self.push(0)
        wanted = {"project": self.project, "commit": self._commit(0), "suite": SUITE.name}
        _ok(self._connection.post("/api/v1/jobs?force=true", wanted))
        claim = _ok(self._claim(agent)).json()
        self._send(claim, self._run(0, machine))
        return agent

    def _claim(self, agent: int) -> Answer:
        return self._connection.post(f"/api/v1/agents/{agent}/claim", {"wait_s": 0, "kinds": ["run", "compare"]})

    def _answer(self, machine: int) -> bool:
        """Do one job of a machine, if there is one."""
        answer = self._claim(self._agents[machine])
        if answer.status == 204:
            return False
        claim = _ok(answer).json()
        job = claim["job"]
        self.jobs += 1
        candidate, reference = (self.places[job[end]["sha"]] for end in ("commit", "reference"))
        if job["commit"]["sha"] == job["reference"]["sha"]:
            reference = candidate
        pairs = [
            (case, variant)
            for case, named in enumerate(self.truth.cases)
            for variant, name in enumerate(VARIANTS)
            if (not job["cases"] or named.label in job["cases"]) and (not job["variants"] or name in job["variants"])
        ]
        rows = self.compare(reference, candidate, pairs=pairs, effort=job["effort"])
        for row in rows:
            row |= {"reference": job["reference"]["sha"], "candidate": job["commit"]["sha"]}
        document = self._head(candidate, machine) | {
            "cases": [] if reference == candidate else self._compared_cases(candidate, machine, pairs),
            "comparisons": rows,
        }
        document["commit"] = {
            key: job["commit"][key] for key in ("sha", "parents", "branch", "author", "title", "authored_at")
        }
        self._send(claim, document)
        return True

    def _send(self, claim: Mapping[str, Any], document: dict[str, Any]) -> None:
        job = claim["job"]["id"]
        document["harness"] |= {"job": {"id": str(job), "attempt": claim["attempt"]}}
        path = f"/api/v1/jobs/{job}/attempts/{claim['attempt']}/report"
        _ok(self._connection.send("POST", path, orjson.dumps(document), **{"Pullback-Lease": claim["lease_token"]}))

    def _compared(self, reference: int, candidate: int, pair: tuple[int, int], effort: int) -> Iterator[dict[str, Any]]:
        case, variant = pair
        truth = self.truth
        ends = (reference, candidate)
        row = {
            "case": truth.cases[case].document(), "variant": VARIANTS[variant],
            "reference": self._shas[reference], "candidate": self._shas[candidate],
        }  # fmt: skip
        if any(truth.is_missing[end, case, variant] for end in ends):
            return
        if truth.is_wrong[candidate, case, variant]:
            nothing = {"log_ratio": None, "low": None, "high": None, "n": 0}
            yield {**row, "metric": "time", **nothing, "outcome": "failed", "error": _WRONG}
            return
        size = float(truth.times[candidate, case, variant] - truth.times[reference, case, variant])
        yield {**row, "metric": "time", **self._noise.comparison(size, effort)}
        before, after = ({"value": int(truth.counts[end, case, variant])} for end in ends)
        yield {**row, "metric": "array_allocs", **counts_document(after, before)}

    def _compared_cases(self, candidate: int, machine: int, pairs: Sequence[tuple[int, int]]) -> list[dict[str, Any]]:
        """The cases of a comparison: what the candidate measured, without ratios to the baseline."""
        return [
            {**self._case(candidate, machine, case, [v for c, v in pairs if c == case]), "paired": []}
            for case in sorted({case for case, _ in pairs})
        ]

    def _run(self, place: int, machine: int, *, is_wrong: bool = False) -> dict[str, Any]:
        document = self._head(place, machine)
        busy = [
            each for each in self.truth.silent
            if each.kind == "busy" and each.machine == machine and each.place <= self._now < each.place + BUSY
        ]  # fmt: skip
        if busy:
            document["harness"] |= {"quality": "busy"}
        document["cases"] = [
            self._case(place, machine, case, range(len(VARIANTS)), is_wrong=is_wrong, scale=BUSY_SCALE if busy else 1.0)
            for case in range(len(self.truth.cases))
        ]
        return document

    def _head(self, place: int, machine: int) -> dict[str, Any]:
        return {
            "format": "pullback-report", "version": 1, "id": str(uuid4()),
            "started_at": (FIRST_DAY + timedelta(hours=self._now, minutes=1)).isoformat(), "duration_s": 600.0,
            "project": self.project, "commit": self._commit(place), "machine": self._machine(machine),
            "harness": {
                "version": f"1.{self.truth.silent_before('harness', self._now, machine)}", "suite": SUITE.name,
                "quality": "clean", "preflight": {}, "job": None,
            },
            "cases": [], "comparisons": [],
        }  # fmt: skip

    def _commit(self, place: int) -> dict[str, Any]:
        return {
            "sha": self._shas[place], "parents": [self._shas[place - 1]] if place else [], "branch": BRANCH,
            "author": "Ada", "authored_at": (FIRST_DAY + timedelta(hours=place)).isoformat(), "title": f"Change {place}",
            "dirty": False,
        }  # fmt: skip

    def _machine(self, machine: int) -> dict[str, Any]:
        release = self.truth.silent_before("software", self._now, machine)
        name = f"{self.project}-{machine}"
        return {"host": name, "fingerprint": name, "name": name, "facts": {"cores": 8, "numpy": f"2.{release}"}}

    def _case(
        self,
        place: int,
        machine: int,
        case: int,
        variants: Iterable[int],
        *,
        is_wrong: bool = False,
        scale: float = 1.0,
    ) -> dict[str, Any]:
        truth, noise = self.truth, self._noise
        there = [variant for variant in variants if not truth.is_missing[place, case, variant]]
        measured = {
            variant: float(truth.times[place, case, variant] + truth.of_machine[machine, self._now, case, variant])
            + (WRONG_TIMES if is_wrong and variant != BASELINE else 0.0)
            for variant in there
            if not truth.is_wrong[place, case, variant]
        }
        edits = sum(
            each.place <= self._now and (case, 1) in each.subjects
            for each in truth.silent
            if each.kind == "edited workload"
        )
        entries, paired = [], []
        for variant in there:
            entry: dict[str, Any] = {"variant": VARIANTS[variant], "kind": "tier", "metrics": {}}
            if variant in measured:
                count = int(truth.counts[place, case, variant]) + (WRONG_COUNTS if is_wrong else 0)
                entry["metrics"] = {
                    "time": {"unit": "s", "clock": "cpu", "processes": noise.seconds(exp(measured[variant]))},
                    "array_allocs": {"unit": "1", "value": count, "method": "nep49"},
                }
                entry["digests"] = {
                    "workload": f"workload-{truth.cases[case].workload}-{edits}",
                    "subject": truth.subject(place),
                }
            else:
                entry["error"] = _WRONG
            entries.append(entry)
            if variant != BASELINE and variant in measured and BASELINE in measured:
                ratio = noise.ratio(measured[variant] - measured[BASELINE], scale=scale)
                paired.append({"variant": VARIANTS[variant], "baseline": VARIANTS[BASELINE], "metric": "time", **ratio})
        return {
            "case": truth.cases[case].document(), "gradient": {"ok": True, "max_rel_error": 1e-9, "oracle": "closed form"},
            "error": None, "variants": entries, "paired": paired,
        }  # fmt: skip

    def _settle(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            row = self._database.execute(_SETTLED).fetchone()
            if row is not None and row[0]:
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"The worker did not look for changes within {PATIENCE_S:g} s: its log says why.")
            time.sleep(LOOK_EVERY_S)


_WRONG: Final = {"kind": "gradient", "message": "relative error 0.5 against closed form"}


def _ok(answer: Answer) -> Answer:
    if not 200 <= answer.status < 300:
        raise RuntimeError(f"The service answered {answer.status}: {answer.body[:1000]!r}")
    return answer
