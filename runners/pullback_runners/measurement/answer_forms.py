"""Forms of answers: true of an answer that has what is read of it, each of its type and numbers within bounds.

What goes into a report unread is not looked at: the service refuses a report that it cannot take.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, get_args

from pullback_runners.allocations.warm_calls import LAYERS, AllocationCounts
from pullback_runners.errors import FailureKind
from pullback_runners.workloads.case import DEVICES

Form = Callable[[Any], bool]

_MOST = 1 << 63
_METRICS = AllocationCounts(dict.fromkeys(LAYERS)).document().keys()


def has(value: Any, /, **forms: Form) -> bool:
    """True of an object with at least these entries, each of its form."""
    return isinstance(value, dict) and wrong_entry(value, **forms) is None


def wrong_entry(value: dict[str, Any], /, **forms: Form) -> str | None:
    """The name of the first entry that an object lacks, or has in another form."""
    return next((name for name, is_form in forms.items() if name not in value or not is_form(value[name])), None)


def is_whole(value: Any) -> bool:
    """True of a whole number, which may be negative."""
    return isinstance(value, int) and abs(value) < _MOST


def any_object(_: dict[str, Any]) -> bool:
    """True of every answer: for one of which nothing is read."""
    return True


def is_failure(answer: dict[str, Any]) -> bool:
    """True of a failure of a worker."""
    failed: Any = answer.get("failed")
    return has(failed, kind=get_args(FailureKind).__contains__, message=is_text) and _may_refute(failed)


def is_examined(answer: dict[str, Any]) -> bool:
    """True of the answer to `examine`."""
    return has(
        {"libraries": {}, "device_memory": {}, **answer},
        gradient=partial(has, max_rel_error=_is_number, oracle=is_text, ok=is_truth),
        counts=lambda counts: _is_mapping(_is_metric)(counts) and counts.keys() == _METRICS,
        plan=_or_none(lambda plan: isinstance(plan, dict) and _or_none(_is_number)(plan.get("peak_bytes"))),
        libraries=_is_mapping(is_text),
        device_memory=_is_mapping(_is_number),
    ) and _may_refute(answer)


def is_value(answer: dict[str, Any]) -> bool:
    """True of the answer to `value`: any number, NaN too, or what was raised in its place."""
    return isinstance(answer.get("value"), float) or has(answer, raised=is_text)


def _is_number(value: Any) -> bool:
    """True of a time, a size or a number of something."""
    return isinstance(value, int | float) and 0 <= value < _MOST


def is_text(value: Any) -> bool:
    """True of a string."""
    return isinstance(value, str)


def is_truth(value: Any) -> bool:
    """True of true and false."""
    return isinstance(value, bool)


def _or_none(form: Form) -> Form:
    return lambda value: value is None or form(value)


def _is_list(form: Form) -> Form:
    return lambda value: isinstance(value, list) and all(map(form, value))


def _is_mapping(form: Form) -> Form:
    return lambda value: isinstance(value, dict) and all(map(form, value.values()))


def _is_pair(form: Form) -> Form:
    return lambda value: isinstance(value, list) and len(value) == 2 and all(map(form, value))


def _is_metric(value: Any) -> bool:
    has_value = has(value, unit=is_text, value=_or_none(_is_number), method=_or_none(is_text))
    return has_value and _is_pair(_is_number)(value.get("range", [0, 0]))


def _may_refute(answer: dict[str, Any]) -> bool:
    return _or_none(_is_pair(is_text))(answer.get("refuted"))


def _is_parameters(value: Any) -> bool:
    is_each = _is_mapping(lambda each: isinstance(each, int | str))
    return is_each(value) and str(value.get("threads", 1)).isdecimal()


_is_case = partial(has, workload=is_text, params=_is_parameters, dtype=is_text, device=DEVICES.__contains__)
_is_offer = partial(
    has,
    sentence=is_text,
    is_foreign=is_truth,
    has_numpy=is_truth,
    variants=_is_list(is_text),
    baseline=_or_none(is_text),
    digests=_is_mapping(is_text),
)
CHOICE: Mapping[str, Form] = {
    "cases": _is_list(_is_case),
    "offers": _is_mapping(_is_offer),
    **dict.fromkeys(("files", "refused", "known", "imports", "modules"), _is_list(is_text)),
}
"""Forms of the entries that say which cases a subject has."""
is_warm = partial(has, timer_ns=_is_number, filling=_is_number)
is_turn = partial(
    has, cpu_ns=_is_number, wall_ns=_is_number, waited_ns=_or_none(_is_number), late_ns=_or_none(_is_number)
)
is_beside = partial(has, beside=_is_mapping(_or_none(_is_number)))
