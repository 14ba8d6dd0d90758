"""Addresses asked for in turns, so that none finds only what the one before left in memory."""

import random
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from benchmarks.service_load import shape
from benchmarks.service_load.calling import Answer, Connection
from benchmarks.service_load.processes import ProcessorSeconds, Service
from benchmarks.service_load.thresholds import Figure, Percentiles

ASKED_FOR_CPU = 20
LONGEST_S = 30.0
"""An address that has taken this long in all is asked for no more: a slow one is known as such by then."""

Address = Callable[[random.Random], str]


def ask_in_turns(
    service: Service,
    addresses: Mapping[str, Address],
    *,
    most_ms: float,
    but: Mapping[str, float] = MappingProxyType({}),
    times: int = 60,
) -> Iterator[Figure]:
    """Response times of the addresses in turns, with random parameters, and the processor time they take.

    Asked for are `most_ms`, of some addresses other times.
    """
    chance = random.Random(shape.SEED)  # noqa: S311 - parameters, the same ones every time
    connection = service.connect()
    first: dict[str, float] = {}
    took: dict[str, list[float]] = {name: [] for name in addresses}
    sizes: dict[str, int] = {}
    for turn in range(times + 1):
        for name, address in addresses.items():
            if sum(took[name]) > LONGEST_S:
                continue
            answer = _asked(connection, address(chance))
            sizes[name] = max(len(answer.body), sizes.get(name, 0))
            if turn:
                took[name].append(answer.seconds)
            else:
                first[name] = answer.seconds
    used = {name: _cpu_of(service, connection, address, chance) for name, address in addresses.items()}
    connection.close()
    for name, seconds in took.items():
        found = Percentiles.of(seconds)
        cpu = f"CPU of service {used[name].service:.1f} ms, Postgres {used[name].postgres:.1f} ms"
        yield Figure(
            name, found.p95, "ms", most=but.get(name, most_ms), details={"n": found.n, "bytes": sizes[name]},
            note=f"p50 {found.p50} ms, p99 {found.p99} ms, cold {1000 * first[name]:.0f} ms; {cpu}; "
            f"{sizes[name] / 1000:.0f} kB",
        )  # fmt: skip


def _asked(connection: Connection, path: str) -> Answer:
    answer = connection.get(path)
    if answer.status != 200:
        raise RuntimeError(f"{path} was answered with {answer.status}: {answer.body[:500]!r}")
    return answer


def _cpu_of(service: Service, connection: Connection, address: Address, chance: random.Random) -> ProcessorSeconds:
    """Milliseconds of processors that one asking takes, which a busy machine does not change much."""
    before = service.cpu_s()
    for _ in range(ASKED_FOR_CPU):
        _asked(connection, address(chance))
    used = service.cpu_s().since(before)
    each = 1000 / ASKED_FOR_CPU
    return ProcessorSeconds(each * used.service, each * used.worker, each * used.postgres)
