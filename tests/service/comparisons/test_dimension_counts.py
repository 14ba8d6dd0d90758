"""Series of a comparison are counted by the values of each dimension as reading all of their cases would count them."""

from collections import Counter

import numpy as np
import pytest
from sqlalchemy import text

from pullback_service import statements
from pullback_service.comparisons import dimension_counts
from pullback_service.comparisons.dimension_counts import case_dimensions
from pullback_service.comparisons.judgements import NaturalOrder

pytestmark = pytest.mark.anyio

PARAMS = [
    {"n": 1, "act": "tanh"},
    {"n": 1.5, "act": "tanh"},
    {"n": "1.5"},
    {"n": 1, "lr": 1e-7, "on": True, "of": None, "at": [1, {"a": 2}]},
    {},
]


def in_order_of_ids(cases):
    return NaturalOrder(np.array(cases, np.int64), np.array([], np.int64))


@pytest.fixture
async def cases(client, reports, session):
    """Cases of two workloads, one without a device, in the order of their ids."""
    made = []
    for place, params in enumerate(PARAMS):
        case = reports.case(f"work{place % 2}")
        made.append({**case, "case": {**case["case"], "params": params, "device": None if place == 4 else "cpu"}})
    answer = await client.post("/api/v1/reports", json=reports.report(1, cases=made))
    assert answer.status_code == 201, answer.text
    return (await session.scalars(text('SELECT id FROM "case" ORDER BY id'))).all()


async def test_values_are_counted_by_the_series_that_have_them(cases, session):
    series = np.array([id_ for place, id_ in enumerate(cases) for _ in range(place + 1)], np.int64)
    found = await statements.answer(session, case_dimensions(series, in_order_of_ids(cases)))
    rows = (await session.execute(text('SELECT id, workload, device, dtype, params FROM "case"'))).all()
    expected = {}
    for id_, workload, device, dtype, params in rows:
        named = {"workload": workload, "device": device, "dtype": dtype} | {
            f"param.{name}": value for name, value in params.items()
        }
        for name, value in named.items():
            if value is not None or name.startswith("param."):
                expected.setdefault(name, Counter())[repr(value)] += int((series == id_).sum())
    assert {name: {repr(value): count for value, count in each.listed} for name, each in found.items()} == expected
    assert all(each.values == len(each.listed) for each in found.values())
    assert all(
        [count for _, count in each.listed] == sorted((count for _, count in each.listed), reverse=True)
        for each in found.values()
    )


async def test_the_values_of_most_series_are_listed_and_the_others_counted(cases, session, monkeypatch):
    monkeypatch.setattr(dimension_counts, "MOST_VALUES", 1)
    found = await statements.answer(session, case_dimensions(np.array(cases, np.int64), in_order_of_ids(cases)))
    ((value, count),) = found["param.n"].listed
    assert (value, count, found["param.n"].values) == (1, 2, 3)
