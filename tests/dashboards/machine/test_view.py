from datetime import UTC, datetime

from pullback_dashboards.machine.view import facts_changes, noise_chart
from pullback_service.machines.noise import SelfComparison, noise_of
from pullback_service.models.machines import FactsChange

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def floor(size, groups=20):
    return noise_of([SelfComparison(NOW, "w", 0.0, [size] * groups, "same")])


def test_the_floor_is_drawn_day_by_day_in_percent():
    svg = noise_chart([("2026-03-01", floor(0.01)), ("2026-03-02", floor(0.03)), ("2026-03-03", floor(0.5, 3))])
    assert svg.count("<circle") == 3
    assert svg.count('fill="var(--surface)"') == 1  # the day with three groups is hollow
    for words in ("2026-03-01", "2026-03-03", "assumed", " %"):
        assert words in svg


def test_days_on_which_everything_failed_are_not_drawn():
    assert noise_chart([]) == ""
    assert noise_chart([("2026-03-01", noise_of([]))]) == ""


def test_a_change_names_what_was_told_before_and_after():
    change = FactsChange(
        machine_id=1, at=NOW, before={"numpy": "2.3", "gpu": None}, after={"numpy": "2.4", "memory_gib": 31}
    )
    (told,) = facts_changes([change])
    assert [(fact.name, fact.before, fact.now) for fact in told.facts] == [
        ("numpy", "2.3", "2.4"),
        ("memory gib", "", "31"),
    ]
