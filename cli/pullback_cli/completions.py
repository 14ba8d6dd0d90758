"""Completions that the shell offers on Tab for values of options; none where the extra that knows them is not installed."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress


def _offered(names: Callable[[], Iterable[str]]) -> Callable[[str], Iterator[str]]:
    """The completion of what has been typed to one of these names."""

    def complete(incomplete: str) -> Iterator[str]:
        with suppress(ImportError):
            yield from (name for name in names() if name.startswith(incomplete))

    return complete


@_offered
def suites() -> Iterable[str]:
    """Suites."""
    from pullback_runners.suites import SUITES

    return SUITES


@_offered
def workloads() -> Iterable[str]:
    """Workloads, those of installed packages included."""
    from pullback_runners.workloads import known_workloads

    return [each.name for each in known_workloads()]


@_offered
def variants() -> Iterable[str]:
    """Tiers and peers."""
    from pullback_runners.variants import known_variants

    return known_variants()


@_offered
def tiers() -> Iterable[str]:
    """Tiers."""
    from pullback_runners.variants import TIERS

    return TIERS


@_offered
def devices() -> Iterable[str]:
    """Devices."""
    from pullback_runners.workloads import DEVICES

    return DEVICES
