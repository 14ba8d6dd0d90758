"""What A/A says of a machine."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from pullback_service.machines.noise import SelfComparison, noise_by, noise_of

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def compared(groups, *, log_ratio=0.001, outcome="same", workload="w", at=NOW):
    return SelfComparison(at, workload, log_ratio, groups, outcome)


def test_until_there_are_twenty_groups_the_floor_is_provisional():
    assert noise_of([]) == noise_of([compared([], log_ratio=None, outcome="failed")])
    few = noise_of([compared([0.5] * 19)])
    assert (few.floor, few.provisional, few.groups) == (0.02, True, 19)
    assert noise_of([compared([0.5] * 20)]).provisional is False


def test_the_floor_is_the_95th_percentile_of_groups_wherever_they_lie():
    groups = np.random.default_rng(1).normal(0, 0.003, 400).tolist()
    noise = noise_of([compared(groups[start : start + 20]) for start in range(0, 400, 20)])
    assert noise.floor == pytest.approx(np.quantile(np.abs(groups), 0.95))
    assert (noise.groups, noise.comparisons, noise.false_alarms) == (400, 20, 0)


def test_claims_of_a_difference_are_false_alarms():
    found = [compared([0.01], outcome=outcome) for outcome in ("faster", "slower", "same", "ambiguous")]
    assert noise_of(found).false_alarms == 2


def test_a_comparison_that_came_without_groups_counts_as_one():
    noise = noise_of([compared((), log_ratio=-0.004)] * 20)
    assert (noise.groups, noise.floor) == (20, 0.004)


def test_parts_stand_in_order_with_their_own_figures():
    found = [
        compared([0.1] * 20, workload="b"),
        compared([0.2] * 20, workload="a", at=NOW - timedelta(days=1)),
        compared([0.3] * 20, workload="b"),
    ]
    by_workload = noise_by(found, lambda each: each.workload)
    assert [(name, noise.groups) for name, noise in by_workload] == [("a", 20), ("b", 40)]
    assert by_workload[0][1].last_at == NOW - timedelta(days=1)
    assert [day.isoformat() for day, _ in noise_by(found, lambda each: each.at.date())] == ["2026-01-01", "2026-01-02"]
