"""Example programs written for HIPS autograd, run with nothing but their imports changed.

Each program runs in a process of its own, without a display, until it ends or its time is over: most of them train for hours.
Files of MNIST, which some programs download, are written beforehand with random images in them, so that no network is
needed. The checkout that is given stays as it is.
"""

import gzip
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from benchmarks.public_suites.autograd_programs import ALIASES, REPOSITORY, SUITES, folder_of

Ending = Literal["finished", "ran until the limit", "failed", "known to fail"]

#: Files of the folder that are no examples: others import them.
PARTS = {"__init__.py", "data.py", "data_mnist.py"}

#: Programs that fail with their imports changed, the error that they fail with, and why.
KNOWN = {
    "rkhs.py": ("'RKHSFunBox' has no attribute 'register'", "makes a class of its own a Box of autograd's tape"),
    "bayesian_optimization.py": ("Singular matrix", "two of its points become equal, as they do with autograd"),
}

#: What programs download: images and labels of MNIST. As many random ones are written in their place.
MNIST = {"train": 2000, "t10k": 500}

_IMPORT = re.compile(r"^([ \t]*)(from|import) autograd\b(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ExampleOutcome:
    """One example: how it ended, after how many seconds, and the last line that it wrote."""

    example: str
    ending: Ending
    seconds: float
    said: str
    reason: str = ""  # of what is known to fail
    random_images: bool = False  # in place of those of MNIST

    def __str__(self) -> str:
        """Write it as a line of the table."""
        why = f" ({self.reason})" if self.reason else ""
        images = " [random images in place of MNIST, which it downloads]" if self.random_images else ""
        return f"{self.example:<36} {self.ending:<20} {self.seconds:6.1f} s  {self.said}{why}{images}"


def with_imports_changed(text: str) -> str:
    """Change the imports of `autograd` in a program to those of the package that stands in for it, and nothing else."""
    target = ALIASES["autograd"]
    parent, _, name = target.rpartition(".")

    def changed(found: re.Match[str]) -> str:
        indent, verb, rest = found.groups()
        binds = verb == "import" and " as " not in rest  # the name `autograd`, which is not that of a top package here
        return f"{indent}{verb} {target}{rest}" + (f"\n{indent}from {parent} import {name}" if binds else "")

    return _IMPORT.sub(changed, text)


def run(source: Path | None, packages: Path | None, limit: float, only: str = "") -> Iterator[ExampleOutcome]:
    """Run the examples of a checkout or archive, or of the distribution that pip fetches, one after the other."""
    with tempfile.TemporaryDirectory(prefix="pullback-examples-") as folder:
        examples = Path(folder) / "examples"
        shutil.copytree(folder_of(SUITES["autograd"], "rosenbrock.py", source, Path(folder)), examples)
        for path in examples.rglob("*.py"):
            path.write_text(with_imports_changed(path.read_text(encoding="utf-8")), encoding="utf-8")
        _write_random_images(examples / "data")
        for path in sorted(examples.rglob("*.py")):
            if path.name not in PARTS and only in path.name:
                yield _ended(path, str(path.relative_to(examples)), packages, limit)


def passed(ended: Sequence[ExampleOutcome]) -> bool:
    """Say whether there were examples, and none failed that is not known to."""
    return bool(ended) and not any(each.ending == "failed" for each in ended)


def summary(ended: Sequence[ExampleOutcome]) -> dict[str, Any]:
    """Counts and every example, as plain data."""
    return {"counts": dict(Counter(each.ending for each in ended)), "examples": [asdict(each) for each in ended]}


def _ended(program: Path, name: str, packages: Path | None, limit: float) -> ExampleOutcome:
    paths = [str(REPOSITORY), *([str(packages.resolve())] if packages else []), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PYTHONUNBUFFERED": "1",
        "MPLBACKEND": "agg",
    }
    random_images = "mnist" in program.read_text(encoding="utf-8")
    begun = time.monotonic()
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        try:
            status = subprocess.run(  # noqa: S603 (our own interpreter)
                [sys.executable, "-W", "ignore", str(program)],
                env=environment,
                cwd=program.parent,
                stdout=said,
                stderr=subprocess.STDOUT,
                timeout=limit,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            status = None
        seconds = time.monotonic() - begun
        said.seek(0)
        last = next((line.strip()[:160] for line in reversed(said.read().splitlines()) if line.strip()), "")
    if not status:
        ending: Ending = "finished" if status == 0 else "ran until the limit"
        return ExampleOutcome(name, ending, seconds, last, random_images=random_images)
    error, reason = KNOWN.get(name, ("", ""))
    if error and error in last:
        return ExampleOutcome(name, "known to fail", seconds, last, reason, random_images)
    return ExampleOutcome(name, "failed", seconds, last, random_images=random_images)


def _write_random_images(folder: Path) -> None:
    """Write the files that `data_mnist.py` reads where they are, and downloads where they are not."""
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    for part, count in MNIST.items():
        for kind, shape, most in (("images-idx3", (count, 28, 28), 256), ("labels-idx1", (count,), 10)):
            header = struct.pack(f">{1 + len(shape)}I", 0x800 + len(shape), *shape)
            numbers = rng.integers(0, most, shape, np.uint8).tobytes()
            (folder / f"{part}-{kind}-ubyte.gz").write_bytes(gzip.compress(header + numbers, 1))
