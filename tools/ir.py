"""LLVM IR that is loaded at run time, made of C and committed: no compiler is needed to install or to run.

    python -m tools.ir            # renew it: needs clang 19 (apt-get install clang-19)
    python -m tools.ir --check    # write nothing, and end with 1 where a file is not what would be made

Each C file in SOURCES has its IR beside it, without triple, data layout, attributes, metadata and names of files: what is left has
to be the same for both processors in TARGETS. Its header has the version of clang and a digest of the C, of the way it is made, and of the IR, so
that a change of one without the other is seen where no clang is.
"""

import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

_NATIVE = ROOT / "engine/pullback/backends/native"
_COUNTERS = ROOT / "runners/pullback_runners/allocations"

SOURCES = (
    _NATIVE / "entry/entry.c",
    _NATIVE / "threads/pool.c",
    _NATIVE / "threads/alone.c",
    _NATIVE / "threads/blas.c",
    _COUNTERS / "arrays.c",
    _COUNTERS / "objects.c",
    _COUNTERS / "native_library.c",
)

CLANG = "clang-19"

TARGETS = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu")

FLAGS = (
    "-std=c17",
    "-ffreestanding",
    "-nostdlibinc",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-O2",
    "-fPIC",
    "-fexceptions",  # a thread that is ended unwinds through the code
    "-fno-strict-aliasing",
    "-fwrapv",
    "-fno-vectorize",
    "-fno-slp-vectorize",
    "-fno-unroll-loops",
    "-S",
    "-emit-llvm",
)

#: What is taken out of clang's text: what is of its processor and its files, and hints for passes that do not run on the IR.
LEFT_OUT = (
    r"^(?:; ModuleID|; Function Attrs:|source_filename|target |attributes #|!).*\n",
    r"^.*@llvm\.lifetime\..*\n",
    r", !llvm\.loop !\d+",
    r" +; preds = .*",
    r" (?:noundef|nocapture|readonly|readnone|writeonly|nonnull|zeroext|signext|local_unnamed_addr|unnamed_addr|dso_local|#\d+)\b",
)

_HEADER = re.compile(r"; Made of (\S+) by `python -m tools\.ir`: clang (\S+), digest (\w+)\.\n")


def version() -> str | None:
    """The version of clang that is found here; None where there is none."""
    if shutil.which(CLANG) is None:
        return None
    found = re.search(r"clang version (\S+)", _output(CLANG, "--version"))
    return found[1] if found else None


def made_of(source: Path) -> str:
    """The IR of a C file, with its header."""
    text, *others = [_text(source, target) for target in TARGETS]
    if others != [text] * len(others):
        raise SystemExit(f"{source.name} is not the same IR for {' and '.join(TARGETS)}")
    header = f"; Made of {source.name} by `python -m tools.ir`: clang {version()}, digest {_digest(source, text)}.\n"
    return header + text


def _text(source: Path, target: str) -> str:
    text = _output(CLANG, f"--target={target}", *FLAGS, "-o", "-", source.name, folder=source.parent)
    for group in re.findall(
        r"^attributes (#\d+) = .*\bnounwind\b", text, re.MULTILINE
    ):  # spares definitions their unwind tables
        text = re.sub(rf"^(define .*) {group} ", r"\1 nounwind ", text, flags=re.MULTILINE)
    for pattern in LEFT_OUT:
        text = re.sub(pattern, "", text, flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def header_of(source: Path) -> tuple[str, bool]:
    """The version of clang that made the IR of a C file, and True if its digest is that of both as they are now."""
    ir = source.with_suffix(".ll").read_text(encoding="utf-8")
    header = _HEADER.match(ir)
    if header is None:
        return "", False
    return header[2], header[1] == source.name and header[3] == _digest(source, ir[header.end() :])


def _digest(source: Path, text: str) -> str:
    headers = re.findall(r'^#include "(.*)"$', source.read_text(encoding="utf-8"), re.MULTILINE)
    read = [source.with_name(name).read_text(encoding="utf-8") for name in (source.name, *headers)]
    parts = (*FLAGS, *LEFT_OUT, *read, text)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def _output(*command: str, folder: Path = ROOT) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603 - words of ours
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    return done.stdout


def main(arguments: list[str]) -> int:
    """Write the IR, or say which is out of date."""
    if version() is None:
        raise SystemExit(f"{CLANG} is not installed; apt-get install {CLANG}")
    stale = False
    for source in SOURCES:
        ir, text = source.with_suffix(".ll"), made_of(source)
        if "--check" not in arguments:
            ir.write_text(text, encoding="utf-8")
        elif not ir.exists() or ir.read_text(encoding="utf-8") != text:
            print(f"{ir.relative_to(ROOT)} is out of date: run `python -m tools.ir`")
            stale = True
    return int(stale)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
