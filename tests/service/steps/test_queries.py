"""The resolution of a series holds alike in SQL and in Python."""

from itertools import product

import pytest

from pullback_service import statements
from pullback_service.comparisons.judging import Judgement, as_resolved
from pullback_service.ratio import NO_RATIO
from pullback_service.steps.queries import IS_RESOLVED, JOINED_RESOLUTION

OUTCOMES = ("likely_slower", "likely_faster", "slower", "more", "ambiguous")
EVIDENCE = ("exact", "paired", "ratios", "values")
CHANGES = (-0.2, -0.05, 0.05, 0.2)


@pytest.mark.anyio
async def test_a_step_is_left_out_where_its_judgement_becomes_ambiguous(session):
    steps = list(product(OUTCOMES, EVIDENCE, CHANGES, (None, 0.1)))
    values = {
        "numbers": list(range(len(steps))),
        "outcomes": [outcome for outcome, *_ in steps],
        "evidence": [evidence for _, evidence, *_ in steps],
        "changes": [change for *_, change, _ in steps],
        "resolutions": [resolution for *_, resolution in steps],
    }
    found = await statements.rows(
        session,
        f"""
          WITH step AS (
               SELECT * FROM unnest(%(numbers)s::int[], %(outcomes)s::text[], %(evidence)s::text[], %(changes)s::float[])
                   AS step (series_id, outcome, evidence, log_ratio)),
               series_state AS (
               SELECT * FROM unnest(%(numbers)s::int[], %(resolutions)s::float[]) AS state (series_id, resolution))
        SELECT step.series_id FROM step LEFT JOIN {JOINED_RESOLUTION} WHERE {IS_RESOLVED} ORDER BY 1
        """,  # noqa: S608 - our own words
        values,
    )
    kept = [
        number
        for number, (outcome, evidence, change, resolution) in enumerate(steps)
        if as_resolved(
            Judgement(outcome, evidence=evidence, ratio=NO_RATIO._replace(log_ratio=change)), resolution
        ).outcome
        == outcome
    ]
    assert [number for (number,) in found] == kept
    assert len(kept) < len(steps)
