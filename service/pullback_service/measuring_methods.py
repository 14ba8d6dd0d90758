"""Methods: how a value was measured. Values of different methods do not compare.

The number of measured values is no part of a method, since tools measure for a time; methods of points of earlier releases contain it.
"""

from functools import lru_cache
from re import compile as pattern
from typing import Final, LiteralString

_COUNTS: Final[LiteralString] = (
    r"(?<=^median of )\d+ (?=[a-z]+$)|(?<=^median of a process), \d+ values in all$"
    r"|(?<=^mean of )\d+ (?=runs, as GradBench scores them$)|(?<=^mean) of \d+$"
)
"""The part of a method that says of how many values it is, in the syntax that Python and Postgres share."""
_PATTERN: Final = pattern(_COUNTS)


@lru_cache(1024)
def without_counts(method: str | None) -> str | None:
    """The method without the number of values."""
    return None if method is None else _PATTERN.sub("", method)


def differ(one: LiteralString, other: LiteralString) -> LiteralString:
    """The SQL condition of two columns with different methods: most texts are equal, and those are not searched for counts."""
    return (
        f"({one} IS DISTINCT FROM {other} AND regexp_replace({one}, '{_COUNTS}', '') "
        f"IS DISTINCT FROM regexp_replace({other}, '{_COUNTS}', ''))"
    )
