"""Run test-suites and examples that others wrote against the engine, and say what passed, what failed, and what cannot apply.

python -m benchmarks.public_suites autograd                      HIPS autograd's own suite, fetched by pip
python -m benchmarks.public_suites autograd --source FOLDER      without network: a source folder or archive of it
python -m benchmarks.public_suites examples --packages FOLDER    HIPS autograd's examples, with only their imports changed; matplotlib in FOLDER
python -m benchmarks.public_suites pymanopt --packages FOLDER    a package built on autograd, installed in FOLDER
python -m benchmarks.public_suites mygrad --source CHECKOUT --packages FOLDER   MyGrad's gradients as the oracle
python -m benchmarks.public_suites torch --packages FOLDER       gradients of torch as the oracle, installed in FOLDER

Another package that imports autograd is one more row in `autograd_programs.SUITES`; another engine's samples are a module
like `torch_operators`, giving outcomes. The exit status is 0 where 97 % of what is portable passes, and where no example
fails that is not known to; else 1.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.public_suites import autograd_programs, examples, torch_operators
from benchmarks.public_suites.suite_outcomes import Outcome, pass_rate, summary, table

AIM = 0.97


def main() -> int:
    """Run one suite; the exit status says whether the aim was met."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.public_suites",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("suite", choices=[*autograd_programs.SUITES, "examples", "torch"])
    parser.add_argument("--source", type=Path, help="the suite's source folder or archive, instead of fetching it")
    parser.add_argument("--packages", type=Path, help="a folder of installed packages that the suite needs")
    parser.add_argument(
        "--only", default="", help="only operators or programs whose name contains this (torch, examples)"
    )
    parser.add_argument("--seconds", type=float, default=45, help="how long each program may run (examples)")
    parser.add_argument("--json", type=Path, help="write counts and every test to this file")
    arguments = parser.parse_args()
    return _run_examples(arguments) if arguments.suite == "examples" else _run_suite(arguments)


def _run_examples(arguments: argparse.Namespace) -> int:
    ended = []
    for each in examples.run(arguments.source, arguments.packages, arguments.seconds, arguments.only):
        ended.append(each)
        print(each, flush=True)
    found = examples.summary(ended)
    print(", ".join(f"{count} {ending}" for ending, count in found["counts"].items()) or "no example found")
    _write(found, arguments.json)
    return 0 if examples.passed(ended) else 1


def _run_suite(arguments: argparse.Namespace) -> int:
    outcomes = _outcomes(arguments)
    print(table(outcomes))
    _write(summary(outcomes), arguments.json)
    return 0 if pass_rate(outcomes) >= AIM else 1


def _write(found: dict[str, Any], path: Path | None) -> None:
    if path is not None:
        path.write_text(json.dumps(found, indent=1), encoding="utf-8")


def _outcomes(arguments: argparse.Namespace) -> list[Outcome]:
    if arguments.suite in autograd_programs.SUITES:
        suite = autograd_programs.SUITES[arguments.suite]
        return autograd_programs.outcomes(suite, arguments.source, arguments.packages)
    if arguments.packages is not None:
        sys.path.append(str(arguments.packages))
    return torch_operators.outcomes(arguments.only)


if __name__ == "__main__":
    sys.exit(main())
