"""Run test-suites that others wrote against the engine, and say what passed, what failed, and what cannot apply.

python -m benchmarks.public_suites autograd                      fetches HIPS autograd's suite with pip and runs it
python -m benchmarks.public_suites autograd --source FOLDER      without network: a source folder or archive of it
python -m benchmarks.public_suites torch --packages FOLDER       gradients of torch as the oracle, torch being in FOLDER
"""

import argparse
import json
import sys
from pathlib import Path

from benchmarks.public_suites import hips_autograd, torch_operators
from benchmarks.public_suites.outcomes import Outcome, pass_rate, summary, table

AIM = 0.97


def main() -> int:
    """Run one suite; the exit status says whether the aim was met."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.public_suites",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("suite", choices=["autograd", "torch"])
    parser.add_argument("--source", type=Path, help="the suite's source folder or archive, instead of fetching it")
    parser.add_argument(
        "--packages", type=Path, help="a folder of installed packages: torch, or xarray for autograd's suite"
    )
    parser.add_argument("--only", default="", help="only operators whose name contains this (torch)")
    parser.add_argument("--json", type=Path, help="write counts and every test to this file")
    arguments = parser.parse_args()
    if arguments.packages is not None:
        sys.path.append(str(arguments.packages))
    outcomes: list[Outcome] = (
        hips_autograd.outcomes(arguments.source, arguments.packages)
        if arguments.suite == "autograd"
        else torch_operators.outcomes(arguments.only)
    )
    print(table(outcomes))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(summary(outcomes), indent=1), encoding="utf-8")
    return 0 if pass_rate(outcomes) >= AIM else 1


if __name__ == "__main__":
    sys.exit(main())
