"""Questions: every list of series, points and comparisons, and the overview, with random parameters."""

import asyncio
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from benchmarks.service_load import shape
from benchmarks.service_load.calling import Connection
from benchmarks.service_load.figures import Figure, Percentiles
from benchmarks.service_load.processes import Service, Used

from pullback_service.database import Database
from pullback_service.ids import ProjectId
from pullback_service.projects.queries import project_by_name
from pullback_service.series.queries import latest_matrix

API = "/api/v1"
ASKED_FOR_CPU = 20


@dataclass(frozen=True, slots=True)
class Known:
    """What is in the database, to choose parameters from."""

    commits: int
    series: Sequence[int]

    def sha(self, chance: random.Random) -> str:
        """Any commit."""
        return shape.sha_of(chance.randrange(self.commits))


Question = Callable[[Known, random.Random], str]


def _any_case(chance: random.Random) -> shape.LoadedCase:
    return chance.choice(shape.load_cases())


def _points(known: Known, chance: random.Random) -> str:
    return f"{API}/series/{chance.choice(known.series)}/points"


def _window(known: Known, chance: random.Random) -> str:
    first = chance.randrange(known.commits)
    start, end = shape.authored_at(first), shape.authored_at(first + 300)
    return f"{_points(known, chance)}?start={quote(start.isoformat())}&end={quote(end.isoformat())}&limit=100"


QUESTIONS: dict[str, Question] = {
    "series of a project": lambda _, chance: f"{API}/series?project={shape.PROJECT}&limit={chance.choice((20, 100))}",
    "series of a workload": lambda _, chance: (
        f"{API}/series?project={shape.PROJECT}&workload={_any_case(chance).workload}"
    ),
    "series of a case": lambda _, chance: f"{API}/series?project={shape.PROJECT}&case={quote(_any_case(chance).label)}",
    "series of a machine": lambda _, chance: (
        f"{API}/series?machine={chance.choice(shape.MACHINES)}&metric={chance.choice(shape.METRICS).name}"
    ),
    "series of a variant": lambda _, chance: (
        f"{API}/series?project={shape.PROJECT}&variant={chance.choice(shape.VARIANTS)[0]}&dtype=f4&device=cpu"
    ),
    "series that there are not": lambda _, chance: f"{API}/series?project={shape.PROJECT}&workload=no{chance.random()}",
    "points of a series, oldest": lambda known, chance: f"{_points(known, chance)}?limit=100",
    "points of a series in a window": _window,
    "points of a series, 1000 at once": lambda known, chance: f"{_points(known, chance)}?limit=1000",
    "commits of a project": lambda _, chance: f"{API}/commits?project={shape.PROJECT}&limit={chance.choice((20, 100))}",
    "commits of a branch": lambda _, __: f"{API}/commits?project={shape.PROJECT}&branch={shape.BRANCH}&limit=100",
    "reports of a project": lambda _, chance: f"{API}/reports?project={shape.PROJECT}&limit={chance.choice((20, 100))}",
    "reports of a commit": lambda known, chance: f"{API}/reports?project={shape.PROJECT}&commit={known.sha(chance)}",
}


def ask_everything(service: Service, known: Known, *, times: int = 60, most_ms: float = 50) -> Iterator[Figure]:
    """Every question, in turns so that none finds only what the one before left in memory."""
    chance = random.Random(shape.SEED)  # noqa: S311 - parameters, the same ones every time
    connection = service.connect()
    first: dict[str, float] = {}
    took: dict[str, list[float]] = {name: [] for name in QUESTIONS}
    for turn in range(times + 1):
        for name, question in QUESTIONS.items():
            path = question(known, chance)
            answer = connection.get(path)
            if answer.status != 200:
                raise RuntimeError(f"{path} was answered with {answer.status}: {answer.body[:500]!r}")
            if turn:
                took[name].append(answer.seconds)
            else:
                first[name] = answer.seconds
    used = {name: _cpu_of(service, connection, question, known, chance) for name, question in QUESTIONS.items()}
    connection.close()
    for name, seconds in took.items():
        found = Percentiles.of(seconds)
        cpu = f"CPU of service {used[name].service:.1f} ms, Postgres {used[name].postgres:.1f} ms"
        yield Figure(
            name, found.p95, "ms", most=most_ms,
            note=f"p50 {found.p50} ms, p99 {found.p99} ms, cold {1000 * first[name]:.0f} ms; {cpu}", details={"n": found.n},
        )  # fmt: skip


def _cpu_of(service: Service, connection: Connection, question: Question, known: Known, chance: random.Random) -> Used:
    """Milliseconds of processors that one asking takes, which a busy machine does not change much."""
    before = service.cpu_s()
    for _ in range(ASKED_FOR_CPU):
        connection.get(question(known, chance))
    used = service.cpu_s().since(before)
    each = 1000 / ASKED_FOR_CPU
    return Used(each * used.service, each * used.worker, each * used.postgres)


def ask_matrix(url: str, *, times: int = 30, most_ms: float = 150) -> Iterator[Figure]:
    """The newest state of all series of a project, as a function of the service."""
    seconds, cpu_s, cells = asyncio.run(_time_matrix(url, times))
    found = Percentiles.of(seconds[1:])
    yield Figure(
        "overview matrix (query)", found.p95, "ms", most=most_ms,
        note=f"{cells} cells; p50 {found.p50} ms, cold {1000 * seconds[0]:.0f} ms, CPU in Python {1000 * cpu_s:.0f} ms",
    )  # fmt: skip


async def _time_matrix(url: str, times: int) -> tuple[list[float], float, int]:
    database = Database(url)
    seconds, cells = [], 0
    try:
        async with database.reading() as session:
            project = ProjectId((await project_by_name(session, shape.PROJECT)).id)
        cpu = time.process_time()
        for _ in range(times + 1):
            async with database.reading() as session:
                began = time.perf_counter()
                cells = len((await latest_matrix(session, project)).cells)
                seconds.append(time.perf_counter() - began)
        return seconds, (time.process_time() - cpu) / (times + 1), cells
    finally:
        await database.close()


def ask_pages(service: Service, *, times: int = 20, most_ms: float = 150) -> Iterator[Figure]:
    """The overview page itself, and its JSON twin."""
    connection = service.connect()
    for name, path in (("overview page", "/"), ("overview page, JSON", "/overview.json")):
        seconds, size = [], 0
        for _ in range(times + 1):
            answer = connection.get(f"{path}?project={shape.PROJECT}")
            if answer.status != 200:
                raise RuntimeError(f"{path} was answered with {answer.status}: {answer.body[:500]!r}")
            seconds.append(answer.seconds)
            size = len(answer.body)
            if sum(seconds) > 60:
                break
        found = Percentiles.of(seconds[1:] or seconds)
        yield Figure(
            name, found.p95, "ms", most=most_ms,
            note=f"{size / 1000:.0f} kB; p50 {found.p50} ms, cold {1000 * seconds[0]:.0f} ms",
        )  # fmt: skip
    connection.close()
