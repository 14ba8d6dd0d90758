"""The rules of other tools, as functions from a series to the indices at which they say that it changed.

Otava and asv are called from their packages (extra `rivals`); the others are written from their published formulas.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from benchmarks.detector_accuracy.noises import Values
from scipy import special

Rule: TypeAlias = Callable[[Values], list[int]]


def perfherder(values: Values) -> list[int]:
    """Treeherder's `detect_changes`: Welch's t > 7 of linearly weighted windows, a local maximum, at least 2 %."""
    n, fewest, most = len(values), 12, 24
    t = np.zeros(n)
    last = 0
    for i in range(n):
        back, fore = values[max(last, i - most) : i][::-1], values[i : i + fewest]
        if len(back) >= fewest and len(fore) == fewest:
            t[i] = _weighted_t(back, fore)
    found = []
    for i in range(1, n - 1):
        if t[i] > 7 and t[i] >= t[i - 1] and t[i] >= t[i + 1]:
            before, after = values[max(0, i - fewest) : i].mean(), values[i : i + fewest].mean()
            if abs(after / before - 1) >= 0.02:
                found.append(i)
    return found


def _weighted_t(back: Values, fore: Values) -> float:
    means, variances = [], []
    for window in (back, fore):
        weights = np.arange(len(window), 0, -1) / len(window)
        mean = float(np.average(window, weights=weights))
        means.append(mean)
        rest = weights.sum() - (weights**2).sum() / weights.sum()
        variances.append(float((weights * (window - mean) ** 2).sum() / rest) / len(window))
    spread = float(np.sqrt(sum(variances)))
    return abs(means[1] - means[0]) / spread if spread else 0.0


def rustc_perf(values: Values) -> list[int]:
    """rustc-perf: one change beyond Q3 + 3 IQR of the 30 before it."""
    changes = np.abs(np.diff(values)) / values[:-1]
    found = []
    for i in range(30, len(changes)):
        first, third = np.quantile(changes[i - 30 : i], [0.25, 0.75])
        if changes[i] >= third + 3 * (third - first):
            found.append(i + 1)
    return found


def conbench(values: Values) -> list[int]:
    """Conbench: |z| > 5 against the mean and standard deviation of up to 100 commits before."""
    found = []
    for i in range(2, len(values)):
        past = values[max(0, i - 100) : i]
        spread = past.std(ddof=1)
        if spread > 0 and abs(values[i] - past.mean()) > 5 * spread:
            found.append(i)
    return found


def bencher_t(values: Values) -> list[int]:
    """Bencher's `t_test`: outside of the prediction interval of 99 % of at most 64 results before, both sides."""
    found = []
    for i in range(2, len(values)):
        past = values[max(0, i - 64) : i]
        limit = _student_limit(len(past)) * past.std(ddof=1) * np.sqrt(1 + 1 / len(past))
        if limit > 0 and abs(values[i] - past.mean()) > limit:
            found.append(i)
    return found


_limits: dict[int, float] = {}


def _student_limit(n: int) -> float:
    if n not in _limits:
        _limits[n] = float(special.stdtrit(n - 1, 0.99))
    return _limits[n]


def _packaged() -> Mapping[str, Rule]:
    rules: dict[str, Rule] = {}
    try:
        from otava.analysis import compute_change_points  # noqa: PLC0415 (where the extra is installed)
    except ImportError:
        pass
    else:

        def otava(values: Values) -> list[int]:
            try:
                return [change.index for change in compute_change_points(values.tolist())[0]]
            except ValueError:  # values of which too many are equal: it has no answer
                return []

        rules["Otava"] = otava
    try:
        from asv.step_detect import detect_steps  # noqa: PLC0415 (as above)
    except ImportError:
        pass
    else:

        def asv(values: Values) -> list[int]:
            steps = detect_steps(list(values))
            return [b[0] for a, b in pairwise(steps) if abs(b[2] / a[2] - 1) >= 0.05]

        rules["asv"] = asv
    return rules


RIVALS: Mapping[str, Rule] = {
    **_packaged(),
    "Perfherder": perfherder,
    "rustc-perf": rustc_perf,
    "Conbench": conbench,
    "Bencher's t": bencher_t,
}
