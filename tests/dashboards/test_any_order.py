"""Two services that were told the same in different orders show the same in the same order: every page with its other forms, answer, feed and file.

Reports of two machines at commits of two branches: complete or in part, late, busy, dirty, failed, with a wrong gradient, twice at a commit or
even at one moment, of two workloads with the same cases; comparisons of two commits; parents told before or after, and reports that are
withdrawn; every second time then retention, on both. `PULLBACK_ORDERS=10` and `-m "long or not long"` try ten orders.
"""

import csv
import io
import json
import os
import random
import re
from contextlib import AsyncExitStack, asynccontextmanager
from urllib.parse import quote
from uuid import uuid4

import httpx
import pytest
from sqlalchemy import text
from tests.service.access.test_scopes import APP, walk
from tests.service.conftest import make_case, make_report, make_variant

from pullback_cli.app import create_app
from pullback_service import database_rebuild
from pullback_service.addresses import API
from pullback_service.database import Database
from pullback_service.database_checks import check
from pullback_service.incidents.detection import detect
from pullback_service.readings.projection import project_everything
from pullback_service.reports import retention
from pullback_service.roles import ALL_PROJECTS
from pullback_service.settings import Settings
from pullback_service.steps.projection import judge_everything

pytestmark = pytest.mark.anyio

PARENTS = {1: 0, 2: 1, 3: 2, 4: 3, 5: 4, 6: 5, 7: 3, 8: 7}
"""Commits 7 and 8 are on a branch of their own, which left the other behind the third."""
HEADS = {"main": 6, "side": 8}
MACHINES = ["box", "other"]
SIZES = [100, 20]
CASES = ["dense[n=100,act=tanh,f4,cpu]", "conv[n=20,act=tanh,f4,cpu]"]
GETS = sorted({route.path for route in walk(APP.routes) if "GET" in route.methods})


def sha_of(number):
    return f"{number:02x}" * 20


def branch_of(number):
    return "side" if number > HEADS["main"] else "main"


def made(chance, number, serial, **more):
    """A report at a commit, as large as any other of its seed and serial number says."""
    machine = MACHINES[serial % 2] if serial <= len(MACHINES) else chance.choice(MACHINES)
    document = make_report(number, machine=machine, quality=chance.choice(["clean", "clean", "busy"]), **more)
    document["id"] = f"00000000-0000-4000-8000-{serial:012x}"
    at = serial // 2  # two at a time
    document["started_at"] = f"2026-02-{1 + at % 27:02}T12:{at % 60:02}:00Z"
    document["harness"]["partial"] = chance.random() < 0.2
    document["commit"]["dirty"] = chance.random() < 0.1
    document["commit"] |= {"sha": sha_of(number), "branch": branch_of(number)}
    document["commit"]["parents"] = [sha_of(PARENTS[number])] if chance.random() < 0.5 else []
    return document


def cases_of(chance, number):
    """Cases in any order, as a suite may list them anew."""
    pairs = [(workload, size) for workload in ("dense", "conv") for size in SIZES]
    for workload, size in chance.sample(pairs, len(pairs)):
        one = case_of(chance, number, workload)
        if one is not None:
            one["case"]["params"]["n"] = size
            yield one


def case_of(chance, number, workload):
    odd = chance.random()
    if odd < 0.1:
        return None
    failure = {"error": {"kind": "crash", "message": f"it broke {chance.choice(['here', 'there'])}"}}
    if odd < 0.2:
        return make_case(workload, variants=[], paired=[], **failure)
    slower = 1.4 if number >= 5 else 1.0
    seconds = [chance.gauss(1, 0.01) * slower for _ in range(chance.choice([2, 5]))]
    variants = [
        make_variant("unfused", seconds=[chance.gauss(1, 0.01) for _ in range(5)]),
        make_variant("fused", seconds=seconds, array_bytes=1024.0 + 512 * (number in {4, 5, 6})),
    ]
    if odd > 0.9:
        variants[1] |= {"metrics": {}, **failure}
        return make_case(workload, variants=variants, paired=[])
    ratio = chance.gauss(0, 0.01) + (0.33 if number >= 5 else 0)
    case = make_case(workload, variants=variants, log_ratio=ratio)
    if odd < 0.3:
        case |= {"gradient": {"ok": False, "max_rel_error": 0.1, "oracle": "closed form"}}
        case |= {"variants": [], "paired": []}
    return case


def compared(chance, serial):
    """A report of two commits, as `pullback compare` sends it."""
    before, after = sorted(chance.sample(range(1, 7), 2))
    document = made(chance, after, serial, cases=[])
    ratio = chance.choice([0.3, 0.002])
    document["comparisons"] = [
        {
            "case": make_case("dense")["case"], "variant": "fused", "metric": "time", "reference": sha_of(before),
            "candidate": sha_of(after), "log_ratio": ratio, "low": ratio - 0.004, "high": ratio + 0.004, "n": 20,
            "outcome": "slower" if ratio > 0.1 else "same",
        }
    ]  # fmt: skip
    return document


def told_of(seed):
    """All uploads: reports, logs of branches, and reports that are withdrawn, each as (what it is, content)."""
    chance = random.Random(seed)
    numbers = [*PARENTS, *chance.choices(list(PARENTS), k=10)]
    reports = []
    for serial, number in enumerate(numbers, 1):
        reports.append(made(chance, number, serial, cases=[*cases_of(chance, number)]))
    reports += [compared(chance, len(reports) + 1 + place) for place in range(3)]
    told = [("report", document) for document in reports]
    told += [("withdraw", document["id"]) for document in chance.sample(reports, 4)]
    for name, head in HEADS.items():
        line, number = [], head
        while number:
            dated = {
                "authored_at": f"2026-01-{1 + number:02}T00:00:00Z",
                "title": f"Change {number}",
                "author": "A. Author",
            }
            line.append(
                {"sha": sha_of(number), "parents": [sha_of(PARENTS[number])] if PARENTS[number] else [], **dated}
            )
            number = PARENTS[number]
        told.append(("log", {"project": "demo", "branch": name, "commits": line}))
    return told


def in_some_order(told, seed):
    """The same in another order, a report before it is withdrawn; some of the reports are sent again."""
    chance = random.Random(seed)
    order = chance.sample(told, len(told))
    for withdrawal in [each for each in order if each[0] == "withdraw"]:
        order.remove(withdrawal)
        sent = next(
            place for place, (what, content) in enumerate(order) if what == "report" and content["id"] == withdrawal[1]
        )
        order.insert(chance.randint(sent + 1, len(order)), withdrawal)
    again = chance.sample([each for each in told if each[0] == "report"], 3)
    return [*order, *again]


async def tell(client, told):
    for what, content in told:
        if what == "report":
            answer = await client.post(f"{API}/reports?allow_dirty=true", json=content)
        elif what == "log":
            answer = await client.post(f"{API}/commits", json=content)
        else:
            answer = await client.post(f"{API}/reports/{content}/withdraw")
        assert answer.is_success, (what, answer.text)


class Installation:
    """A service on a database of its own, with the tasks of its worker."""

    def __init__(self, client, url, database):
        self.client, self.url, self.database = client, url, database

    async def work(self):
        """Everything that waits: readings, steps, then changes."""
        async for _ in project_everything(self.database):
            pass
        async for _ in judge_everything(self.database):
            pass
        async with self.database.writing.begin() as session:
            for project_id in (await session.scalars(text("SELECT id FROM project"))).all():
                while await detect(session, project_id):
                    pass

    async def retain(self):
        async with self.database.writing.begin() as session:
            await session.execute(text("UPDATE project SET raw_days = 1"))
            await session.execute(
                text("UPDATE report SET received_at = received_at - interval '2 days', followed_up_at = now()")
            )
        await retention.apply(self.database)

    async def places(self):
        """The values of the parameters of addresses, which are of the same things in every installation."""
        series = (await self.client.get(f"{API}/series?project=demo&limit=1000")).json()["items"]
        machines = (await self.client.get(f"{API}/machines")).json()["items"]
        incidents = (await self.client.get(f"{API}/incidents?project=demo")).json()["items"]
        return {
            "project": ["demo"],
            "name": ["demo"],
            "sha": [sha_of(number) for number in (4, 5, 8)],
            "report_id": [f"00000000-0000-4000-8000-{serial:012x}" for serial in (4, 19)],
            "case": CASES,
            "workload": ["dense", "conv"],
            "series_id": [each["id"] for each in sorted(series, key=name_of_series)][:6],
            "machine_id": [each["id"] for each in sorted(machines, key=lambda each: each["name"])],
            "incident_id": [each["id"] for each in sorted(incidents, key=name_of_incident)],
        }

    async def shown(self):
        """The answers of every address, by a name of the address that no id is part of."""
        places, found = await self.places(), {}
        for path in GETS:
            names = re.findall(PART, path)
            if not set(names) <= places.keys() or path.startswith(OF_ARRIVALS) or path in NOT_ASKED:
                continue
            for values in chosen(names, places):
                filled = re.sub(PART, lambda part, values=values: quote(str(values[part[1]]), safe="/"), path)
                numbers = {name: places[name].index(value) for name, value in values.items()}
                spoken = re.sub(PART, lambda part, numbers=numbers: f"{part[1]} {numbers[part[1]]}", path)
                for query in queries_of(path):
                    found[spoken + query] = await self.answer(filled + query)
        return found

    async def answer(self, address):
        """The answer at an address; of a list all pages, one behind the other."""
        pages, following = [], ""
        while following is not None:
            answer = await self.client.get(address + following)
            assert answer.status_code < 500, (address, answer.text)
            pages.append(plain(without_ids(answer.text) if "format=csv" in address else answer.text))
            after = answer.json().get("next") if "limit=" in address and answer.is_success else None
            following = None if after is None else f"&cursor={after}"
        return answer.status_code, "\n".join(pages)


def name_of_series(series):
    return json.dumps([series["case"]["label"], series["variant"], series["metric"], series["machine"]])


def name_of_incident(incident):
    return json.dumps([incident["kind"], incident["commit"]["sha"], incident["reference"]["sha"]])


def chosen(names, places):
    """Values for the parameters of an address: each value of each of them, beside the first ones of the others."""
    if not names:
        return [{}]
    first = {name: places[name][0] for name in names if places[name]}
    if len(first) < len(names):
        return []
    return [
        *{
            tuple(sorted((first | {name: value}).items())): first | {name: value}
            for name in names
            for value in places[name]
        }.values()
    ]


def queries_of(path):
    """Queries that are tried at an address."""
    if path.startswith(API):
        return QUERIES.get(path.removeprefix(API), ("?project=demo",))
    queries = next((queries for part, queries in OF_PAGES.items() if part in path), ("",))
    return queries[:1] if path.endswith(".png") else queries  # pictures are of the same values as SVG, and slow to draw


BASE = f"base={sha_of(1)}&head={sha_of(6)}"
BESIDE = f"base={sha_of(5)}&head={sha_of(8)}"
OF_PAGES = {
    "explore": ("", "?metric=time", "?split=machine&last=3"),
    "compare": (f"?{BASE}&show=all", f"?{BESIDE}&show=all", f"?{BASE}&show=all&head_machine=box&base_machine=other"),
    "/workloads/": ("", "?machine=other", "?machine=box"),
    "/commits/": ("", "?machine=other", "?machine=box"),
    "incidents": ("", "?state=all&sort=size"),
    "{": ("",),
    "/": ("?project=demo", "?project=demo&branch=side", "?project=demo&machine=other&metric=time"),
}
"""Queries of pages whose address has this part, of the first that fits."""
CHOICES = ("?project=demo", "?project=demo&metric=time&machine=other", "?project=demo&branch=side&limit=3")
COMPARED = tuple(
    f"?project=demo&{pair}"
    for pair in (
        BASE,
        f"{BASE}&limit=3",
        BESIDE,
        f"head={sha_of(5)}&base_machine=box&head_machine=other",
    )
)
QUERIES = {
    "/series": ("", *CHOICES, "?limit=3", "?project=demo&format=csv"),
    "/series/facets": CHOICES[:2],
    "/points": (*CHOICES, "?project=demo&raw=true&limit=1000", "?project=demo&format=csv&last=2"),
    "/series/{series_id}/points": ("", "?raw=true", "?branch=main&last=3"),
    "/comparisons": (*COMPARED, COMPARED[0] + "&format=csv"),
    "/checks": COMPARED[0:3:2],
    "/matrix": (
        "?project=demo",
        "?project=demo&metric=time&limit=1",
        "?project=demo&branch=side",
        "?project=demo&format=csv",
    ),
    "/machines": ("", "?limit=1"),
    "/merge-base": (f"?project=demo&one={sha_of(6)}&other={sha_of(8)}",),
    "/commits": ("?project=demo&limit=3", "?project=demo&branch=side"),
}
"""Queries of addresses of the API; a list with a `limit` is read page by page."""
OF_ARRIVALS = (
    "/static",
    "/metrics",
    "/status",
    "/fleet",
    "/machines",
    "/settings/audit",
    f"{API}/audit",
    f"{API}/machines/",
)
"""Pages and lists of what came last, whatever it is of, and of what the service did."""
NOT_ASKED = {f"{API}/reports", *(path for path in GETS if path.endswith(".html"))}
"""A list of that kind too, and what is the same as the page."""
PART = re.compile(r"{(\w+)(?::path)?}")
MASKED = [
    (re.compile(pattern), put)
    for pattern, put in (
        (
            r"(\"(?:[a-z]+_)?id\": ?|\"key\": ?|/(?:incidents|machines|series|jobs)/|incident[ =-]#?|machine=|series=|(?<!-)series-|open=)\d+",
            r"\1id",
        ),
        (r"\"next\":\"[\w=-]+\"", "next"),  # a cursor has ids in it
        (r"\"request_id\":\"(?:[0-9a-f]{32}|[0-9a-f-]{36})", "request"),
        (r"\b(?:just now|\d+ s ago|\d+ min ago)\b", "ago"),
        (r"20(?:2[6-9]|[3-9]\d)-(?:0[3-9]|1\d)-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|\+00:00)?)?", "now"),
    )
]
"""Parts of answers that differ between installations: ids, cursors, and the instants of arrival, which are after those in the reports."""


def without_ids(table):
    """A CSV file without its columns of ids."""
    head, *rows = csv.reader(io.StringIO(table))
    kept = [place for place, name in enumerate(head) if not name.endswith("series_id") and name != "id"]
    return "\n".join(str([row[place] for place in kept]) for row in [head, *rows])


def plain(answer):
    """An answer without the ids and instants of its installation."""
    for pattern, put in MASKED:
        answer = pattern.sub(put, answer)
    return answer


@asynccontextmanager
async def installed(url):
    app = create_app(Settings(DATABASE_URL=url, address_work=1e6, token_work=1e6))
    database = Database(url).seeing(ALL_PROJECTS)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=60) as client,
    ):
        try:
            yield Installation(client, url, database)
        finally:
            await database.close()


@pytest.fixture
def urls(postgres_server, administration, migrated_template):
    """The addresses of two empty databases."""
    names = [f"order_{uuid4().hex}_{place}" for place in range(2)]
    for name in names:
        administration.execute(f'CREATE DATABASE "{name}" TEMPLATE "{migrated_template}" STRATEGY file_copy')
    yield [postgres_server.url(name) for name in names]
    for name in names:
        administration.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("seed", range(int(os.environ.get("PULLBACK_ORDERS", "4"))))
async def test_the_order_in_which_things_are_told_is_not_seen(urls, seed):
    told = told_of(seed)
    async with AsyncExitStack() as stack:
        both = [await stack.enter_async_context(installed(url)) for url in urls]
        for place, each in enumerate(both):
            await tell(each.client, in_some_order(told, 2 * seed + place))
            if seed % 2:
                await each.retain()
            await each.work()
        shown, too = [await each.shown() for each in both]
        differing = [name for name in shown.keys() | too.keys() if shown.get(name) != too.get(name)]
        assert not differing, "\n".join(described(differing, shown, too))
        assert sum(status == 200 for status, _ in shown.values()) > 80
        for url in urls:
            assert check(url) == []
            again = await database_rebuild.rebuild_everything(url, write=True)
            assert (again.values.changed, again.readings.changed, again.steps.changed) == (0, 0, 0)


def described(differing, one, other):
    for name in sorted(differing):
        (status, text_of_one), (status_too, text_of_other) = one.get(name, (0, "")), other.get(name, (0, ""))
        at = next((place for place, (a, b) in enumerate(zip(text_of_one, text_of_other, strict=False)) if a != b), 0)
        yield f"{name}: {status} {text_of_one[max(0, at - 80) : at + 120]!r} / {status_too} {text_of_other[max(0, at - 80) : at + 120]!r}"
