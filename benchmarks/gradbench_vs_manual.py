"""Our GradBench tool against `manual`, GradBench's hand-written C++: every answer judged by GradBench, every derivative timed.

    python -m benchmarks.gradbench_vs_manual ~/gradbench --python ~/gradbench/.venv/bin/python

The first argument is a folder with GradBench's repository. Its evals run as they are: this program stands between an eval and
our tool, so sizes, seeds, inputs and verdicts are GradBench's. In between it gives the same input to `manual`'s binary and to
our tool in turns, and keeps the least time of each turn; a ratio is the median over turns of manual's time over ours. Both
answer on one thread of one CPU. Evals that `manual` lacks (particle, saddle) are judged, not compared.

What is needed: g++, make, nlohmann's json.hpp (`make -C cpp` in the checkout fetches it, or `--include` says where it is), and
a Python with numpy, scipy, pydantic and dataclasses-json for the evals. `evals/lstm/data/lstm_full.txt` is no part of the
repository: an eval whose data are missing is named and left out.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "docs" / "gradbench.md"
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"

EVALS = {
    "hello": ("hello", []),
    "gmm": ("gmm", []),
    "ba": ("ba", []),
    "ht": ("ht", ["--max", "11"]),
    "ht simple small": ("ht", ["--variant", "simple", "--model", "small", "--max", "11"]),
    "lstm": ("lstm", []),
    "kmeans": ("kmeans", []),
    "llsq": ("llsq", []),
    "lse": ("lse", []),
    "ode": ("ode", []),
    "det": ("det", []),
    "particle": ("particle", []),
    "saddle": ("saddle", []),
}
"""Every eval at its default sizes; the twelfth hand is too large for the repository's own mirrors, so eleven."""

DERIVATIVES = {"jacobian", "gradient", "dir", "double"}
LACKING = {"particle", "saddle"}


@dataclass
class Row:
    """One evaluate message: who was right, and how long each took, in seconds."""

    title: str
    function: str
    workload: str
    valid: bool
    ours: list[float]
    manual: list[float]
    answered_s: float

    @property
    def ratio(self) -> float | None:
        """Manual's time over ours, in the middle of the turns."""
        pairs = zip(self.ours, self.manual, strict=False)
        ratios = [theirs / our for our, theirs in pairs]
        return statistics.median(ratios) if ratios else None


class Lines:
    """A process that answers line by line."""

    def __init__(self, command: list[str], **options: Any) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options)  # noqa: S603

    def ask(self, message: Any) -> Any:
        """Send a message, wait for its answer."""
        self.send(message)
        return self.read()

    def send(self, message: Any) -> None:
        """Send a line."""
        assert self.process.stdin is not None  # noqa: S101 - it was asked for
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def read(self) -> Any:
        """The next line, or None where there is none."""
        assert self.process.stdout is not None  # noqa: S101 - as above
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def end(self) -> None:
        """Close both ends and wait."""
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None  # noqa: S101 - as above
            stream.close()
        self.process.wait()


def main() -> int:
    """Run the evals; exit status 1 says that an answer was not valid."""
    options = _options()
    checkout: Path = options.checkout.resolve()
    chosen = [name for name in EVALS if not options.evals or name in options.evals]
    if options.json is not None and options.json.exists():
        kept: dict[str, Any] = json.loads(options.json.read_text())
    else:
        kept = {"rows": {}}
    if options.rounds:
        _build(checkout, sorted({EVALS[name][0] for name in chosen} - LACKING), options.include)
        for name in chosen:
            print(name, flush=True)
            kept["rows"][name] = [asdict(row) for row in _conversation(name, checkout, options)]
            kept["when"] = datetime.now(UTC).date().isoformat()
            if options.json is not None:
                options.json.write_text(json.dumps(kept))
    rows = {name: [Row(**row) for row in kept["rows"][name]] for name in EVALS if name in kept["rows"]}
    text = table(rows, kept.get("when", ""))
    print(text)
    if options.write_docs:
        page = PAGE.read_text()
        before, after = page.split(BEGIN)[0], page.split(END)[1]
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")
    return 0 if all(row.valid for each in rows.values() for row in each) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, help="a folder with GradBench's repository")
    parser.add_argument("evals", nargs="*", help=f"some of: {', '.join(EVALS)}")
    parser.add_argument("--python", default=sys.executable, help="the interpreter for the evals")
    parser.add_argument("--include", type=Path, help="the folder of json.hpp")
    parser.add_argument("--tier", help="the tier of our engine; native by default")
    parser.add_argument(
        "--rounds", type=int, default=5, help="turns for each input; 0 makes the table of what is in --json"
    )
    parser.add_argument("--seconds", type=float, default=0.05, help="least time of a turn")
    parser.add_argument("--most-seconds", type=float, default=20, help="no further turn once an input took this long")
    parser.add_argument("--cpu", type=int, help="the one to stay on")
    parser.add_argument("--json", type=Path, help="keep results here, eval by eval")
    parser.add_argument("--write-docs", action="store_true", help=f"write the table into {PAGE.name}")
    parser.add_argument(
        "--arguments", nargs=argparse.REMAINDER, default=[], help="for the evals, instead of default sizes"
    )
    options = parser.parse_args()
    if not (options.checkout / "tools" / "manual").is_dir():
        parser.error(f"{options.checkout} holds no tools/manual; give a folder with GradBench's repository")
    if unknown := sorted(set(options.evals) - set(EVALS)):
        parser.error(f"no eval {unknown[0]!r}; known: {', '.join(EVALS)}")
    if options.cpu is not None:
        os.sched_setaffinity(0, {options.cpu})
    return options


def _build(checkout: Path, evals: list[str], include: Path | None) -> None:
    """GradBench's own Makefile with its own flags."""
    flags = [f"CXX=g++ -I{include.resolve()}"] if include is not None else []
    subprocess.run(  # noqa: S603 - the checkout was named by who runs this
        ["make", "-C", str(checkout / "tools" / "manual"), *flags, *(f"bin/{name}" for name in evals)],  # noqa: S607
        check=True,
        stdout=subprocess.DEVNULL,
    )


def _conversation(title: str, checkout: Path, options: argparse.Namespace) -> Any:
    """All rows of one eval."""
    name, arguments = EVALS[title]
    environment = {
        **os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
        "PYTHONPATH": str(checkout / "python" / "gradbench"),
    }  # fmt: skip
    script = checkout / "python" / "gradbench" / "gradbench" / "evals" / name / "run.py"
    given = options.arguments or arguments
    judge = Lines([options.python, str(script), *given], cwd=checkout, env=environment)
    tier = ["--tier", options.tier] if options.tier else []
    ours = Lines([sys.executable, "-m", "pullback_cli", "gradbench", *tier])
    row: Row | None = None
    try:
        while (message := judge.read()) is not None:
            if message["kind"] == "analysis" and row is not None:
                row.valid = message["valid"]
                print(_line(row), message.get("error", "")[-300:], flush=True)
                yield row
            if message["kind"] == "evaluate":
                answer, row = _evaluated(title, name, checkout, ours, message, options)
                if not answer["success"]:
                    print(answer["error"], file=sys.stderr)
                    yield row
            else:
                answer = ours.ask(message)
            judge.send(answer)
    finally:
        judge.end()
        ours.end()


def _evaluated(
    title: str, name: str, checkout: Path, ours: Lines, message: Any, options: argparse.Namespace
) -> tuple[Any, Row]:
    """Our answer, and the times of both in turns."""
    given = message["input"]
    row = Row(
        title, message["function"], message.get("description", ""), valid=False, ours=[], manual=[], answered_s=0.0
    )
    spent, answer = 0.0, {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "input.json"
        quick = given | {"min_runs": 2, "min_seconds": options.seconds} if isinstance(given, dict) else given
        file.write_text(json.dumps(quick))
        binary = checkout / "tools" / "manual" / "bin" / name
        compared = name not in LACKING and name != "hello"
        for number in range(options.rounds):
            started = datetime.now(UTC)
            answer = ours.ask(message | {"input": quick})
            if number == 0:
                row.answered_s = (datetime.now(UTC) - started).total_seconds()
            if not answer["success"]:
                return answer, row
            row.ours.append(_least(answer["timings"]))
            if compared and message["function"] in DERIVATIVES:
                row.manual.append(_least(_timings(binary, file, message["function"])))
            else:
                break
            spent += row.ours[-1] + row.manual[-1]
            if spent > options.most_seconds:
                break
    answer.pop("timings")
    return answer, row


def _timings(binary: Path, file: Path, function: str) -> list[dict[str, Any]]:
    done = subprocess.run([binary, file, function], check=True, capture_output=True)  # noqa: S603 - just built
    return [json.loads(line) for line in done.stdout.splitlines()[1:]]


def _least(timings: list[dict[str, Any]]) -> float:
    return float(min(timing["nanoseconds"] for timing in timings if timing["name"] == "evaluate")) / 1e9


def _line(row: Row) -> str:
    ratio = f"{row.ratio:8.2f}x" if row.ratio else "         "
    ours = f"{min(row.ours) * 1e3:12.4f} ms" if row.ours else "no answer"
    theirs = f"{min(row.manual) * 1e3:12.4f} ms" if row.manual else ""
    return f"  {row.workload:<26}{row.function:<10}{'valid' if row.valid else 'INVALID':<8}{ratio}{ours}{theirs}"


def mean(ratios: list[float]) -> float:
    """The geometric mean."""
    return math.exp(statistics.fmean(map(math.log, ratios)))


def table(rows: dict[str, list[Row]], when: str) -> str:
    """Evals as rows: verdicts, times at the largest size, ratios over all sizes, and the means that were asked for."""
    lines = [
        "| eval | valid | largest size | ours | manual | there | all sizes, geometric mean (range) | longest answer |",
        "|---|---|---|---|---|---|---|---|",
    ]
    means: dict[str, float] = {}
    for title, each in rows.items():
        timed = [row for row in each if row.ratio is not None]
        valid = f"{sum(row.valid for row in each)} of {len(each)}"
        longest = f"{max(row.answered_s for row in each):.1f} s"
        if not timed:
            ours = max((row for row in each if row.ours), key=lambda row: min(row.ours))
            lines.append(
                f"| {title} | {valid} | {ours.workload or ours.function} | {_shown(min(ours.ours))} | – | – | – | {longest} |"
            )
            continue
        ratios = [row.ratio for row in timed if row.ratio is not None]
        means[title] = mean(ratios)
        last = timed[-1]
        lines.append(
            f"| {title} | {valid} | {last.workload} | {_shown(min(last.ours))} | {_shown(min(last.manual))} | "
            f"{last.ratio:.2f}× | {means[title]:.2f}× ({min(ratios):.2f}–{max(ratios):.2f}) | {longest} |"
        )
    asked = {title: ratio for title, ratio in means.items() if title != "ht simple small"}
    without = [ratio for title, ratio in asked.items() if title not in ("ode", "det")]
    lines += [
        "",
        f"Geometric mean over evals: **{mean(list(asked.values())):.2f}×** with `ode` and `det`, "
        f"**{mean(without):.2f}×** without them. Ours is ahead on "
        f"{sum(ratio > 1 for ratio in asked.values())} of {len(asked)}. Measured {when}."
        if without
        else "",
    ]
    return "\n".join(lines).rstrip()


def _shown(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.3g} µs"
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


if __name__ == "__main__":
    raise SystemExit(main())
