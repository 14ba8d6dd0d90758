"""Run test-suites that others wrote against the engine, and say what passed, what failed, and what cannot apply.

python -m benchmarks.public_suites autograd                      HIPS autograd's own suite, fetched by pip
python -m benchmarks.public_suites autograd --source FOLDER      without network: a source folder or archive of it
python -m benchmarks.public_suites pymanopt --packages FOLDER    a package built on autograd, installed in FOLDER
python -m benchmarks.public_suites mygrad --source CHECKOUT --packages FOLDER   MyGrad's gradients as the oracle
python -m benchmarks.public_suites torch --packages FOLDER       gradients of torch as the oracle, installed in FOLDER

Another package that imports autograd is one more row in `autograd_programs.SUITES`; another engine's samples are a module
like `torch_operators`, giving outcomes.
"""

import argparse
import json
import sys
from pathlib import Path

from benchmarks.public_suites import autograd_programs, torch_operators
from benchmarks.public_suites.outcomes import Outcome, pass_rate, summary, table

AIM = 0.97


def main() -> int:
    """Run one suite; the exit status says whether the aim was met."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.public_suites",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("suite", choices=[*autograd_programs.SUITES, "torch"])
    parser.add_argument("--source", type=Path, help="the suite's source folder or archive, instead of fetching it")
    parser.add_argument("--packages", type=Path, help="a folder of installed packages that the suite needs")
    parser.add_argument("--only", default="", help="only operators whose name contains this (torch)")
    parser.add_argument("--json", type=Path, help="write counts and every test to this file")
    arguments = parser.parse_args()
    outcomes = _outcomes(arguments)
    print(table(outcomes))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(summary(outcomes), indent=1), encoding="utf-8")
    return 0 if pass_rate(outcomes) >= AIM else 1


def _outcomes(arguments: argparse.Namespace) -> list[Outcome]:
    if arguments.suite in autograd_programs.SUITES:
        suite = autograd_programs.SUITES[arguments.suite]
        return autograd_programs.outcomes(suite, arguments.source, arguments.packages)
    if arguments.packages is not None:
        sys.path.append(str(arguments.packages))
    return torch_operators.outcomes(arguments.only)


if __name__ == "__main__":
    sys.exit(main())
