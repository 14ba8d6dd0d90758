"""What browser tests share: the real application over a real Postgres, filled through its API, and a real Chromium.

The made history is small but has everything a page must show: a step in time, an array more, memory that goes away, a
wrong gradient, a tier that an older engine lacks, an ambiguous ratio, a disturbed machine, and names that try to break out.
"""

import math
import random
import shutil
import subprocess
import sys
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

import pullback
from pullback_service.database import Database
from pullback_service.ids import ProjectId
from pullback_service.incidents.detection import detect
from pullback_service.projects.queries import list_projects
from pullback_service.roles import ALL_PROJECTS

WILD_NAME = 'q<script>alert("x")</script>&'
WILD_TITLE = (
    "Fix <b>bold</b> & 'quotes' \N{CROCODILE} \N{HEBREW LETTER SHIN}\N{HEBREW LETTER LAMED}\N{HEBREW LETTER VAV}"
    + " long" * 40
)
START = datetime(2026, 3, 1, 9, tzinfo=UTC)
COMMITS = (
    ("Run gradients the plain way", "first author"),
    ("Fuse bias and activation", "second author"),
    ("Hoist packing out of the loop", "first author"),
    ("Restore in place", "third author"),
    ("Drop a copy in matmul", "first author"),
    ("Rename passes", "second author"),
    ("Add the softplus rule", "third author"),
    ("Save outputs only", "first author"),
    ("Plan offsets in one arena", "second author"),
    ("Keep cotangents lazy", "third author"),
    (WILD_TITLE, "first author"),
    ("Cut a broadcast copy", "second author"),
)
SHAS = [f"{random.Random(place).getrandbits(160):040x}" for place in range(len(COMMITS))]
CASES = (
    ("dense_bias_act", {"n": 100, "act": "tanh"}, "f4", 40e-6, 120_000),
    ("dense_bias_act", {"n": 1000, "act": "tanh"}, "f4", 9e-3, 12_000_000),
    ("touch_large_array", {"n": 1_000_000}, "f8", 3e-3, 24_000_000),
    ("poly9_broadcast", {"n": 10_000}, "f4", 300e-6, 720_000),
    ("mul_restore", {"n": 300}, "f8", 1.4e-3, 2_160_000),
)
FACTORS = {"fused": 0.47, "stateful": 0.34}


def made_report(place, *, project="pullback", cases=CASES, machine="lab-7"):
    """The report of one commit of the made history."""
    chance = random.Random(f"{project} {place}")
    title, author = COMMITS[place]
    return {
        "format": "pullback-report",
        "version": 1,
        "id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{project} {machine} {place}")),
        "started_at": (START + timedelta(hours=20 * place, minutes=5)).isoformat(),
        "duration_s": 48.2,
        "project": project,
        "commit": {
            "sha": SHAS[place],
            "parents": SHAS[place - 1 : place],
            "branch": "main",
            "author": author,
            "authored_at": (START + timedelta(hours=20 * place)).isoformat(),
            "title": title,
            "dirty": False,
        },
        "machine": {
            "fingerprint": f"print-of-{machine}",
            "name": machine,
            "facts": {"cpu": "EPYC 7B13", "cores": 8, "memory": "31 GiB", "kernel": "6.1", "numpy": "2.3.4"},
        },
        "harness": {
            "version": "0.1.0",
            "suite": "quick",
            "quality": "busy" if place == 6 else "clean",
            "preflight": {"load": 0.12, "governor": "performance"},
            "job": None,
            "refused": [
                f"no case of suite 'quick' matches '{WILD_NAME}'; there are {', '.join(['lse[n=2500,f8,cpu]'] * 9)}"
            ],
            "absent": ["numpy takes part in no case: workload dense_bias_act declares no peer 'numpy'"],
        },
        "cases": [made_case(place, chance, *case) for case in cases],
        "comparisons": [],
    }


def made_comparison():
    """The last two commits measured in the same groups: fused 3 % slower in the dense cases, stateful 11 % faster."""
    report = made_report(len(COMMITS) - 1)
    report["id"] = str(uuid.uuid5(uuid.NAMESPACE_URL, "comparison"))
    for entry in report["cases"]:
        if entry["case"]["workload"] == "dense_bias_act":
            claims = (("fused", 0.031, "slower"), ("stateful", -0.12, "faster"))
        else:
            claims = (("fused", 0.001, "same"), ("stateful", 0.001, "same"))
        report["comparisons"] += [
            {
                "case": entry["case"],
                "variant": variant,
                "metric": "time",
                "reference": SHAS[-2],
                "candidate": SHAS[-1],
                "log_ratio": ratio,
                "low": ratio - 0.004,
                "high": ratio + 0.004,
                "n": 20,
                "outcome": outcome,
                "claim": 0.005,
                "margin": 0.01,
            }
            for variant, ratio, outcome in claims
        ]
    return report


def made_case(place, chance, workload, params, dtype, seconds, size):
    case = {"workload": workload, "params": params, "dtype": dtype, "device": "cpu"}
    if workload == "mul_restore" and place == 5:
        return {
            "case": case,
            "gradient": {"ok": False, "max_rel_error": 3.1e-2, "oracle": "closed form"},
            "error": {"kind": "gradient", "message": "relative error 3.1e-02 against the closed form"},
            "variants": [],
            "paired": [],
        }
    variants, paired = [], []
    drift = [chance.lognormvariate(0, 0.08) for _ in range(20)]  # of the machine, alike for all processes of a group
    for variant, ratio, share in shares(place, workload):
        if share is None:
            error = {"kind": "missing", "message": "this engine has no stateful tier"}
            variants.append({"variant": variant, "kind": "tier", "metrics": {}, "error": error})
            continue
        middle = ratio and math.log(ratio) + chance.gauss(0, 0.004)
        typical = seconds * (math.exp(middle) if middle else 1.0)
        processes = [typical * common * chance.lognormvariate(0, 0.01) for common in drift]
        variants.append(
            {
                "variant": variant,
                "kind": "tier",
                "metrics": {
                    "time": {
                        "unit": "s",
                        "clock": "cpu",
                        "processes": processes,
                        "slices": [[value * chance.lognormvariate(0, 0.02) for _ in range(4)] for value in processes],
                    },
                    "array_bytes": {"unit": "B", "value": int(size * share), "method": "nep49"},
                    "array_allocs": {"unit": "1", "value": allocations(place, variant, share), "method": "nep49"},
                    "native_bytes": {"unit": "B", "value": None, "method": None},
                },
                "program_hash": f"{variant}-{sum(place >= step for step in (4, 8, 9))}-{allocations(place, variant, share)}",
                "plan": {
                    "arrays": 3,
                    "bytes": int(size * share),
                    "copies": 0,
                    "state_bytes": 0,
                    "kernels": 2,
                    "flops": 4e6,
                    "listing": made_listing(variant, allocations(place, variant, share)),
                }
                if variant != "unfused"
                else None,
            }
        )
        if middle is not None:
            doubt = 0.02 if workload == "touch_large_array" else 0.009
            outcome = "ambiguous" if abs(middle) < doubt else "faster" if middle < 0 else "slower"
            paired.append(
                {
                    "variant": variant,
                    "baseline": "unfused",
                    "metric": "time",
                    "log_ratio": middle,
                    "low": middle - doubt,
                    "high": middle + doubt,
                    "n": 20,
                    "outcome": outcome,
                }
            )
    gradient = {"ok": True, "max_rel_error": 2.4e-7, "oracle": "closed form"}
    return {"case": case, "gradient": gradient, "error": None, "variants": variants, "paired": paired}


def made_listing(variant, arrays):
    """A program that makes so many arrays."""
    lines = ["# program", "def program(in0, in1, in2):", "    b0 = matmul(in0, in1)", "    add(b0, in2, out=b0)"]
    lines += ["    tanh(b0, out=b0)", "    v0 = in1.transpose((1, 0))"]
    lines += [f"    b{number} = multiply(b0, v0)" for number in range(1, arrays)]
    return [*lines, f"    return b{max(0, arrays - 1)}", "", "# memory of the program", f"{variant}: {arrays} arrays"]


def shares(place, workload):
    """(variant, factor of time or None for the baseline, share of the baseline's bytes or None for a failure)."""
    yield "unfused", None, 1.0
    for variant, factor in FACTORS.items():
        ratio = factor * (1.25 if place < 4 else 1.0)
        if workload == "dense_bias_act" and place >= 9:
            ratio *= 1.13
        if workload == "touch_large_array":
            ratio = 1.2 if variant == "fused" else 0.996
        share = 0.5 if variant == "fused" else 0.2 if place < 7 else 0.0
        if workload == "touch_large_array":
            share = 1.0
        if workload == "poly9_broadcast" and variant == "stateful" and place < 3:
            share = None
        yield variant, ratio, share


def allocations(place, variant, share):
    """Arrays per call; the last commit of the made history costs the fused tier one more."""
    if share == 0:
        return 0
    return 9 if variant == "unfused" else 4 if variant == "fused" and place == len(COMMITS) - 1 else 3


def fresh_database(server, template):
    """A migrated, empty database, which is gone with the server."""
    import psycopg

    name = f"pages_{uuid.uuid4().hex}"
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
    return server.url(name)


@pytest.fixture(scope="session")
def session_database_url(postgres_server, migrated_template):
    """A database for all tests of a session that only read."""
    return fresh_database(postgres_server, migrated_template)


def serving(database_url, **settings):
    """The application of `pullback serve` in a thread of its own, on a free port."""
    from tests.serving import served

    from pullback_cli.app import create_app
    from pullback_cli.serve import LONGEST_HEAD
    from pullback_service.settings import Settings

    app = create_app(Settings(DATABASE_URL=database_url, **settings))
    return served(app, log_level="warning", h11_max_incomplete_event_size=LONGEST_HEAD)


async def look_for_incidents(database_url):
    """Find what changed in all that was uploaded, as the worker does."""
    database = Database(database_url).seeing(ALL_PROJECTS)
    async with database.reading() as session:
        projects = await list_projects(session)
    for project in projects:
        async with database.writing.begin() as session:
            await detect(session, ProjectId(project.id))
    await database.close()


@pytest.fixture(scope="session")
def base(session_database_url):
    """Address of the application with the made history."""
    import httpx

    with serving(session_database_url) as address, httpx.Client(base_url=address, timeout=30) as client:
        for place in range(len(COMMITS)):
            client.post("/api/v1/reports", json=made_report(place)).raise_for_status()
        client.post("/api/v1/reports", json=made_comparison()).raise_for_status()
        wild = (WILD_NAME, {"n": 1, "note": "\N{SNOWMAN}" * 30}, "f8", 1e-3, 800)
        for place in (10, 11):
            answer = client.post("/api/v1/reports", json=made_report(place, project="wild/<names>", cases=[wild]))
            answer.raise_for_status()
        with start_blocking_portal() as portal:  # a loop of its own: the browser has one in this thread
            portal.call(look_for_incidents, session_database_url)
        yield address


IN_PIECES = '''

_whole = dense_bias_act


def dense_bias_act(w, x, b=None, act="identity"):
    """The layer with its weights joined from their pieces: an array more for those who had them whole."""
    return _whole(np.concatenate([w[:1], w[1:]]), x, b, act)
'''


@dataclass(frozen=True)
class Measured:
    """A service with two commits that `pullback run` measured."""

    base: str
    culprit: str
    """The commit that made `dense_bias_act` allocate an array more."""


@pytest.fixture(scope="session")
def measured(postgres_server, migrated_template, tmp_path_factory):
    """Two commits of an engine, really measured: ten seconds, for the one task that has to be done on real results."""
    import httpx

    repository = tmp_path_factory.mktemp("measured") / "pullback"
    engine = Path(pullback.__file__).parent
    repository.mkdir()
    git(repository, "init", "-q")
    (repository / "pullback.toml").write_text('[build]\npath = ["engine"]\nimport = ["pullback"]\nfiles = ["engine"]\n')
    commit(repository, "Begin")
    copied = repository / "engine" / "pullback"
    shutil.copytree(engine, copied, ignore=shutil.ignore_patterns("__pycache__"))
    commit(repository, "Gradients in four tiers")
    with (copied / "nn" / "dense.py").open("a") as layer:
        layer.write(IN_PIECES)
    commit(repository, "Take weights in pieces")
    shas = git(repository, "rev-list", "--reverse", "HEAD").split()
    wish = ("--commits", f"{shas[0]}..", "--repository", str(repository), "-o", str(repository / "history"))
    case = ("--suite", "trial:dense_bias_act?n=32*", "--variant", "fused", "--quiet")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pullback_cli", "run", *wish, *case], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    with (
        serving(fresh_database(postgres_server, migrated_template)) as address,
        httpx.Client(base_url=address) as client,
    ):
        for file in sorted((repository / "history").iterdir()):
            client.post("/api/v1/reports", content=file.read_bytes()).raise_for_status()
        yield Measured(address, shas[-1])


def git(folder, *arguments):
    """Run git as a person with a name."""
    identity = ("-c", "user.name=A", "-c", "user.email=a@a.test", "-c", "init.defaultBranch=main")
    done = subprocess.run(["git", *identity, "-C", folder, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(repository, title):
    """Commit everything."""
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", title, "--allow-empty")


@pytest.fixture
def empty_base(database_url):
    """Address of an application where nothing has been measured."""
    with serving(database_url) as address:
        yield address


@pytest.fixture
def guarded_base(database_url, tmp_path):
    """Address of an application that needs a token."""
    secret = tmp_path / "token"
    secret.write_text("the-secret")
    with serving(database_url, auth="token", token_file=secret) as address:
        yield address


SCRIPTED = "html[data-scripted]"
"""A page whose scripts run: they begin once it stands there."""


class Watch:
    """What a page complained of, and what it asked of other hosts."""

    def __init__(self, page, base):
        self.complaints = []
        page.on(
            "console",
            lambda m: self.complaints.append(f"{m.type}: {m.text}") if m.type in {"error", "warning"} else None,
        )
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on(
            "request", lambda r: None if r.url.startswith((base, "data:", "blob:")) else self.complaints.append(r.url)
        )


@pytest.fixture
def visit(browser, base):
    """Open an address of the application: `page = visit("/", width=390, theme="dark")`. Fails if the page complained.

    Named behind the service it visits, it closes its windows before that ends: pages that live ask until then.
    """
    contexts, watches = [], []

    def open_page(path, *, width=1440, theme="light", at=base, javascript=True):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=theme, java_script_enabled=javascript
        )
        contexts.append(context)
        page = context.new_page()
        watches.append(Watch(page, at))
        page.goto(at + path)
        if javascript and page.evaluate("document.contentType") == "text/html":  # charts have addresses of their own
            page.wait_for_selector(SCRIPTED)
        if javascript and page.locator("[data-figure]").count():
            page.wait_for_selector("[data-drawn=yes]", timeout=30_000)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert [complaint for watch in watches for complaint in watch.complaints] == []


@pytest.fixture
def made():
    """The functions that make reports."""

    class Made:
        made_report = staticmethod(made_report)

    return Made
