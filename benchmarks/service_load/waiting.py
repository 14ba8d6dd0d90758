"""Agents that wait for work: what it costs to have them, and how soon one of them has a job that appears."""

import asyncio
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson
from benchmarks.service_load import shape
from benchmarks.service_load.processes import TOKEN, Service
from benchmarks.service_load.thresholds import Figure, Percentiles

AGENTS = 200
WAIT_S = 30
LONG_POLL_TIMEOUT_S = WAIT_S + 15


def wait_for_work(service: Service, *, idle_s: float = 20.0, jobs: int = 60) -> Iterator[Figure]:
    """200 agents on 200 machines: idle for a while, then a job that only one of them may take, again and again."""
    yield from asyncio.run(_Fleet(service).measure(idle_s, jobs))


class _ClaimTimes(NamedTuple):
    """Seconds until the answer to a claim, since its job was sent and since it was acknowledged."""

    sent_s: float
    appeared_s: float


class _Fleet:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._run = time.time_ns()
        self._given: dict[int, float] = {}
        self._arrived = asyncio.Event()

    async def measure(self, idle_s: float, jobs: int) -> list[Figure]:
        agents = [await self._enroll(number) for number in range(AGENTS)]
        tasks = [asyncio.create_task(self._agent(agent)) for agent in agents]
        try:
            await asyncio.sleep(3)  # all of them wait by now
            before = self._service.cpu_s()
            await asyncio.sleep(idle_s)
            idle = self._service.cpu_s().since(before)
            narrow = [await self._claimed_after(self._only(number)) for number in self._spread(jobs)]
            wide = [await self._claimed_after({"fleet": str(self._run)}) for _ in range(jobs)]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        share = 100 * (idle.service + idle.postgres) / idle_s
        of_one, of_any = (Percentiles.of([claimed.appeared_s for claimed in of]) for of in (narrow, wide))
        sent_one, sent_any = (Percentiles.of([claimed.sent_s for claimed in of]) for of in (narrow, wide))
        return [
            Figure(
                "200 idle agents, CPU of service and Postgres", share, "%", most=5,
                note=f"of one core: service {100 * idle.service / idle_s:.2f}, Postgres {100 * idle.postgres / idle_s:.2f}, "
                f"and the worker {100 * idle.worker / idle_s:.2f} %",
            ),
            Figure(
                "… a job for one agent is claimed, p95", of_one.p95, "ms", most=30,
                note=f"since it was acknowledged: p50 {of_one.p50} ms, longest {of_one.most} ms; since it was sent: "
                f"p50 {sent_one.p50}, p95 {sent_one.p95} ms",
            ),
            Figure(
                "… a job for any agent is claimed, p95", of_any.p95, "ms", most=30,
                note=f"since it was acknowledged: p50 {of_any.p50} ms, longest {of_any.most} ms; since it was sent: "
                f"p50 {sent_any.p50}, p95 {sent_any.p95} ms",
            ),
        ]  # fmt: skip

    def _spread(self, jobs: int) -> list[int]:
        return [(37 * number) % AGENTS for number in range(jobs)]

    def _only(self, number: int) -> dict[str, str]:
        return {"fleet": str(self._run), "agent": str(number)}

    async def _enroll(self, number: int) -> int:
        machine = {"fingerprint": f"agent {number} of {self._run}", "name": f"agent-{number}", "facts": {}}
        body = {"name": "agent", "machine": machine, "labels": self._only(number)}
        _, answer = await _call(self._service.port, "POST", "/api/v1/agents/enroll", body)
        return int(answer["agent_id"])

    async def _agent(self, agent: int) -> None:
        """Claim, end what was claimed at once, claim again, on one connection as an agent has it."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._service.port)
        try:
            while True:
                status, claim = await _exchange(
                    reader, writer, "POST", f"/api/v1/agents/{agent}/claim", {"wait_s": WAIT_S}
                )
                if status != 200:
                    continue
                self._given[int(claim["job"]["id"])] = time.perf_counter()
                self._arrived.set()
                failed = {
                    "lease_token": claim["lease_token"],
                    "kind": "workload",
                    "message": "no more",
                    "retryable": False,
                }
                path = f"/api/v1/jobs/{claim['job']['id']}/attempts/{claim['attempt']}/fail"
                await _exchange(reader, writer, "POST", path, failed)
        finally:
            writer.close()

    async def _claimed_after(self, requires: dict[str, str]) -> _ClaimTimes:
        job = {
            "project": f"fleet-{self._run}",
            "commit": {"sha": shape.sha_of(0), "parents": [], "branch": "main", "authored_at": "2026-01-01T00:00:00Z"},
            "suite": "quick",
            "requires": requires,
        }
        sent = time.perf_counter()
        _, made = await _call(self._service.port, "POST", "/api/v1/jobs?force=true", job)
        appeared = time.perf_counter()
        while int(made["id"]) not in self._given:
            self._arrived.clear()
            await asyncio.wait_for(self._arrived.wait(), 30)
        at = self._given[int(made["id"])]
        await asyncio.sleep(0.15)  # agents that were woken in vain wait again, as they would between real jobs
        # The claim may be answered before the one who queued the job has heard that it is.
        return _ClaimTimes(at - sent, max(0.0, at - appeared))


async def _call(port: int, method: str, path: str, body: object) -> tuple[int, Any]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        return await _exchange(reader, writer, method, path, body)
    finally:
        writer.close()


async def _exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, method: str, path: str, body: object
) -> tuple[int, Any]:
    """One request of HTTP/1.1 by hand: 200 connections in one process that is to cost nothing."""
    content = orjson.dumps(body)
    writer.write(
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n".encode()
        + content
    )
    async with asyncio.timeout(LONG_POLL_TIMEOUT_S):
        head = await reader.readuntil(b"\r\n\r\n")
        status = int(head.split(b" ", 2)[1])
        lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        length = int(lengths[0].split(b":")[1]) if lengths else 0
        answer = await reader.readexactly(length) if length else b""
    if status >= 400:
        raise RuntimeError(f"{method} {path} was answered with {status}: {answer[:500]!r}")
    return status, orjson.loads(answer) if answer else None
