"""What is told of projects whose changes are known: real API, real worker, real Postgres, and agents that answer by the truth.

In each seed a project of two machines has thirty events that ask for an incident and fifteen that accuse no commit; another one has small
steps, and a third ranges of 64 commits to bisect. Noise is that of recorded sessions in which a commit was compared with itself. Nothing is
timed, so a busy machine gives the same figures.
"""

import argparse
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psycopg
from benchmarks.incidents import bisections
from benchmarks.incidents.counting import Counts, Incident, count
from benchmarks.incidents.living import Life
from benchmarks.incidents.noise import Noise, record
from benchmarks.incidents.planting import plant, plant_small
from benchmarks.incidents.tables import table
from benchmarks.incidents.truth import Truth
from benchmarks.service_load.processes import Service, serving

from pullback_service import migrations
from pullback_service.postgres import EmbeddedPostgres

PAGE = Path(__file__).parents[2] / "docs" / "detection.md"
MARKS = ("<!-- made by benchmarks.incidents: begin -->", "<!-- made by benchmarks.incidents: end -->")
FORGETFUL = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
QUICK = {"series": 64, "commits": 110, "small_commits": 0, "ranges": 4}

EXAMPLES = """examples:
  python -m benchmarks.incidents --quick                        one small seed, a minute of a processor
  python -m benchmarks.incidents --seeds 0 --explain            one whole seed, and what was not as it should be
  python -m benchmarks.incidents --seeds 5 6 7 8 9 --keep counts.json --write       for docs/detection.md
  python -m benchmarks.incidents --record 10 --case dense_bias_act                  more sessions of noise, of this machine
"""


def main(arguments: list[str] | None = None) -> int:
    """Let projects live, print and keep."""
    options = _parser().parse_args(arguments)
    if options.record:
        record(options.record, options.case)
        return 0
    known = kept(options.keep)
    sizes = QUICK if options.quick else {name: getattr(options, name) for name in QUICK}
    missing = [seed for seed in options.seeds if seed not in known]
    if missing:
        with _service(options.folder) as (service, database):
            for seed in missing:
                known[seed] = measure(service, database, seed, **sizes)
                if options.keep:
                    options.keep.write_text(json.dumps({each: asdict(known[each]) for each in known}, indent=1))
    total = Counts()
    for seed in options.seeds:
        total.add(known[seed])
    text = "\n".join(table(total, options.seeds))
    print(text)
    if options.explain:
        print("", *total.problems, sep="\n")
    if options.write:
        begin, end = MARKS
        pattern = f"{re.escape(begin)}.*?{re.escape(end)}"
        PAGE.write_text(re.sub(pattern, lambda _: f"{begin}\n\n{text}\n\n{end}", PAGE.read_text(), flags=re.DOTALL))
    return 0


def kept(file: Path | None) -> dict[int, Counts]:
    """The counts of the seeds that a file keeps."""
    stored = json.loads(file.read_text()) if file is not None and file.exists() else {}
    return {int(seed): Counts(**counts) for seed, counts in stored.items()}


@contextmanager
def _service(folder: Path | None) -> Iterator[tuple[Service, "psycopg.Connection[Any]"]]:
    """A service and a worker on a Postgres of their own, which is gone afterwards unless a folder was named."""
    with tempfile.TemporaryDirectory(prefix="pullback-incidents-") as scratch:
        Path(scratch).chmod(0o755)  # Postgres has an account of its own where root runs this
        server = EmbeddedPostgres((folder or Path(scratch)) / "postgres", settings=FORGETFUL)
        url = server.start()
        try:
            migrations.upgrade(url)
            with (
                serving(server, (folder or Path(scratch)) / "processes") as service,
                psycopg.connect(url, autocommit=True) as database,
            ):
                yield service, database
        finally:
            server.stop()


def measure(
    service: Service,
    database: "psycopg.Connection[Any]",
    seed: int,
    *,
    series: int,
    commits: int,
    small_commits: int,
    ranges: int,
) -> Counts:
    """One seed."""
    counts = Counts()
    projects = {"incidents": plant(seed, series=series, commits=commits)}
    if small_commits:
        projects["small"] = plant_small(seed, commits=small_commits)
    for name, truth in projects.items():
        _live(service, database, f"{name}-{seed}", truth, counts)
    bisections.bisect(service, database, seed, ranges, counts)
    return counts


def _live(service: Service, database: "psycopg.Connection[Any]", project: str, truth: Truth, counts: Counts) -> None:
    began = time.monotonic()
    life = Life(service.connect(), database, project, truth, Noise(project))
    for done in life.live():
        if done % 20 == 0 or done == truth.commits:
            seconds = time.monotonic() - began
            print(f"{project}: {done} of {truth.commits} commits, {life.jobs} jobs, {seconds:.0f} s", file=sys.stderr)
    counts.jobs += life.jobs
    counts.observations += truth.series * truth.commits * truth.machines
    listed = life.get_all(f"/api/v1/incidents?project={project}&limit=100")
    details = [life.get(each["url"]) for each in listed if each["state"] != "merged"]
    count(truth, [Incident.of(detail, truth, life.places) for detail in details], counts)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.incidents",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="small projects, a minute of a processor")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], metavar="N", help="(0); 0 to 4 are for developing")
    parser.add_argument("--series", type=int, default=200, metavar="N", help="series on each of two machines (200)")
    parser.add_argument("--commits", type=int, default=300, metavar="N", help="(300); events are planted in proportion")
    parser.add_argument(
        "--small-commits", type=int, default=300, metavar="N", help="of the project of small steps (300)"
    )
    parser.add_argument("--ranges", type=int, default=20, metavar="N", help="ranges of 64 commits to bisect (20)")
    parser.add_argument("--explain", action="store_true", help="list what was not as it should be")
    parser.add_argument(
        "--keep", type=Path, metavar="FILE", help="keep the counts of each seed; those in it are not measured again"
    )
    parser.add_argument("--folder", type=Path, help="where the database lies, and stays")
    parser.add_argument(
        "--record", type=int, default=0, metavar="N", help="compare HEAD with itself so many times instead"
    )
    parser.add_argument("--case", action="append", default=[], help="case to record; may be repeated")
    parser.add_argument("--write", action="store_true", help="put the table into docs/detection.md")
    return parser


if __name__ == "__main__":
    sys.exit(main())
