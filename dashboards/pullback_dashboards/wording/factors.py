"""Ratios to the baseline in figures and words: ln(variant / baseline) in, "0.42×" and "2.4× faster than unfused" out.

A ratio is kept as its logarithm and shown as the factor variant / baseline. Below one is better for every metric of ours;
where more is better, as of operations a second, whoever asks for a tone or a mark has to say so.
"""

import math
from dataclasses import dataclass
from typing import Any

from pullback_dashboards.wording import units
from pullback_dashboards.wording.plurals import counted
from pullback_service.ratio import Ratio

DIFFERENT: frozenset[str] = frozenset({"faster", "slower", "less", "more"})
"""Outcomes that say that two are not the same."""
LIKELY: frozenset[str] = frozenset({"likely_faster", "likely_slower"})
"""Outcomes that numbers point to which nobody has measured in turns."""

_TONES = {
    "faster": "better", "slower": "worse",
    "likely_faster": "likely-better", "likely_slower": "likely-worse",
    "same": "plain", "equal": "plain",
    "ambiguous": "unsure",
    "failed": "failed",
}  # fmt: skip
_SIGNS = {
    "better": "▼", "worse": "▲", "likely-better": "▽", "likely-worse": "△", "unsure": "?", "failed": "✕", "plain": "=",
}  # fmt: skip
_WHOLE = 9.95  # percent: from here on two digits are whole ones
_BEYOND = 1e6  # from here on a ratio is written with a power of ten: 1.2e+09
_MOST_DECIMALS = 8
_MANY = math.log(2.995)  # from here on "81×" reads better than "+7960.0 %"
_LARGE = 1.5  # from here on "2.4× faster" reads better than a percentage


@dataclass(frozen=True, kw_only=True)
class RatioNumbers:
    """The ratio in a row of a page, as JSON has it."""

    log_ratio: float | None = None
    low: float | None = None
    high: float | None = None


def numbers_of(ratio: Ratio) -> dict[str, Any]:
    """The fields of `RatioNumbers`."""
    return {"log_ratio": ratio.log_ratio, "low": ratio.low, "high": ratio.high}


def columns_of(ratio: Ratio | RatioNumbers) -> dict[str, float | None]:
    """A ratio in a table of numbers: the factor and both ends of its interval."""
    return {"factor": number(ratio.log_ratio), "low": number(ratio.low), "high": number(ratio.high)}


def shown(ratio: Ratio) -> str:
    """The factor of a ratio beside its interval; empty where there is none."""
    return "" if ratio.log_ratio is None else factor(ratio.log_ratio, ratio.low, ratio.high)


def bounds(ratio: Ratio) -> str:
    """The interval of a ratio; empty where there is none."""
    return "" if ratio.low is None or ratio.high is None else interval(ratio.low, ratio.high)


def factor(log_ratio: float, low: float | None = None, high: float | None = None) -> str:
    """The factor variant / baseline with three significant digits: 0.42×, 1.03×, 12.5×.

    Beside its interval it has as many decimals as that.
    """
    ratio = math.exp(log_ratio)
    if low is not None and high is not None and low < high:
        return f"{_grouped(ratio, units.decimals(math.exp(low), math.exp(high)))}×"
    if ratio >= 100:
        return f"{_grouped(ratio)}×"
    if ratio >= 10:
        return f"{ratio:.1f}×"
    if ratio >= 0.1:
        return f"{ratio:.2f}×"
    return f"{ratio:#.2g}×"


def number(log_ratio: float | None) -> float | None:
    """The factor with six significant digits, for a table of numbers."""
    return None if log_ratio is None else float(f"{math.exp(log_ratio):.6g}")


def interval(low: float, high: float) -> str:
    """The interval of a factor, with the digits that its width supports: 0.41-0.43."""
    narrow, wide = math.exp(low), math.exp(high)
    decimals = units.decimals(narrow, wide)
    return f"{_grouped(narrow, decimals)}–{_grouped(wide, decimals)}"


def doubt(low: float, high: float) -> str:
    """Half the interval's width in percent of the factor: ±1.2 %."""
    half = math.expm1((high - low) / 2) * 100
    return f"±{half:.1f} %" if half < _WHOLE else f"±{_plain(half)} %"


def words(log_ratio: float, *, metric: str, outcome: str | None, baseline: str) -> str:
    """The ratio as a sentence fragment: "2.4× faster than unfused", "58 % less than unfused", "same as unfused"."""
    if outcome == "ambiguous":
        return f"ambiguous against {baseline}: {factor(log_ratio)}"
    if outcome in {"same", "equal"} or log_ratio == 0:
        return f"same as {baseline}"
    ratio = math.exp(abs(log_ratio))
    percent = abs(math.expm1(log_ratio)) * 100
    amount = f"{percent:.1f} %" if percent < _WHOLE else f"{percent:.0f} %"
    less = log_ratio < 0
    if metric != "time":
        if less or ratio < _LARGE:
            return f"{amount} {'less' if less else 'more'} than {baseline}"
        return f"{_times(ratio)} as much as {baseline}"
    if ratio >= _LARGE:
        return f"{_times(ratio)} {'faster' if less else 'slower'} than {baseline}"
    return f"takes {amount} {'less' if less else 'more'} time than {baseline}"


def without_ratio(value: float | None, base: float | None, *, unit: str, baseline: str) -> str:
    """Words for a count and that of the baseline, of which there is no ratio since one of them is zero or less."""
    if value is None or base is None:
        return f"no ratio to {baseline}"
    text = apart(value, base, baseline=baseline)
    if value == 0 < base:
        return f"{text}, unlike {baseline}"
    if value > 0 == base:
        return text
    return f"{text}: {units.quantity(value, unit)} against {units.quantity(base, unit)}"


def apart(value: float, base: float, *, baseline: str) -> str:
    """The difference of two counts without a ratio, without the numbers: none and some where one of them is zero."""
    if value == 0 < base:
        return "none"
    if value > 0 == base:
        return f"some, where {baseline} has none"
    return f"{'less' if value < base else 'more'} than {baseline}"


def likely(outcome: str, log_ratio: float, *, metric: str, label: str) -> str:
    """A change that was measured at two times: "likely 38 % slower", "likely 2.3× faster", "likely 12 % more peak rss".

    `metric` is the name, `label` the same in words. A rate of three quarters is 25 % less, and so is a time.
    """
    ratio = math.exp(abs(log_ratio))
    percent = abs(math.expm1(log_ratio)) * 100
    amount = f"{percent:.1f} %" if percent < _WHOLE else f"{percent:.0f} %"
    if metric == "time":
        return f"likely {_times(ratio) if ratio >= _LARGE else amount} {outcome.removeprefix('likely_')}"
    if log_ratio > 0 and ratio >= _LARGE:
        return f"likely {_times(ratio)} as much {label}"
    return f"likely {amount} {'less' if log_ratio < 0 else 'more'} {label}"


def shift(log_difference: float) -> str:
    """The movement of a ratio, in percent of itself, always with its sign; from three times as much on as a factor: 81×."""
    if log_difference >= _MANY:
        return _times(math.exp(log_difference))
    percent = math.expm1(log_difference) * 100
    sign = "−" if percent < -0.05 else "+" if percent > 0.05 else "±"
    return f"{sign}{_plain(abs(percent), 1)} %"


def step(size: float) -> str:
    """The size of a step, given as natural log, in percent: 1.8 %, 24 %."""
    percent = math.expm1(size) * 100
    return f"{percent:.1f} %" if percent < _WHOLE else f"{_plain(percent)} %"


def against_commit(outcome: str, ratio: Ratio, *, metric: str, reference: str) -> str:
    """A commit against another, measured together: "3.1 % more time than 1a2b3c4d5 (+2.7 % to +3.6 %, 20 groups)"."""
    middle, low, high, groups = ratio
    if middle is None:
        return f"{metric} {outcome} against {reference[:9]}"
    doubts = [] if low is None or high is None else [f"{shift(low)} to {shift(high)}"]
    doubts += [counted(groups, "group")] if groups else []
    if low is not None and low == high:  # a count, which groups make no surer
        doubts = []
    doubt = f" ({', '.join(doubts)})" if doubts else ""
    if outcome in DIFFERENT:
        return f"{_more_or_less(middle, metric, reference)}{doubt}"
    if outcome in LIKELY:
        return f"likely {_more_or_less(middle, metric, reference)}{doubt}"
    if outcome in {"same", "equal"}:
        return f"same {metric} as {reference[:9]}{doubt}"
    return f"{metric} {outcome} against {reference[:9]}: {shift(middle)}{doubt}"


def _more_or_less(log_ratio: float, metric: str, reference: str) -> str:
    """Such as `3.1 % more time than 1a2b3c4d5`, and `81× the time of 1a2b3c4d5`."""
    if log_ratio >= _MANY:
        return f"{_times(math.exp(log_ratio))} the {metric} of {reference[:9]}"
    percent = _plain(abs(math.expm1(log_ratio)) * 100, 1)
    return f"{percent} % {'less' if log_ratio < 0 else 'more'} {metric} than {reference[:9]}"


def tone(outcome: str | None, *, bigger_is_better: bool) -> str:
    """The tone of an outcome for style sheets: better, worse, unsure, failed or plain.

    Less and more say how two values lie, faster and slower already which is the better one.
    """
    if outcome in {"less", "more"}:
        return "better" if (outcome == "more") == bigger_is_better else "worse"
    return _TONES.get(outcome or "", "plain")


def mark(outcome: str | None, *, bigger_is_better: bool) -> str:
    """The sign beside a number that says its outcome without any colour; none where it has none."""
    has_one = outcome in DIFFERENT or outcome in _TONES
    return sign(tone(outcome, bigger_is_better=bigger_is_better)) if has_one else ""


def sign(tone: str) -> str:
    """The sign that says a tone without any colour; none for no tone."""
    return _SIGNS.get(tone, "")


def depth(log_ratio: float | None) -> int:
    """The tint of a cell, 0 to 5: each step is about a factor 1.2, 1.5, 2, 4 away from the baseline."""
    if log_ratio is None:
        return 0
    distance = math.exp(abs(log_ratio))
    return sum(distance >= limit for limit in (1.01, 1.2, 1.5, 2.0, 4.0))


def _times(ratio: float) -> str:
    if ratio > _BEYOND:
        return f"more than {_BEYOND:,.0f}×"
    return f"{ratio:.1f}×" if ratio < 10 else f"{ratio:,.0f}×"


def _grouped(ratio: float, decimals: int = 0) -> str:
    """The ratio with so many decimals, but with a power of ten where nobody would count its digits."""
    return f"{ratio:,.{decimals}f}" if ratio < _BEYOND and decimals < _MOST_DECIMALS else f"{ratio:.2g}"


def _plain(percent: float, decimals: int = 0) -> str:
    return f"{percent:.{decimals}f}" if percent < _BEYOND else f"{percent:.2g}"
