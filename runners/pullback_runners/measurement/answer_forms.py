"""Forms of answers: true of an answer that has what is read of it, each of its type and numbers within bounds.

What goes into a report unread is not looked at: the service refuses a report that it cannot take.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, get_args

from pullback_runners.allocations.warm_calls import LAYERS, AllocationCounts
from pullback_runners.errors import FailureKind

Form = Callable[[Any], bool]

_MOST = 1 << 63
_METRICS = AllocationCounts(dict.fromkeys(LAYERS)).document().keys()


def has(value: Any, /, **forms: Form) -> bool:
    """True of an object with at least these entries, each of its form."""
    return isinstance(value, dict) and all(name in value and is_form(value[name]) for name, is_form in forms.items())


def is_whole(value: Any) -> bool:
    """True of a whole number, which may be negative."""
    return isinstance(value, int) and abs(value) < _MOST


def any_object(_: dict[str, Any]) -> bool:
    """True of every answer: for one of which nothing is read."""
    return True


def is_failure(answer: dict[str, Any]) -> bool:
    """True of a failure of a worker."""
    failed: Any = answer.get("failed")
    return has(failed, kind=get_args(FailureKind).__contains__, message=_is_text) and _may_refute(failed)


def is_examined(answer: dict[str, Any]) -> bool:
    """True of the answer to `examine`."""
    return has(
        {"libraries": {}, "device_memory": {}, **answer},
        gradient=partial(has, max_rel_error=_is_number, oracle=_is_text, ok=_is_truth),
        counts=lambda counts: _is_mapping(_is_metric)(counts) and counts.keys() == _METRICS,
        plan=_or_none(lambda plan: isinstance(plan, dict) and _or_none(_is_number)(plan.get("peak_bytes"))),
        libraries=_is_mapping(_is_text),
        device_memory=_is_mapping(_is_number),
    ) and _may_refute(answer)


def _is_number(value: Any) -> bool:
    """True of a time, a size or a number of something."""
    return isinstance(value, int | float) and 0 <= value < _MOST


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool)


def _or_none(form: Form) -> Form:
    return lambda value: value is None or form(value)


def _is_mapping(form: Form) -> Form:
    return lambda value: isinstance(value, dict) and all(map(form, value.values()))


def _is_pair(form: Form) -> Form:
    return lambda value: isinstance(value, list) and len(value) == 2 and all(map(form, value))


def _is_metric(value: Any) -> bool:
    has_value = has(value, unit=_is_text, value=_or_none(_is_number), method=_or_none(_is_text))
    return has_value and _is_pair(_is_number)(value.get("range", [0, 0]))


def _may_refute(answer: dict[str, Any]) -> bool:
    return _or_none(_is_pair(_is_text))(answer.get("refuted"))


is_warm = partial(has, timer_ns=_is_number, filling=_is_number)
is_turn = partial(
    has, cpu_ns=_is_number, wall_ns=_is_number, waited_ns=_or_none(_is_number), late_ns=_or_none(_is_number)
)
is_beside = partial(has, beside=_is_mapping(_or_none(_is_number)))
