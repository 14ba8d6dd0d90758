"""Questions: every list of series, points, comparisons and commits, and the matrix, with random parameters."""

import asyncio
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from urllib.parse import quote

from benchmarks.service_load import shape
from benchmarks.service_load.processes import Service
from benchmarks.service_load.thresholds import Figure, Percentiles
from benchmarks.service_load.turns import ask_in_turns

from pullback_service.database import Database
from pullback_service.ids import ProjectId
from pullback_service.process_memory import FULL_AT_LATEST, collect_seldom
from pullback_service.projects.queries import project_by_name
from pullback_service.roles import ALL_PROJECTS
from pullback_service.series.queries import latest_matrix

API = "/api/v1"


@dataclass(frozen=True, slots=True)
class DatabaseContents:
    """Contents of the database, to choose parameters from."""

    commits: int
    series: Sequence[int]

    def sha(self, chance: random.Random) -> str:
        """Any commit."""
        return shape.sha_of(chance.randrange(self.commits))


Question = Callable[[DatabaseContents, random.Random], str]


def _any_case(chance: random.Random) -> shape.LoadedCase:
    return chance.choice(shape.load_cases())


def _points(known: DatabaseContents, chance: random.Random) -> str:
    return f"{API}/series/{chance.choice(known.series)}/points"


def _between(known: DatabaseContents, chance: random.Random) -> str:
    first = chance.randrange(known.commits)
    start, end = shape.authored_at(first), shape.authored_at(first + 300)
    return f"start={quote(start.isoformat())}&end={quote(end.isoformat())}&limit=100"


def _window(known: DatabaseContents, chance: random.Random) -> str:
    return f"{_points(known, chance)}?{_between(known, chance)}"


def _compared(known: DatabaseContents, chance: random.Random) -> str:
    base, head = chance.sample(range(known.commits), 2)
    return f"{API}/comparisons?project={shape.PROJECT}&base={shape.sha_of(base)}&head={shape.sha_of(head)}"


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
    "series that do not exist": lambda _, chance: f"{API}/series?project={shape.PROJECT}&workload=no{chance.random()}",
    "points of a series, oldest": lambda known, chance: f"{_points(known, chance)}?limit=100",
    "points of a series in a window": _window,
    "points of a series, 1000 at once": lambda known, chance: f"{_points(known, chance)}?limit=1000",
    "counts of series by dimension": lambda _, __: f"{API}/series/facets?project={shape.PROJECT}",
    "counts of series, narrowed": lambda _, chance: (
        f"{API}/series/facets?project={shape.PROJECT}&workload={_any_case(chance).workload}&metric=time&param.n=32"
    ),
    "series measured on a branch": lambda _, chance: (
        f"{API}/series?project={shape.PROJECT}&branch={shape.BRANCH}&metric={chance.choice(shape.METRICS).name}"
    ),
    "points of many series in a window": lambda known, chance: (
        f"{API}/points?project={shape.PROJECT}&workload={_any_case(chance).workload}&metric=time&{_between(known, chance)}"
    ),
    "a series thinned to 200 marks": lambda known, chance: f"{_points(known, chance)}?marks=200&last=2000",
    "two commits": lambda known, chance: f"{_compared(known, chance)}&limit=100",
    "two commits on a machine": lambda known, chance: (
        f"{_compared(known, chance)}&machine={chance.choice(shape.MACHINES)}&limit=100"
    ),
    "two commits in one metric": lambda known, chance: (
        f"{_compared(known, chance)}&metric={chance.choice(shape.METRICS).name}&limit=100"
    ),
    "a branch's newest commit against its parent": lambda _, __: (
        f"{API}/comparisons?project={shape.PROJECT}&head={shape.BRANCH}&limit=100"
    ),
    "matrix, five workloads": lambda _, chance: (
        f"{API}/matrix?project={shape.PROJECT}&machine={chance.choice(shape.MACHINES)}&limit=5"
    ),
    "matrix, one metric": lambda _, chance: (
        f"{API}/matrix?project={shape.PROJECT}&metric={chance.choice(shape.METRICS).name}&limit=5"
    ),
    "matrix on a branch": lambda _, chance: (
        f"{API}/matrix?project={shape.PROJECT}&metric=time&branch={shape.BRANCH}"
        f"&machine={chance.choice(shape.MACHINES)}&limit=5"
    ),
    "branches of a project": lambda _, __: f"{API}/branches?project={shape.PROJECT}",
    "commits of a project": lambda _, chance: f"{API}/commits?project={shape.PROJECT}&limit={chance.choice((20, 100))}",
    "commits of a branch": lambda _, __: f"{API}/commits?project={shape.PROJECT}&branch={shape.BRANCH}&limit=100",
    "merge base of two commits": lambda known, chance: (
        f"{API}/merge-base?project={shape.PROJECT}&one={known.sha(chance)}&other={known.sha(chance)}"
    ),
    "reports of a project": lambda _, chance: f"{API}/reports?project={shape.PROJECT}&limit={chance.choice((20, 100))}",
    "reports of a commit": lambda known, chance: f"{API}/reports?project={shape.PROJECT}&commit={known.sha(chance)}",
    "machines": lambda _, __: f"{API}/machines",
}


_LESS_MS = {"two commits": 35, "a branch's newest commit against its parent": 40}


def ask_everything(service: Service, known: DatabaseContents) -> Iterator[Figure]:
    """Every question, all of them in turns."""
    questions = {name: partial(ask, known) for name, ask in QUESTIONS.items()}
    yield from ask_in_turns(service, questions, most_ms=50, but=_LESS_MS)


def ask_matrix(url: str, *, times: int = 30, most_ms: float = 150) -> Iterator[Figure]:
    """The newest state of all series of a project, as a function of the service."""
    seconds, cpu_s, cells = asyncio.run(_time_matrix(url, times))
    found = Percentiles.of(seconds[1:])
    yield Figure(
        "overview matrix (query)", found.p95, "ms", most=most_ms,
        note=f"{cells} cells; p50 {found.p50} ms, cold {1000 * seconds[0]:.0f} ms, CPU in Python {1000 * cpu_s:.0f} ms",
    )  # fmt: skip


async def _time_matrix(url: str, times: int) -> tuple[list[float], float, int]:
    collect_seldom(full_after=FULL_AT_LATEST)  # as a process of the service does
    database = Database(url).seeing(ALL_PROJECTS)
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
