"""Wording of facts. Machines may send any: names become words, values get their units, and both a place.

What is known is called as people call it. Of what is not, the name says the unit (`free_disk_bytes`, `clock_mhz`), and a
name that is no identifier is left whole: it was written to be read, or to break out.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import starmap
from typing import TypeAlias

from pullback_dashboards.wording import units
from pullback_dashboards.wording.moments import duration

Path: TypeAlias = tuple[str, ...]

HARDWARE, SOFTWARE, STATE, ELSE = "hardware", "software", "state", "other"
_FIRST = (HARDWARE, SOFTWARE, STATE)

_KNOWN: Mapping[str, tuple[str, str]] = {
    "name": (HARDWARE, "name"),
    "architecture": (HARDWARE, "architecture"),
    "cpu": (HARDWARE, "CPU"),
    "cores": (HARDWARE, "cores"),
    "cpus": (HARDWARE, "logical CPUs"),
    "memory": (HARDWARE, "memory"),
    "memory_gib": (HARDWARE, "memory"),
    "gpu": (HARDWARE, "GPU"),
    "driver": (SOFTWARE, "GPU driver"),
    "system": (SOFTWARE, "system"),
    "kernel": (SOFTWARE, "kernel"),
    "libc": (SOFTWARE, "C library"),
    "python": (SOFTWARE, "Python"),
    "numpy": (SOFTWARE, "NumPy"),
    "scipy": (SOFTWARE, "SciPy"),
    "blas": (SOFTWARE, "BLAS"),
    "llvmlite": (SOFTWARE, "llvmlite"),
    "autograd": (SOFTWARE, "autograd"),
    "jax": (SOFTWARE, "JAX"),
    "jaxlib": (SOFTWARE, "jaxlib"),
    "numba": (SOFTWARE, "Numba"),
    "torch": (SOFTWARE, "PyTorch"),
    "harness": (SOFTWARE, "harness"),
    "quality": (STATE, "quality"),
    "load": (STATE, "load"),
    "load_1min": (STATE, "load, 1 min"),
    "idle_cpus": (STATE, "idle CPUs"),
    "steal": (STATE, "CPU steal"),
    "run_delay": (STATE, "waiting for a CPU"),
    "free_disk_bytes": (STATE, "free disk"),
    "affinity": (STATE, "CPU affinity"),
    "pinned_cpu": (STATE, "pinned to CPU"),
    "gpu_processes": (STATE, "other GPU processes"),
    "governor": (STATE, "CPU governor"),
}
_PLACES = {name: place for place, name in enumerate(_KNOWN)}
_SHARES = frozenset({"steal", "run_delay"})
_NUMBERS = frozenset({"pinned_cpu"})  # names of things, not amounts of them
# By the end of a name: how many of the unit one is, and the unit.
_UNITS: Mapping[str, tuple[float, str]] = {
    "bytes": (1, "B"), "kib": (2**10, "B"), "mib": (2**20, "B"), "gib": (2**30, "B"), "tib": (2**40, "B"),
    "kb": (1e3, "B"), "mb": (1e6, "B"), "gb": (1e9, "B"), "tb": (1e12, "B"),
    "hz": (1, "Hz"), "khz": (1e3, "Hz"), "mhz": (1e6, "Hz"), "ghz": (1e9, "Hz"),
    "s": (1, "s"), "seconds": (1, "s"), "ms": (1e-3, "s"), "us": (1e-6, "s"), "ns": (1e-9, "s"),
    "percent": (1, "%"), "pct": (1, "%"), "celsius": (1, "°C"), "watts": (1, "W"),
}  # fmt: skip
_WORDS: Mapping[str, str] = {
    word.lower(): word
    for word in (
        "CPU", "CPUs", "GPU", "GPUs", "NUMA", "SMT", "AVX", "SIMD", "TLB", "RAM", "SSD", "OS", "BIOS", "ID", "IP", "CUDA",
        "cuDNN", "MKL", "OpenBLAS", "BLAS", "LAPACK", "NumPy", "SciPy", "PyTorch", "JAX", "LLVM", "L1", "L2", "L3", "TDP",
        "PCI", "ECC", "URL", "CI", "VM",
    )
}  # fmt: skip
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9]*([_-][A-Za-z0-9]+)*")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LONG = 10_000  # from here on digits are read in groups
_LONGEST = 10**15  # beyond it a double has not all of them
_MINUTE = 60


@dataclass(frozen=True)
class ReadableFact:
    """A fact as a person reads it: where it belongs, what it is called, and its value."""

    group: str
    label: str
    shown: str
    name: str
    told: str
    """The value as it was told, as text; empty where it was not."""
    nested: bool = False

    @property
    def whole_label(self) -> str:
        """The label of a fact where it stands alone: of a document in a document with the name of that."""
        return f"{self.group} {self.label}" if self.nested else self.label

    @property
    def order(self) -> tuple[int, str, int, str]:
        """Sorts facts: by groups, then those that are known as this file has them. A database keeps no order of names."""
        place = _FIRST.index(self.group) if self.group in _FIRST else len(_FIRST) + (self.group == ELSE)
        known = _PLACES.get(self.name, len(_PLACES)) if not self.nested else len(_PLACES)
        return place, self.group if place == len(_FIRST) else "", known, self.label.casefold()

    @property
    def exact(self) -> str:
        """Name and value as they were told, where the page does not show them so."""
        return "" if self.shown == self.told and self.label == self.name else f"{self.name}: {self.told}"


@dataclass(frozen=True)
class Fact:
    """A name and a value, as text; a fact that a machine or a run reported, and its form for people, which only pages have."""

    name: str
    value: str
    _read: ReadableFact | None = field(default=None, compare=False)

    @property
    def read(self) -> ReadableFact:
        """The value as a page shows it."""
        return self._read or ReadableFact("", self.name, self.value, self.name, self.value)


def leaves(told: Mapping[str, object], above: Path = ()) -> Iterator[tuple[Path, object]]:
    """The leaves of a document, with the names on the way to each, in its own order."""
    for name, value in told.items():
        if isinstance(value, Mapping):
            yield from leaves(value, (*above, name))
        else:
            yield (*above, name), value


def read(path: Path, value: object) -> ReadableFact:
    """A fact by the names on the way to it; a document in a document is a group of its own."""
    *above, name = path
    group, label = (" ".join(map(_spelt, above)), None) if above else _KNOWN.get(name, (ELSE, None))
    return ReadableFact(
        group, label or _words(name, value), _shown(name, value), ".".join(path), raw(value), bool(above)
    )


def in_groups(facts: Iterable[ReadableFact]) -> tuple[tuple[str, tuple[ReadableFact, ...]], ...]:
    """Facts by where they belong: what a machine is, what runs on it, how it was, what it tells in documents, the rest."""
    groups: dict[str, list[ReadableFact]] = {}
    for fact in sorted(facts, key=lambda fact: fact.order):
        groups.setdefault(fact.group, []).append(fact)
    return tuple((group, tuple(listed)) for group, listed in groups.items())


def raw(value: object) -> str:
    """A value as it was told, as text."""
    if value is None:
        return ""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _shown(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return _number(name, value)
    if isinstance(value, list):
        return _listed(name, value)
    return raw(value)


def _number(name: str, value: float) -> str:
    if name in _SHARES:
        return f"{units.significant(value * 100)} %"
    if name in _NUMBERS or abs(value) >= _LONGEST:
        return str(value)
    unit = _unit(name)
    if unit is None:
        return units.whole(value) if isinstance(value, int) and abs(value) >= _LONG else f"{value:.6g}"
    size, written = unit
    if written == "s" and value * size >= _MINUTE:
        return duration(value * size)
    return units.quantity(value * size, written)


def _listed(name: str, values: Sequence[object]) -> str:
    if any(isinstance(value, Mapping) for value in values):
        return "; ".join(
            ", ".join(f"{fact.label} {fact.shown}" for fact in starmap(read, leaves(value)) if fact.shown)
            if isinstance(value, Mapping)
            else _shown(name, value)
            for value in values
        )
    if values and all(type(value) is int for value in values):
        return ", ".join(_runs(value for value in values if isinstance(value, int)))
    return ", ".join(_shown(name, value) for value in values)


def _runs(numbers: Iterable[int]) -> Iterator[str]:
    """Numbers with those that follow each other as one: 0–7, 12."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    for run in runs:
        yield f"{run[0]}–{run[-1]}" if len(run) > 2 else ", ".join(map(str, run))


def _unit(name: str) -> tuple[float, str] | None:
    """The unit that the end of a name says, if it is an identifier of several words."""
    _, *behind = _parts(name)
    return _UNITS.get(behind[-1].lower()) if behind else None


def _words(name: str, value: object) -> str:
    """A name as words, without the unit that its value is given in."""
    is_amount = isinstance(value, int | float) and not isinstance(value, bool)
    return _spelt(name, without_last=is_amount and _unit(name) is not None)


def _spelt(name: str, *, without_last: bool = False) -> str:
    if not _IDENTIFIER.fullmatch(name):
        return name
    parts = _parts(name)
    kept = parts[:-1] if without_last else parts
    return " ".join(
        _WORDS.get(part.lower(), part if part.isupper() or len(parts) == 1 else part.lower()) for part in kept
    )


def _parts(name: str) -> list[str]:
    """The words of an identifier: free_disk_bytes, freeDiskBytes; of anything else the whole."""
    if not _IDENTIFIER.fullmatch(name):
        return [name]
    return [part for word in re.split("[_-]", name) for part in _HUMP.split(word)]
