"""The origin of a case's numbers, beside the commit before: host, class, workload text, files, code and harness."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_SHORT = 12
"""Digits of a digest that people tell two apart by."""
_DIGESTS = (("workload", "text of the workload"), ("subject", "measured files"), ("code", "code"))


@dataclass(frozen=True)
class MeasuredFact:
    """One of them; `before` is empty where it was the same, or is not known. `whole` is all of it."""

    name: str
    now: str
    whole: str
    before: str


def measured_facts(
    now: tuple[Mapping[str, Any], Mapping[str, Any]], before: tuple[Mapping[str, Any], Mapping[str, Any]] | None
) -> tuple[MeasuredFact, ...]:
    """The facts that a report states, by its document and its entry for the case; facts that it does not state are left out."""
    facts, earlier = dict(_told(*now)), dict(_told(*before)) if before else {}
    return tuple(
        MeasuredFact(
            name, _short(whole), ", ".join(whole), _short(earlier[name]) if _differs(earlier, name, whole) else ""
        )
        for name, whole in facts.items()
    )


def _told(document: Mapping[str, Any], entry: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    machine = document["machine"]
    variants = entry.get("variants", [])
    facts = {"host": [machine.get("host")], "class": [machine.get("fingerprint")]}
    facts |= {name: [(each.get("digests") or {}).get(key) for each in variants] for key, name in _DIGESTS}
    facts["harness"] = [document["harness"].get("version")]
    for name, values in facts.items():
        if known := list(dict.fromkeys(value for value in values if value)):
            yield name, known


def _differs(earlier: Mapping[str, list[str]], name: str, whole: list[str]) -> bool:
    return name in earlier and set(earlier[name]) != set(whole)


def _short(values: list[str]) -> str:
    """Each shortened, if there are few; variants of one case mostly share them."""
    return ", ".join(value[:_SHORT] for value in values)
