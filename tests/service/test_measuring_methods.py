"""Methods without the number of values, in Python and in Postgres."""

import pytest
from sqlalchemy import text

from pullback_service.measuring_methods import differ, without_counts


@pytest.mark.parametrize(
    ("method", "without"),
    [
        (None, None),
        ("nep49", "nep49"),
        ("median of 12 rounds", "median of rounds"),
        ("median of rounds", "median of rounds"),
        ("median of a process, 60 values in all", "median of a process"),
        ("mean of 37 runs, as GradBench scores them", "mean of runs, as GradBench scores them"),
        ("mean of 40", "mean"),
        ("mean of 3 processes", "mean of 3 processes"),
        ("least of 3 rounds", "least of 3 rounds"),
    ],
)
async def test_the_number_of_values_is_no_part_of_a_method_in_python_nor_in_postgres(method, without, database):
    assert without_counts(method) == without
    condition = differ("method", "other")
    query = text(  # our own words
        f"SELECT {condition} FROM (VALUES (cast(:method AS text), cast(:other AS text))) given (method, other)"  # noqa: S608
    )
    async with database.reading() as session:
        for other, is_other in ((without, False), (method, False), ("median of a CPU", True)):
            row = await session.execute(query.bindparams(method=method, other=other))
            assert row.scalar_one() is is_other


pytestmark = pytest.mark.anyio
