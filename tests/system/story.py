"""A library of thirty commits, of which one un-fuses a rule, one mends it and one breaks a gradient; and an agent that knows that."""

import random
import textwrap
import threading
import time
from math import exp, log
from uuid import uuid4

import httpx
from tests.system.conftest import git

COMMITS = 30
UNFUSED, MENDED, BROKEN = 17, 23, 26
"""By their numbers from 1 on: from 17 to 22 a call makes one array more and takes 1.3 times the time."""
SLOWER = 1.3

LIBRARY = '''
"""Sums of sines and of cosines, with their gradients."""

import numpy as np


def sines(x):
    kept, gradient = np.empty_like(x), np.cos(x)
    for _ in range(10):
        np.sin(x, out=kept)
    {more}
    return float(kept.sum()), gradient


def cosines(x):
    kept, gradient = np.empty_like(x), np.sin(x)
    for _ in range(10):
        np.cos(x, out=kept)
    np.multiply(gradient, {factor}, out=gradient)
    return float(kept.sum()), gradient


NUMBER = {number}
'''
MORE = "more = np.sin(x)\n    for _ in range(3):\n        np.sin(x, out=more)"
WORKLOAD = """

@workload(wrt="x", quick=grid(n=(20000,)), trial=grid(n=(20000,)))
def {name}(*, n):
    "A sum of waves."
    return lambda x: np.sum(np.{function}(x))


{name}.inputs(lambda rng, dtype, *, n: {{"x": rng.normal(size=n).astype(dtype)}})
{name}.oracle(lambda x, *, n: (np.sum(np.{function}(x)), {{"x": {derivative}}}))


@{name}.peer("waves")
def _(x, *, n):
    value, gradient = waves.{name}(x)
    return value, {{"x": gradient}}
"""
WORKLOADS = "".join(
    [
        "import numpy as np\nimport waves\nfrom pullback_runners.workloads import grid, workload\n",
        WORKLOAD.format(name="sines", function="sin", derivative="np.cos(x)"),
        WORKLOAD.format(name="cosines", function="cos", derivative="-np.sin(x)"),
    ]
)
PROJECT = """
[project]
name = "waves"
[build]
import = ["waves"]
[measure]
workloads = ["bench/waves_workloads.py"]
variants = ["unfused", "waves"]
"""
VARIANTS = (("unfused", "tier"), ("waves", "peer"))
CASES = ("sines", "cosines")


def text_of(number):
    """The library as the commit of this number has it."""
    is_unfused, is_broken = UNFUSED <= number < MENDED, number >= BROKEN
    return LIBRARY.format(more=MORE if is_unfused else "", factor=-1.5 if is_broken else -1.0, number=number)


class Demo:
    """The repository, and what is true of each of its commits."""

    def __init__(self, folder):
        self.folder = folder / "waves"
        self.folder.mkdir()
        git(self.folder, "init", "-q")
        self._write("pullback.toml", PROJECT)
        self._write("bench/waves_workloads.py", WORKLOADS)
        self.shas = [self.commit(number) for number in range(1, COMMITS + 1)]
        self.numbers = {sha: number for number, sha in enumerate(self.shas, 1)}

    def commit(self, number, title=None):
        """Commit the library as it was at a number."""
        self._write("src/waves.py", text_of(number))
        git(self.folder, "add", "-A")
        git(self.folder, "commit", "-q", "--allow-empty", "-m", title or f"Change {number}")
        return git(self.folder, "rev-parse", "HEAD")

    def repeat_on_branch(self, number):
        """Check out a branch that parts before the commit of a number and makes the same change again; its hash."""
        git(self.folder, "checkout", "-q", "-b", "again", self.sha(number - 1))
        sha = self.commit(number, "The same change again")
        self.numbers[sha] = number
        return sha

    def sha(self, number):
        """The hash of the commit of a number, from 1 on."""
        return self.shas[number - 1]

    def said(self, number):
        """A commit as git tells of it."""
        return {
            "sha": self.sha(number), "parents": [self.sha(number - 1)] if number > 1 else [], "branch": "main",
            "author": "A", "authored_at": f"2026-01-{number:02d}T12:00:00Z", "title": f"Change {number}",
        }  # fmt: skip

    def log(self, project):
        """The history, as `pullback log` sends it."""
        commits = [{**self.said(number), "branch": None} for number in range(COMMITS, 0, -1)]
        return {"project": project, "branch": "main", "commits": commits}

    def _write(self, name, text):
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(textwrap.dedent(text))


class KnowingAgent:
    """An agent that answers jobs by what is true, with a little noise, until it is stopped; whatever dies meanwhile, it asks again."""

    MACHINE = {"host": "box", "fingerprint": "box", "name": "box", "facts": {"cores": 2}}  # noqa: RUF012

    def __init__(self, url, demo, *, hook=lambda number, moment: None):
        self.done = []
        """The jobs that it did, oldest first."""
        self._demo, self._url, self._hook = demo, url, hook
        self._chance = random.Random("agent")
        self._stopped = threading.Event()
        self._failure = None
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def stop(self):
        """Let it end, and raise what it died of."""
        self._stopped.set()
        self._thread.join(60)
        if self._failure is not None:
            raise self._failure

    def _work(self):
        try:
            with httpx.Client(base_url=self._url, timeout=20, trust_env=False) as self._http:
                agent = self._post("/api/v1/agents/enroll", {"name": "box", "machine": self.MACHINE}).json()["agent_id"]
                while not self._stopped.is_set():
                    claim = self._post(f"/api/v1/agents/{agent}/claim", {"wait_s": 0.3, "kinds": ["run", "compare"]})
                    if claim.status_code == 200:
                        self._do(claim.json())
        except Exception as error:  # noqa: BLE001 - told by `stop`
            self._failure = error

    def _post(self, path, body, **headers):
        """Post until there is an answer: service and database may be away for a while."""
        while True:
            try:
                answer = self._http.post(path, json=body, headers=headers)
            except httpx.TransportError:
                answer = None
            if answer is not None and answer.status_code < 500:
                assert answer.is_success, answer.text
                return answer
            assert not self._stopped.wait(0.1), "stopped without an answer"

    def _do(self, claim):
        job = claim["job"]
        document = self._document(job, claim["attempt"])
        self._hook(len(self.done), "before")
        path = f"/api/v1/jobs/{job['id']}/attempts/{claim['attempt']}/report"
        headers = {"Pullback-Lease": claim["lease_token"], "Idempotency-Key": document["id"]}
        self._post(path, document, **headers)
        self._hook(len(self.done), "after")
        self.done.append(job)

    def _document(self, job, attempt):
        commit = {key: job["commit"][key] for key in ("sha", "parents", "branch", "author", "authored_at", "title")}
        chosen = [
            name for name in CASES if not job["cases"] or any(each.startswith(f"{name}[") for each in job["cases"])
        ]
        variants = [each for each in VARIANTS if not job["variants"] or each[0] in job["variants"]]
        is_comparison = job["kind"] == "compare"
        number = self._number(job["commit"]["sha"])
        comparisons = []
        if is_comparison:
            ends = {"reference": job["reference"]["sha"], "candidate": job["commit"]["sha"]}
            before = self._number(job["reference"]["sha"])
            for name in chosen:
                for variant, _ in variants:
                    comparisons += [ends | row for row in self._compared(name, variant, before, number)]
        return {
            "format": "pullback-report", "version": 1, "id": str(uuid4()),
            "started_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "duration_s": 1.0, "project": job["project"],
            "commit": commit, "machine": self.MACHINE,
            "harness": {
                "version": "1", "suite": job["suite"], "quality": "clean", "preflight": {},
                "job": {"id": str(job["id"]), "attempt": attempt},
            },
            "cases": [self._case(name, variants, number, with_ratio=not is_comparison) for name in chosen],
            "comparisons": comparisons,
        }  # fmt: skip

    def _number(self, sha):
        return self._demo.numbers[sha]

    def _case(self, name, variants, number, *, with_ratio):
        entries, paired = [], []
        for variant, kind in variants:
            if self._is_wrong(name, variant, number):
                entries.append({"variant": variant, "kind": kind, "metrics": {}, "error": WRONG})
                continue
            seconds = [exp(self._size(name, variant, number)) * self._chance.gauss(1, 0.02) for _ in range(6)]
            entries.append(
                {
                    "variant": variant, "kind": kind,
                    "metrics": {
                        "time": {"unit": "s", "clock": "cpu", "processes": seconds},
                        "array_allocs": {"unit": "1", "value": self._count(name, variant, number), "method": "nep49"},
                    },
                    "digests": {"workload": f"workload of {name}".replace(" ", "-"), "subject": f"files-of-{number:08d}"},
                }
            )  # fmt: skip
            if variant != "unfused" and with_ratio:
                size = self._size(name, variant, number) - self._size(name, "unfused", number)
                paired.append({"variant": variant, "baseline": "unfused", "metric": "time", **self._ratio(size)})
        case = {"workload": name, "params": {"n": 20000}, "dtype": "f8", "device": "cpu"}
        right = {"ok": True, "max_rel_error": 1e-12, "oracle": "closed form"}
        return {"case": case, "gradient": right, "error": None, "variants": entries, "paired": paired}

    def _compared(self, name, variant, before, number):
        case = {"workload": name, "params": {"n": 20000}, "dtype": "f8", "device": "cpu"}
        row = {"case": case, "variant": variant}
        if any(self._is_wrong(name, variant, end) for end in (before, number)):
            nothing = {"log_ratio": None, "low": None, "high": None, "n": 0}
            yield {**row, "metric": "time", **nothing, "outcome": "failed", "error": WRONG}
            return
        size = self._size(name, variant, number) - self._size(name, variant, before)
        yield {
            **row,
            "metric": "time",
            **self._ratio(size),
            "claim": 0.005,
            "margin": 0.01,
            "margin_is_provisional": False,
        }
        counts = self._count(name, variant, before), self._count(name, variant, number)
        outcome = "more" if counts[1] > counts[0] else "less" if counts[1] < counts[0] else "equal"
        ratio = log(counts[1] / counts[0])
        yield {
            **row,
            "metric": "array_allocs",
            "log_ratio": ratio,
            "low": ratio,
            "high": ratio,
            "n": 1,
            "outcome": outcome,
        }

    def _ratio(self, size):
        measured = size + self._chance.gauss(0, 0.001)
        outcome = "same" if abs(measured) < 0.005 else "slower" if measured > 0 else "faster"
        return {
            "log_ratio": measured, "low": measured - 0.003, "high": measured + 0.003, "n": 20, "outcome": outcome,
        }  # fmt: skip

    @staticmethod
    def _is_wrong(name, variant, number):
        return (name, variant) == ("cosines", "waves") and number >= BROKEN

    @staticmethod
    def _is_unfused(name, variant, number):
        return (name, variant) == ("sines", "waves") and UNFUSED <= number < MENDED

    def _size(self, name, variant, number):
        usual = log(1e-4) + (log(0.5) if variant == "waves" else 0.0)
        return usual + (log(SLOWER) if self._is_unfused(name, variant, number) else 0.0)

    def _count(self, name, variant, number):
        return (2 if variant == "waves" else 5) + self._is_unfused(name, variant, number)


WRONG = {"kind": "gradient", "message": "relative error 0.5 against closed form"}
