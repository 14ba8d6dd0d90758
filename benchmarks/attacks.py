"""Requests that are made to cost much, against a service on this machine, and what everybody else gets meanwhile.

    python -m benchmarks.attacks [pages] [storing] [bodies] [connections] [--json FILE]

Starts a Postgres of its own and `pullback serve`. Each line is one attack: the longest time that it took, the longest that
`/healthz` took meanwhile, asked every 10 ms from another process, and how far the memory of the service rose. `storing` is the
pages of `pages` while a report of 20,000 cases is being stored, for as long as that takes. Exit status 1 says that one passed its limit.
`--json` writes what was asked of each, what was measured, and the verdict. Budgets of work are lifted: they would only refuse sooner.
"""

import argparse
import gzip
import multiprocessing
import signal
import socket
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson
from benchmarks.service_load.calling import Connection
from benchmarks.service_load.processes import MIB, TOKEN, MemoryWatch, Service, serving

from pullback_service import migrations
from pullback_service.postgres import EmbeddedPostgres

CASES = 20_000
AT_ONCE = 6
PROBES = 16
LIMIT_BYTES = 64 * MIB
HEALTH_MS = 100.0
ANSWER_S = {"pages": 5.0, "storing": 5.0, "bodies": 3.0, "connections": 0.5}
GROWN_MIB = 300.0
SETTLING_S = 5.0
"""Until uploads are measured a second time, beside connections that are held."""
READ_CASES = 2_000
"""Of the file that slow readers read: some 3 MB, which no connection takes in by itself."""
STREAM = "&format=csv"
SHA = "a" * 40
CREATED = 201
_AS_BROWSERS_DO = {"Accept": "*/*", "Accept-Encoding": "gzip, deflate"}


@dataclass(slots=True)
class AttackResult:
    """Results of an attack: seconds of each of its requests and their statuses, of /healthz meanwhile, and bytes of memory."""

    answers: list[tuple[int, float]] = field(default_factory=list)
    health_s: list[float] = field(default_factory=list)
    grown: float = 0.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Attack, print and compare with the limits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*ATTACKS, []], help="default: all")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the figures")
    given = parser.parse_args(arguments)
    figures: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="pullback-attacks-") as folder:
        server = EmbeddedPostgres(Path(folder) / "postgres")
        migrations.upgrade(server.start())
        try:
            for part in given.parts or list(ATTACKS):
                with serving(server, Path(folder) / part, with_worker=False) as service:
                    for name, attack in ATTACKS[part](service):
                        seen = _watched(service, attack)
                        figures.append(_figure(part, name, seen))
                        _print(figures[-1])
        finally:
            server.destroy()
            if given.json is not None:
                given.json.write_bytes(orjson.dumps(figures, option=orjson.OPT_INDENT_2))
    return int(any(figure["verdict"] == "missed" for figure in figures))


def _figure(part: str, name: str, seen: AttackResult) -> dict[str, Any]:
    """The limits of an attack, what was measured, and the verdict. A file of everything streams: it may take as long as it has rows."""
    asked = {} if STREAM in name else {"answer_s": ANSWER_S[part]}
    if part != "connections":  # of which only the uploads beside them are asked
        asked |= {"health_ms": HEALTH_MS, "grown_mib": GROWN_MIB}
    measured = {
        "answer_s": max(seconds for _, seconds in seen.answers),
        "health_ms": 1000 * max(seen.health_s),
        "grown_mib": seen.grown / MIB,
    }
    return {
        "part": part,
        "attack": name,
        "asked": asked,
        "measured": measured,
        "health_median_ms": 1000 * statistics.median(seen.health_s),
        "statuses": sorted({status for status, _ in seen.answers}),
        "verdict": "missed" if any(measured[limit] > most for limit, most in asked.items()) else "reached",
    }


def _print(figure: dict[str, Any]) -> None:
    measured = figure["measured"]
    print(
        f"{figure['attack']:64} {measured['answer_s']:6.2f} s {figure['statuses']} | /healthz {measured['health_ms']:6.1f} ms "
        f"(middle {figure['health_median_ms']:.1f}) | +{measured['grown_mib']:5.0f} MiB {figure['verdict']}",
        flush=True,
    )


Attack = Callable[[Service], list[tuple[int, float]]]


def _watched(service: Service, attack: Attack) -> AttackResult:
    seen = AttackResult()
    with _asking_for_health(service.port) as health, MemoryWatch(service) as memory:
        seen.answers = attack(service)
    seen.health_s = health()
    seen.grown = memory.peak - memory.before
    time.sleep(1)
    return seen


@contextmanager
def _asking_for_health(port: int) -> Iterator[Callable[[], list[float]]]:
    """A process that asks for /healthz until the block ends; its times are there then."""
    done, receiving_end = multiprocessing.Event(), multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=_ask_for_health, args=(port, done, receiving_end[1]), daemon=True)
    process.start()
    receiving_end[0].recv()  # it has begun
    yield lambda: list(receiving_end[0].recv())
    done.set()


def _ask_for_health(port: int, done: Event, told: Any) -> None:
    took: list[float] = []
    with closing(Connection(port, None)) as client:
        client.get("/healthz")
        told.send(None)
        while not done.is_set():
            began = time.perf_counter()
            client.get("/healthz")
            took.append(time.perf_counter() - began)
            time.sleep(0.01)
    told.send(took)


def _send(service: Service, method: str, address: str, body: bytes | None = None) -> tuple[int, float]:
    with closing(Connection(service.port, None if method == "GET" else TOKEN)) as connection:  # who reads is anybody
        answer = connection.send(method, address, body, **_AS_BROWSERS_DO)
    return answer.status, answer.seconds


def _commit(count: int) -> dict[str, Any]:
    """A report of so many cases with two variants each, one case in a hundred failed."""
    return {
        "format": "pullback-report", "version": 1, "id": str(uuid4()), "started_at": "2026-02-01T12:00:00Z",
        "duration_s": 1.0, "project": "attacked",
        "commit": {"sha": SHA, "parents": [], "branch": "main", "title": "A large commit", "dirty": False},
        "machine": {"fingerprint": "f", "name": "box", "facts": {"cpu": "fast"}},
        "harness": {"version": "0.1", "suite": "all", "quality": "clean", "preflight": {}, "job": None},
        "cases": [_case(number) for number in range(count)],
        "comparisons": [],
    }  # fmt: skip


def _case(number: int) -> dict[str, Any]:
    case = {"workload": f"work{number // 200}", "params": {"n": number}, "dtype": "f4", "device": "cpu"}
    if number % 100 == 0:
        return {"case": case, "error": {"kind": "crash", "message": "it ended early"}, "variants": [], "paired": []}
    times = [[1.0, 1.1, 0.9], [0.6, 0.7, 0.5]]
    variants = [
        {
            "variant": name, "kind": "tier",
            "metrics": {
                "time": {"unit": "s", "clock": "cpu", "processes": values},
                "array_bytes": {"unit": "B", "value": 4096.0, "method": "nep49"},
            },
        }
        for name, values in zip(("unfused", "fused"), times, strict=True)
    ]  # fmt: skip
    ratio = {
        "variant": "fused",
        "baseline": "unfused",
        "metric": "time",
        "log_ratio": -0.5,
        "low": -0.51,
        "high": -0.49,
    }
    return {
        "case": case, "gradient": {"ok": True, "max_rel_error": 1e-7, "oracle": "closed form"}, "variants": variants,
        "paired": [{**ratio, "n": 20, "outcome": "faster"}],
    }  # fmt: skip


def _pages(service: Service) -> Iterator[tuple[str, Attack]]:
    """Six of the same page of a large commit at once."""
    report = _two_commits(service)
    for address in _heavy(report["id"]):
        _send(service, "GET", address)  # code and statements are warm
        yield f"{AT_ONCE} x GET {_short(address, report['id'])}", _at_once(address)


def _storing(service: Service) -> Iterator[tuple[str, Attack]]:
    """The same pages, again and again, while a report of as many cases is being stored."""
    report = _two_commits(service)
    addresses = _heavy(report["id"])
    for address in addresses:
        _send(service, "GET", address)
    for number, address in enumerate(addresses):
        commit = {**report["commit"], "sha": f"{number:040x}", "parents": [SHA]}
        body = orjson.dumps({**report, "id": str(uuid4()), "commit": commit})

        def attack(service: Service, address: str = address, body: bytes = body) -> list[tuple[int, float]]:
            found: list[tuple[int, float]] = []
            with ThreadPoolExecutor(1) as uploading:
                stored = uploading.submit(_send, service, "POST", "/api/v1/reports", body)
                while not stored.done():
                    found += _at_once(address)(service)
            if stored.result()[0] != CREATED:
                raise RuntimeError(f"a report of {CASES} cases was answered {stored.result()[0]}")
            return found

        yield f"{AT_ONCE} x GET {_short(address, report['id'])} while storing", attack


def _two_commits(service: Service) -> dict[str, Any]:
    """The report of a large commit of a public project, beside one of the commit after it."""
    report = _commit(CASES)
    after = {**report["commit"], "sha": "b" * 40, "parents": [SHA]}
    for each in (report, {**_commit(CASES), "commit": after}):
        status, took = _send(service, "POST", "/api/v1/reports", orjson.dumps(each))
        print(f"upload of {CASES} cases: {status} after {took:.1f} s")
    _send(service, "PATCH", "/api/v1/projects/attacked", orjson.dumps({"public_read": True}))
    return report


def _heavy(report_id: str) -> list[str]:
    """Addresses of the answers that cost most."""
    here = "/projects/attacked"
    return [
        *(f"{here}/commits/{SHA}{suffix}" for suffix in ("", ".md", ".json", ".csv")),
        *(f"/reports/{report_id}{suffix}" for suffix in ("", ".md", ".json", ".csv")),
        f"/reports/{report_id}?page=100",
        f"{here}/compare?base={SHA}&head={'b' * 40}&metric=time",  # of all metrics there are more results than are compared
        f"{here}/compare.md?base={SHA}&head={'b' * 40}&metric=time&show=all",
        "/?project=attacked",
        "/overview.json?project=attacked",
        f"{here}/workloads/work7",
        f"{here}/explore",
        f"/api/v1/reports/{report_id}",
        f"/api/v1/points?project=attacked{STREAM}",
        "/api/v1/matrix?project=attacked",
        f"/api/v1/comparisons?project=attacked&base={SHA}&head={'b' * 40}",
    ]


def _at_once(address: str) -> Attack:
    def attack(service: Service) -> list[tuple[int, float]]:
        with ThreadPoolExecutor(AT_ONCE) as clients:
            asked = [clients.submit(_send, service, "GET", address) for _ in range(AT_ONCE)]
            return [one.result() for one in asked]

    return attack


def _short(address: str, report_id: str) -> str:
    return address.replace(SHA, "SHA").replace(report_id, "ID").replace("b" * 40, "SHB")


def _bodies(_: Service) -> Iterator[tuple[str, Attack]]:
    """The worst bodies within the limits on bytes and values, and above them."""
    most = LIMIT_BYTES - 1000

    def repeated(begin: bytes, each: bytes, end: bytes, count: int) -> bytes:
        return begin + b",".join([each] * min(count, (most - len(begin) - len(end)) // (len(each) + 1))) + end

    def case_of(count: int, **changes: Any) -> bytes:
        report = _commit(0)
        return orjson.dumps({**report, "cases": [{**_case(number), **changes} for number in range(count)]})

    bodies: dict[str, Callable[[], bytes]] = {
        "gzip of [{},{},...], 63 MB": lambda: gzip.compress(repeated(b"[", b"{}", b"]", most), 9),
        '{"benchmarks":[[],[],...]}, 60 MB': lambda: repeated(b'{"benchmarks":[', b"[]", b"]}", most),
        "a million empty objects": lambda: repeated(b'{"benchmarks":[', b"{}", b"]}", 999_000),
        "a million objects with a member": lambda: repeated(b'{"benchmarks":[', b'{"a":1.5}', b"]}", 999_000),
        "a million objects with three members": lambda: repeated(b'{"benchmarks":[', b'{"a":1.5,"b":2,"c":"x"}', b"]}", 990_000),
        "a million lists of lists": lambda: repeated(b'{"benchmarks":[', b"[[[[1]]]]", b"]}", 249_000),
        "four million numbers": lambda: repeated(b'{"a":[', b"1.2345678", b"]}", 3_999_000),
        "four million numbers and NaN": lambda: repeated(b'{"a":[', b"1", b",NaN]}", 3_990_000),
        "four million strings": lambda: repeated(b'{"a":[', b'"abcdefg"', b"]}", 3_999_000),
        "four million members": lambda: b"{" + b",".join(b'"k%d":1' % n for n in range(3_900_000)) + b"}",
        "one string": lambda: b'{"a":"' + b"x" * most + b'"}',
        "one string with an emoji": lambda: b'{"a":"' + b"x" * (most - 10) + "😀".encode() + b'"}',
        "a report whose title has an emoji": lambda: orjson.dumps(
            {**_commit(1), "commit": {**_commit(0)["commit"], "title": "x" * (most - 10_000) + "😀"}}
        ),
        "UTF-16 of 60 MB": lambda: '{"a":"'.encode("utf-16") + ("x" * (most // 2 - 100)).encode("utf-16-le") + '"}'.encode("utf-16-le"),
        "20,000 cases": lambda: case_of(CASES),
        "20,000 cases of ten variants": lambda: case_of(
            CASES, paired=[], variants=[{"variant": f"v{n}", "kind": "external", "metrics": {"t": {"unit": "s", "value": 1.0}}} for n in range(10)]
        ),
        "20,000 cases, one misspelt at the end": lambda: case_of(CASES)[:-200] + b'"' + case_of(CASES)[-199:],
        "a case of 3.9 million values": lambda: case_of(
            1, paired=[], variants=[{"variant": "v", "kind": "external", "metrics": {"t": {"unit": "s", "processes": [1.5] * 10_000, "slices": [[1.5] * 390] * 10_000}}}]
        ),
        "pytest-benchmark of 20,000": lambda: orjson.dumps(
            {"machine_info": {}, "commit_info": {}, "datetime": "2026-02-01T12:00:00", "version": "4", "benchmarks": [
                {"group": None, "name": f"t{n}", "fullname": f"t::{n}", "params": None, "param": None, "extra_info": {}, "options": {},
                 "stats": {"data": [1.0] * 50, "rounds": 50, "min": 1.0, "max": 1.0, "mean": 1.0, "median": 1.0}} for n in range(CASES)]}
        ),
    }  # fmt: skip
    query = f"?project=bodies&commit={SHA}&branch=main&machine=ci"
    for name, made in bodies.items():
        body = made()

        def attack(service: Service, body: bytes = body) -> list[tuple[int, float]]:
            asked = "" if body.startswith(b'{"format"') else query
            return [_send(service, "POST", f"/api/v1/reports{asked}", body)]

        yield f"{name} ({len(body) / 1e6:.1f} MB sent)", attack


def _opened(port: int) -> socket.socket:
    """A connection that holds little of what nobody reads, so that the other end has to wait."""
    opened = socket.socket()
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    opened.connect(("127.0.0.1", port))
    return opened


def _answered(opened: socket.socket) -> str:
    """The status that came by a connection."""
    opened.setblocking(False)
    try:
        return opened.recv(12).removeprefix(b"HTTP/1.1 ").decode() or "closed"
    except BlockingIOError:
        return "nothing yet"
    except OSError:
        return "closed"


def _connections(service: Service) -> Iterator[tuple[str, Attack]]:
    """Connections that take places: what is measured is an upload beside them."""
    _send(service, "POST", "/api/v1/reports", orjson.dumps(_commit(READ_CASES)))
    report = orjson.dumps(_commit(1))

    def beside(head: bytes, count: int) -> Attack:
        def attack(service: Service) -> list[tuple[int, float]]:
            opened = [_opened(service.port) for _ in range(count)]
            for one in opened:
                one.sendall(head)
            found = [_send(service, "POST", "/api/v1/reports", report) for _ in range(5)]
            time.sleep(SETTLING_S)
            found += [_send(service, "POST", "/api/v1/reports", report) for _ in range(5)]
            print(f"of the {count} connections: {dict(Counter(map(_answered, opened)))}")
            for one in opened:
                one.close()
            return found

        return attack

    yield "1,100 half-sent requests", beside(b"GET /healthz HTTP/1.1\r\nHost: a\r\n", 1_100)
    reader = (
        f"GET /api/v1/points?project=attacked&format=csv HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    )
    yield "1,000 slow readers", beside(reader.encode(), 1_000)

    def ready(service: Service) -> list[tuple[int, float]]:
        done, asking = multiprocessing.Event(), multiprocessing.Event()
        process = multiprocessing.Process(target=_probe, args=(service.port, asking, done), daemon=True)
        process.start()
        asking.wait(60)
        try:
            return [_send(service, "POST", "/api/v1/reports", report) for _ in range(10)]
        finally:
            done.set()
            process.join()

    yield f"{PROBES} clients on /readyz", ready


def _probe(port: int, asking: Event, done: Event) -> None:
    """Ask for /readyz by many clients at once and all the time, each time by another connection."""

    def ask() -> None:
        while not done.is_set():
            with closing(Connection(port, None)) as connection:
                connection.get("/readyz")
            asking.set()

    with ThreadPoolExecutor(PROBES) as clients:
        for one in [clients.submit(ask) for _ in range(PROBES)]:
            one.result()


ATTACKS: dict[str, Callable[[Service], Iterator[tuple[str, Attack]]]] = {
    "pages": _pages,
    "storing": _storing,
    "bodies": _bodies,
    "connections": _connections,
}

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that what was started is ended
    sys.exit(main())
