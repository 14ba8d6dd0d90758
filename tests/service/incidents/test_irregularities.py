"""Spikes, drift and noisier stretches of a series, which pages show."""

from math import log

import numpy as np
import pytest
from sqlalchemy import select
from tests.service.incidents.conftest import another_number_of_values

from pullback_service.incidents import irregularities
from pullback_service.incidents.irregularities import irregularities_of, newest_of_case
from pullback_service.incidents.trunk_changes import TrunkReading
from pullback_service.models import Project
from pullback_service.models.series import Series
from pullback_service.statements import answer


def observed(values, *, level=(), begin=0):
    return [TrunkReading(begin + place, value, None, None, None, level) for place, value in enumerate(values)]


def noise(n, seed=1, spread=0.01):
    return np.exp(spread * np.random.default_rng(seed).normal(size=n))


def test_two_results_that_stand_out_are_a_spike():
    values = noise(120)
    values[60:62] *= 1.2
    (spike,) = irregularities_of(observed(values))
    assert (spike.kind, spike.first_id, spike.last_id, spike.commits) == ("spike", 60, 61, 2)
    assert spike.size == pytest.approx(log(1.2), abs=0.02)


def test_many_small_steps_are_one_drift():
    values = noise(120) * np.exp(np.clip(np.arange(120) - 40, 0, 40) / 40 * log(1.1))
    (drift,) = irregularities_of(observed(values))
    assert drift.kind == "drift"
    assert drift.commits == drift.last_id - drift.first_id + 1 == pytest.approx(40, abs=15)
    assert drift.size == pytest.approx(log(1.1), abs=0.02)


def test_more_scatter_is_a_noisier_stretch():
    values = np.concatenate([noise(60), noise(60, 2, 0.04)])
    (noisier,) = irregularities_of(observed(values))
    assert (noisier.kind, noisier.first_id) == ("noisier", pytest.approx(60, abs=10))
    assert noisier.size == pytest.approx(log(4), abs=0.5)


def test_of_values_that_may_be_zero_nothing_is_said():
    values = np.concatenate([[0.0], 1e4 * noise(119) + 1000.0 * np.arange(119)])
    assert irregularities_of(observed(values)) == []


def test_two_results_at_the_end_are_no_spike_since_nobody_knows_that_they_went_back():
    factors = np.log(noise(100))
    factors[-2:] += log(1.3)
    ends = np.where(np.arange(100) < 98, 0.008, 0.05)  # as of a busy machine
    readings = [
        TrunkReading(place, 1.0, ratio, ratio - end, ratio + end, ())
        for place, (ratio, end) in enumerate(zip(factors.tolist(), ends.tolist(), strict=True))
    ]
    assert irregularities_of(readings) == []
    again = [*readings, *(TrunkReading(100 + place, 1.0, 0.0, -0.008, 0.008, ()) for place in range(6))]
    assert [each.kind for each in irregularities_of(again)] == ["spike"]


@pytest.mark.parametrize("of_baseline", [True, False])
def test_a_drift_of_the_baseline_is_none_of_the_variant(of_baseline):
    ratios = np.log(noise(120)) + np.clip(np.arange(120) - 40, 0, 40) / 40 * log(1.12)
    own = 2.0 * noise(120, 4) if of_baseline else 2.0 * np.exp(ratios)
    readings = [
        TrunkReading(place, value, ratio, None, None, ())
        for place, (value, ratio) in enumerate(zip(own.tolist(), ratios.tolist(), strict=True))
    ]
    assert [each.kind for each in irregularities_of(readings)] == ([] if of_baseline else ["drift"])


def test_steps_and_returns_are_for_incidents_and_readings_against_the_baseline_are_another_level_than_values():
    values = noise(120)
    values[60:] *= 1.2
    values[90:] /= 1.2
    assert irregularities_of(observed(values)) == []
    assert irregularities_of([*observed(noise(40)), *observed(noise(40, 3, 0.2), level=(1,), begin=40)]) == []


@pytest.mark.anyio
async def test_the_newest_readings_of_the_trunk_alone_are_read(history, reports, database, monkeypatch):
    monkeypatch.setattr(irregularities, "NEWEST", 3)
    for number in range(1, 7):
        await history.client.post("/api/v1/reports", json=another_number_of_values(history.commit(number), number))
    other = history.commit(7)
    other["commit"]["branch"] = "feature"
    await history.client.post("/api/v1/reports", json=other)
    async with database.reading() as session:
        (project,) = await session.scalars(select(Project.id))
        series = (await session.scalars(select(Series).where(Series.metric == "time"))).first()
        found = await answer(session, newest_of_case(project, series.case_id, series.machine_id))
    assert {(each.variant, each.metric) for each in found} == {("fused", "time"), ("unfused", "time")}
    for each in found:
        assert [each.shas[one.commit_id] for one in each.readings] == [reports.sha(number) for number in (5, 6)]
        assert len({one.level for one in each.readings}) == 1
        assert all((one.log_ratio is None) == (each.variant == "unfused") for one in each.readings)
