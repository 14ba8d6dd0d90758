"""Histories to look for changes in: uploads of one project, with the worker that looks."""

import copy
import random
from math import exp

import pytest
from sqlalchemy import select

from pullback_service.incidents.detection import detect
from pullback_service.incidents.queries import IncidentChoice, events_of, list_incidents
from pullback_service.models import Channel, Project
from pullback_service.statements import answer

WRONG = {"ok": False, "max_rel_error": 0.5, "oracle": "closed form"}
WORKLOADS = ("dense", "lstm")
SIX = [f"workload_{number}" for number in range(6)]
SLOWER_AT = 17


class History:
    """Uploads of a project whose workloads are measured in two variants at every commit."""

    def __init__(self, client, reports, database):
        self.client, self.reports, self.database = client, reports, database

    def commit(self, number, *, ratio=-0.5, array_bytes=1024.0, wrong=(), seed=1, workload="lstm", **parts):
        """The report of a commit: times of one machine scatter by 5 %, ratios to the baseline by 0.2 %."""
        noise = random.Random(f"{seed} {number}")
        cases = []
        for each in WORKLOADS:
            mine = each == workload
            level = ratio if mine else -0.5
            seconds = [exp(level) * noise.gauss(1, 0.05) for _ in range(3)]
            variants = [
                self.reports.variant("unfused"),
                self.reports.variant("fused", seconds=seconds, array_bytes=array_bytes if mine else 1024.0),
            ]
            case = self.reports.case(each, variants=variants, log_ratio=level + noise.gauss(0, 0.002))
            if each in wrong:
                case |= {"gradient": WRONG, "variants": [], "paired": []}
            cases.append(case)
        return self.reports.report(number, cases=cases, **parts)

    def values(
        self, number, *, machine="ci", workloads=SIX, variants=("plain",), slower=(), slower_at=SLOWER_AT, seed=0
    ):
        """The report of a commit with values alone, which scatter by 1 %; workloads, variants or machines are 20 % slower from a commit on."""
        noise = random.Random(f"{machine} {number} {len(workloads)}" + (f" {seed}" if seed else ""))
        cases = []
        for workload in workloads:
            timed = []
            for variant in variants:
                is_slower = number >= slower_at and {workload, variant, machine} & set(slower)
                level = (1.2 if is_slower else 1.0) * noise.gauss(1, 0.01)
                timed.append(self.reports.variant(variant, seconds=[level * part for part in (0.99, 1.0, 1.01)]))
            cases.append(self.reports.case(workload, variants=timed, paired=[]))
        return self.reports.report(number, machine=machine, cases=cases)

    def all_values(self, **parts):
        """The reports of all commits up to four behind `SLOWER_AT`."""
        return [self.values(number, **parts) for number in range(1, SLOWER_AT + 5)]

    def paired(self, document, log_ratio, outcome, *, reference=None, workload="lstm", n=20):
        """The same report, which measured its commit in the same groups as another one."""
        case = next(case for case in document["cases"] if case["case"]["workload"] == workload)
        document = copy.deepcopy(document)
        document["comparisons"].append(
            {
                "case": case["case"],
                "variant": "fused",
                "metric": "time",
                "reference": reference or document["commit"]["parents"][0],
                "candidate": document["commit"]["sha"],
                "log_ratio": log_ratio,
                "low": log_ratio - 0.01,
                "high": log_ratio + 0.01,
                "n": n,
                "outcome": outcome,
            }
        )
        return document

    async def upload(self, *documents, look=False):
        """Upload reports; look for changes behind each of them, or once behind all."""
        for document in documents:
            response = await self.client.post("/api/v1/reports", json=document)
            assert response.status_code in {200, 201}, response.text
            if look:
                await self.look()
        await self.look()

    async def look(self):
        """Look for changes in what waits, as the chore does."""
        async with self.database.reading() as session:
            projects = (await session.scalars(select(Project.id))).all()
        for project_id in projects:
            done = True
            while done:
                async with self.database.writing.begin() as session:
                    done = await detect(session, project_id)

    async def incidents(self, *, merged=False):
        """All incidents, oldest first."""
        async with self.database.reading() as session:
            found = await list_incidents(session, IncidentChoice(), limit=1000)
        return [detail for detail in reversed(found) if merged or detail.incident.state != "merged"]

    async def make_channels(self, *names):
        """Channels of the project that chose no events."""
        async with self.database.writing.begin() as session:
            (project_id,) = await session.scalars(select(Project.id))
            session.add_all(
                Channel(project_id=project_id, name=name, created_by="test", kind="email", target="a@example.org")
                for name in names
            )

    async def messages(self):
        """The events that wait to be sent on each channel, oldest first."""
        found = {}
        for channel in (await self.client.get("/api/v1/channels")).json()["items"]:
            sent = await self.client.get(f"/api/v1/channels/{channel['id']}/deliveries")
            found[channel["name"]] = [each["event"] for each in reversed(sent.json()["items"])]
        return found

    async def told(self):
        """What was told, oldest first: incident and event."""
        async with self.database.reading() as session:
            found = await list_incidents(session, IncidentChoice(), limit=1000)
            events = [event for each in reversed(found) for event in await answer(session, events_of(each.incident.id))]
        return [(event.incident_id, event.event) for event in events if event.told]


def another_number_of_values(document, number):
    """The same report with methods that name a number of values, as those of earlier releases do."""
    for case in document["cases"]:
        for variant in case["variants"]:
            if "time" in variant["metrics"]:
                variant["metrics"]["time"]["method"] = f"median of a process, {40 + number} values in all"
    return document


@pytest.fixture
def history(client, reports, database):
    return History(client, reports, database)
