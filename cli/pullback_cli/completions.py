"""Completions that the shell offers on Tab for values of options; none where the extra that knows them is not installed."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress


def suites(incomplete: str) -> Iterator[str]:
    """Suites."""
    return _beginning(incomplete, _suites)


def workloads(incomplete: str) -> Iterator[str]:
    """Workloads, those of installed packages included."""
    return _beginning(incomplete, _workloads)


def variants(incomplete: str) -> Iterator[str]:
    """Tiers and peers."""
    return _beginning(incomplete, _variants)


def tiers(incomplete: str) -> Iterator[str]:
    """Tiers."""
    return _beginning(incomplete, _tiers)


def devices(incomplete: str) -> Iterator[str]:
    """Devices."""
    return _beginning(incomplete, _devices)


def _suites() -> Iterable[str]:
    from pullback_runners.suites import SUITES

    return SUITES


def _workloads() -> Iterable[str]:
    from pullback_runners.workloads import known_workloads

    return [each.name for each in known_workloads()]


def _variants() -> Iterable[str]:
    from pullback_runners.variants import known_variants

    return known_variants()


def _tiers() -> Iterable[str]:
    from pullback_runners.variants import TIERS

    return TIERS


def _devices() -> Iterable[str]:
    from pullback_runners.workloads import DEVICES

    return DEVICES


def _beginning(incomplete: str, names: Callable[[], Iterable[str]]) -> Iterator[str]:
    with suppress(ImportError):
        yield from (name for name in names() if name.startswith(incomplete))
