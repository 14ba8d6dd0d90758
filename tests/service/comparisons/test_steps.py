"""Any series at any two commits: the judgement is that of the comparison of both."""

import itertools
import random

import pytest
from sqlalchemy import select

from pullback_service.commits.models import Commit
from pullback_service.comparisons import queries
from pullback_service.comparisons.steps import Step, judge_steps
from pullback_service.series.choosing import SeriesChoice

pytestmark = pytest.mark.anyio

CASE = {"workload": "dense_bias_act", "params": {"n": 100, "act": "tanh"}, "dtype": "f4", "device": "cpu"}


def statement(chance, reports, older, newer):
    ratio = chance.choice([-0.2, 0.0, 0.05, 0.2])
    outcome = chance.choice(["slower", "faster", "same", "ambiguous", "failed"])
    failed = {"log_ratio": None, "low": None, "high": None, "n": 0} if outcome == "failed" else {}
    return {
        "case": CASE,
        "reference": reports.sha(older),
        "candidate": reports.sha(newer),
        "variant": chance.choice(["fused", "native"]),
        "metric": "time",
        "log_ratio": ratio,
        "low": ratio - 0.02,
        "high": ratio + 0.02,
        "n": chance.choice([1, 5, 20]),
        "outcome": outcome,
        "claim": 0.01,
        "margin": 0.01,
        "margin_is_provisional": chance.random() < 0.3,
    } | failed


def measured(chance, reports, number):
    """A report of a commit: counted alike or not, by other methods and software, disturbed, in part, failed."""
    fused = reports.variant("fused", array_bytes=chance.choice([100.0, 200.0]))
    fused["metrics"]["array_bytes"]["method"] = chance.choice(["nep49", "nep49", "nep49", "tracemalloc"])
    case = reports.case(variants=[reports.variant("unfused", array_bytes=chance.choice([300.0, 300.0, 400.0])), fused])
    if chance.random() < 0.2:
        case["variants"].pop(0)
    if chance.random() < 0.2:
        case |= {"gradient": {"ok": False, "max_rel_error": 0.1}, "variants": [], "paired": []}
    said = [statement(chance, reports, *sorted(chance.sample(range(1, 5), 2))) for _ in range(chance.choice([0, 0, 2]))]
    quality = chance.choice(["clean", "clean", "contaminated"])
    made = reports.report(number, cases=[case], comparisons=said, quality=quality)
    made["machine"]["facts"]["numpy"] = chance.choice(["2.1", "2.1", "2.2"])
    return made


@pytest.mark.parametrize("seed", range(4))
async def test_a_step_is_judged_as_a_comparison_judges_it(client, session, reports, seed):
    chance = random.Random(seed)
    for number in (1, 2, 3, 4, *chance.choices(range(1, 5), k=5)):
        answer = await client.post("/api/v1/reports", json=measured(chance, reports, number))
        assert answer.status_code == 201, answer.text
    commits = (await session.scalars(select(Commit).where(Commit.sha.in_(map(reports.sha, range(1, 5)))))).all()
    expected = {}
    for older, newer in itertools.permutations(commits, 2):
        judged = await queries.compare(session, older, newer, SeriesChoice(project="demo"))
        for shown in await queries.show(session, judged, judged.outcomes):
            expected[Step(shown.compared.key, older.id, newer.id)] = shown.compared
    assert len({one.judgement.outcome for one in expected.values()}) >= 3
    found = await judge_steps(session, expected)
    assert found.keys() == expected.keys()
    for step, compared in expected.items():
        assert found[step].judgement == compared.judgement
        assert (found[step].reference, found[step].candidate) == (compared.reference, compared.candidate)
        assert (found[step].exact, found[step].direction) == (compared.exact, compared.direction)


async def test_of_series_that_nobody_knows_and_of_no_steps_nothing_is_said(client, session, reports):
    await client.post("/api/v1/reports", json=reports.report(1))
    assert await judge_steps(session, []) == {}
    assert await judge_steps(session, [Step((1, 1, "nothing", "time"), 1, 2)]) == {}
