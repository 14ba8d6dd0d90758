"""`python -m benchmarks.projects planted|same|memory`."""

import argparse
import os
import sys
import tempfile
from fnmatch import fnmatchcase
from pathlib import Path

import benchmarks.projects
from benchmarks.projects.compare_sessions import HEADING, SAME, Sessions, floor_ratio, missing, planted, row_of
from benchmarks.projects.memory import memory
from benchmarks.projects.repositories import LIBRARIES


def main() -> None:
    """Run one of the three and print what it found."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.projects", description=benchmarks.projects.__doc__)
    parser.add_argument("what", choices=("planted", "same", "memory"))
    parser.add_argument("--engine", action="append", choices=sorted(LIBRARIES), help="of planted; default: all three")
    parser.add_argument("--only", metavar="GLOB", default="*", help="rows by name, such as 'jax two' or '* thirty'")
    parser.add_argument("--sessions", type=int, default=30, help="of each row; up to a minute each")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no session after so long")
    parser.add_argument("--json", type=Path, metavar="FILE", help="record of the sessions, to go on where it ends")
    parser.add_argument("--folder", type=Path, help="keep repositories and environments there for the next time")
    parser.add_argument(
        "--lock", default="numpy\n", help="of same: the text of the lock file that both environments have"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pullback-") as temporary:
        folder = (options.folder or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        os.environ.setdefault("XDG_CACHE_HOME", str(folder / "cache"))
        if options.what == "memory":
            sys.stdout.write("".join(f"{row}\n" for row in memory(folder)))
            return
        questions = SAME if options.what == "same" else planted(options.engine or list(LIBRARIES))
        questions = [each for each in questions if fnmatchcase(each.name, options.only)]
        if not questions:
            parser.error(
                f"no row is named {options.only}; rows are named like 'jax two', 'numpy equal', 'two environments'"
            )
        sessions = Sessions(folder, options.json, options.lock)
        for question in sessions.run(questions, options.sessions, options.minutes):
            last = sessions.rows[question.name][-1]
            sys.stderr.write(
                f"{question.name}: {last['outcome']} {last['log_ratio']:+.4f} in {last['duration_s']:.0f} s\n"
            )
        rows = [row_of(each, sessions.rows[each.name]) for each in questions if sessions.rows.get(each.name)]
        said = floor_ratio(sessions.rows) if options.what == "same" else None
        left = missing(questions, sessions.rows, options.sessions)
        notes = [sentence for sentence in (said, left) if sentence]
        sys.stdout.write("\n".join([HEADING, "|---" * 10 + "|", *rows, *(["", *notes] if notes else [])]) + "\n")


if __name__ == "__main__":
    main()
