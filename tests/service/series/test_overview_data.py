"""What the overview reads: chosen cases, how they stand, what changed."""

import pytest
from sqlalchemy import select
from tests.service.readings.making import mark_of

from pullback_service.ids import ProjectId
from pullback_service.models import Project
from pullback_service.readings.queries import marks_since
from pullback_service.series import overview_data, queries
from pullback_service.series.overview_data import CaseChoice
from pullback_service.statements import answer
from pullback_service.steps.queries import news_at

pytestmark = pytest.mark.anyio


async def upload(client, *reports):
    for report in reports:
        response = await client.post("/api/v1/reports", json=report)
        assert response.status_code == 201, response.text


async def here(session, name=None):
    """The project and a machine that measured it."""
    project = ProjectId(await session.scalar(select(Project.id).where(Project.name == "demo")))
    machines = await answer(session, queries.machines_of(project))
    return project, next(machine.id for machine in machines if name in {None, machine.name})


async def measured_commits(session, project, machine, **which):
    return (await answer(session, overview_data.measured_last(project, machine, **which)))[::-1]


async def labels(session, **choice):
    project, machine = await here(session)
    return [
        case.workload for case in await answer(session, overview_data.cases_of(project, machine, CaseChoice(**choice)))
    ]


async def test_cases_are_chosen_by_words_suite_and_device(client, reports, session):
    night = reports.report(2, cases=[reports.case("dense_bias_act"), reports.case("conv")])
    night["harness"]["suite"] = "standard"
    quick = reports.report(1, cases=[reports.case("dense_bias_act"), reports.case("lstm")])
    quick["harness"]["suite"] = "quick"
    await upload(client, quick, night)
    assert await labels(session) == ["conv", "dense_bias_act", "lstm"]
    assert await labels(session, text="bias") == ["dense_bias_act"]
    assert await labels(session, suite="standard") == ["conv", "dense_bias_act"]
    assert await labels(session, device="tpu") == []
    project, machine = await here(session)
    assert await answer(session, overview_data.suites_of(project, machine)) == ("quick", "standard")
    assert await answer(session, overview_data.devices_of(project)) == ("cpu",)


async def test_a_case_stands_at_its_newest_commit_as_the_matrix_says(client, reports, session):
    cases = [reports.case("a", log_ratio=-0.1), reports.case("b", log_ratio=-0.2)]
    other = reports.case("a", variants=[reports.variant("unfused", seconds=(5.0, 6.0))], paired=[])
    await upload(
        client, reports.report(1, cases=cases), reports.report(2, cases=cases[:1]), reports.report(2, cases=[other])
    )
    project, machine = await here(session)
    known = await answer(session, overview_data.cases_of(project, machine, CaseChoice()))
    stood = await answer(session, overview_data.standings(machine, [case.id for case in known], "time"))
    matrix = {
        (cell.case.id, cell.variant): cell.reading
        for cell in (await queries.latest_matrix(session, project)).cells
        if cell.metric == "time"
    }
    assert {(one.case_id, one.variant): one.reading for one in stood} == matrix
    assert {metric.name for metric in await answer(session, overview_data.metrics_of(machine, [known[0].id]))} >= {
        "time",
        "array_bytes",
    }


async def test_all_cases_stand_in_one_statement(client, reports, session, count_statements):
    await upload(client, *(reports.report(n, cases=[reports.case(f"w{i}") for i in range(8)]) for n in range(1, 6)))
    project, machine = await here(session)
    known = await answer(session, overview_data.cases_of(project, machine, CaseChoice()))
    async with count_statements() as statements:
        stood = await answer(session, overview_data.standings(machine, [case.id for case in known], "time"))
    assert len(statements) == 1
    assert "LATERAL" in statements[0]
    assert len(stood) == 16


@pytest.fixture
def measured(reports):
    """A report in which `fused` took so many seconds in each process and so many bytes of arrays."""

    def measured(number, *, log_ratio=-0.5, doubt=0.01, groups=20, seconds=(0.6,), array_bytes=100.0, **parts):
        variants = [reports.variant("unfused"), reports.variant("fused", seconds=seconds, array_bytes=array_bytes)]
        case = reports.case(log_ratio=log_ratio or 0.0, variants=variants)
        interval = {"low": (log_ratio or 0.0) - doubt, "high": (log_ratio or 0.0) + doubt}
        case["paired"] = [] if log_ratio is None else [case["paired"][0] | interval | {"n": groups}]
        return reports.report(number, cases=[case], **parts)

    return measured


async def standing(session, metric, variant="fused"):
    project, machine = await here(session)
    known = await answer(session, overview_data.cases_of(project, machine, CaseChoice()))
    stood = await answer(session, overview_data.standings(machine, [case.id for case in known], metric))
    return next(one.reading for one in stood if one.variant == variant)


async def test_a_case_stands_where_its_reports_pooled_do(client, measured, session):
    """Two clean reports, and a busy one that came last and says otherwise."""
    await upload(
        client,
        measured(1, log_ratio=-0.4, groups=20, seconds=(0.1, 0.5), array_bytes=300),
        measured(1, log_ratio=-0.3, groups=5, seconds=(0.3, 0.4, 0.9), array_bytes=200),
        measured(1, log_ratio=0.7, groups=40, seconds=(8.0,), array_bytes=900, quality="busy"),
    )
    timed = await standing(session, "time")
    assert (timed.value, timed.ratio.log_ratio, timed.ratio.n) == (0.4, -0.4, 20)
    assert timed.ratio[1:3] == pytest.approx((-0.41, -0.39))
    assert (timed.outcome, timed.quality) == ("faster", "clean")
    counted = await standing(session, "array_bytes")
    assert (counted.value, counted.quality) == (200, "clean")


async def test_busy_reports_stand_for_a_commit_that_has_no_others(client, measured, session):
    await upload(client, measured(1), measured(2, array_bytes=300, seconds=(7.0,), quality="busy"))
    timed, counted = await standing(session, "time"), await standing(session, "array_bytes")
    assert (timed.value, timed.quality, counted.value) == (7.0, "busy", 300)


@pytest.mark.parametrize("metric", ["time", "array_bytes"])
async def test_sparks_say_of_several_reports_what_the_curves_say(client, measured, session, metric):
    await upload(
        client,
        measured(1),
        measured(2, log_ratio=-0.2, groups=20, seconds=(0.2,), array_bytes=50),
        measured(2, log_ratio=-0.1, groups=10, seconds=(0.4,), array_bytes=60),
        measured(2, log_ratio=0.9, groups=30, seconds=(9.0,), array_bytes=70, quality="busy"),
        measured(3, log_ratio=-0.7),
        measured(3, log_ratio=None, seconds=(0.8,), array_bytes=80),  # a gap for whom the newest report speaks
    )
    project, machine = await here(session)
    commits = await measured_commits(session, project, machine, limit=30)
    drawn = [(await standing(session, metric, variant)).series_id for variant in ("unfused", "fused")]
    cells = await answer(session, overview_data.lines_at(drawn, [commit.id for commit in commits]))
    sparks = await answer(session, marks_since(drawn, (commits[0].ordered_at, commits[0].id), most=100))
    assert set(sparks) == {mark_of(cell.reading) for cell in cells}
    assert len(sparks) == len(cells) == 6
    fused = [(spark.value, spark.ratio.log_ratio) for spark in sorted(sparks) if spark.series_id == drawn[1]]
    expected = {
        "time": [(0.6, -0.5), (pytest.approx(0.3), -0.2), (pytest.approx(0.7), -0.7)],
        "array_bytes": [(100, None), (60, None), (80, None)],
    }
    assert fused == expected[metric]


async def test_commits_that_a_machine_measured_come_oldest_first(client, reports, session):
    await upload(client, *(reports.report(number) for number in (3, 1, 2)), reports.report(4, machine="other"))
    project, machine = await here(session, "box")
    commits = await measured_commits(session, project, machine, limit=2)
    assert [commit.sha for commit in commits] == [reports.sha(2), reports.sha(3)]


async def test_what_was_measured_until_a_commit_holds_nothing_later(client, reports, session):
    await upload(client, *(reports.report(number) for number in (1, 2, 3)))
    project, machine = await here(session)
    commits = await measured_commits(session, project, machine, limit=6)
    first_two = await measured_commits(session, project, machine, limit=2, until=commits[1])
    assert [commit.sha for commit in first_two] == [reports.sha(1), reports.sha(2)]
    series = (await standing(session, "time")).series_id
    cells = await answer(session, overview_data.lines_at([series], [commit.id for commit in first_two]))
    assert [cell.reading.commit_id for cell in cells] == [commit.id for commit in first_two]


async def test_series_that_changed_are_counts_that_differ_and_ratios_that_moved(client, reports, session):
    calm, moved = (reports.case("calm", log_ratio=-0.5), reports.case("moved", log_ratio=-0.9))
    await upload(client, reports.report(1, cases=[calm, moved]))
    moved_again = reports.case("moved", log_ratio=-0.1)
    await upload(client, reports.report(2, cases=[reports.case("calm", log_ratio=-0.505), moved_again]))
    project, machine = await here(session)
    commits = await measured_commits(session, project, machine, limit=6)
    ids = [commit.id for commit in commits]
    news = await answer(session, news_at(machine, ids))
    assert [(one.series.workload, one.series.variant, one.series.metric) for one in news] == [
        ("moved", "fused", "time")
    ]
    assert await answer(session, news_at(machine, ids[:1])) == []


async def changed(session):
    """What changed of `fused`, by metric."""
    project, machine = await here(session)
    commits = await measured_commits(session, project, machine, limit=6)
    news = await answer(session, news_at(machine, [commit.id for commit in commits]))
    return {one.series.metric for one in news if one.series.variant == "fused"}


@pytest.mark.sample(every=2)
@pytest.mark.parametrize(
    "between",
    [
        {"log_ratio": -0.3, "doubt": 0.25, "quality": "busy"},
        {"log_ratio": None, "quality": "busy"},
        {"log_ratio": None},
        {"log_ratio": -0.3, "doubt": 0.25, "groups": 5},
    ],
    ids=["busy", "busy and without a ratio", "without a ratio", "fewer groups"],
)
async def test_a_step_is_told_whatever_another_report_of_the_commit_before_says(client, measured, session, between):
    await upload(
        client, measured(1, log_ratio=-0.5), measured(1, **between), measured(2, log_ratio=-0.1, seconds=(0.9,))
    )
    assert await changed(session) == {"time"}


async def test_what_pooling_takes_away_is_no_change(client, measured, session):
    await upload(
        client,
        measured(1, log_ratio=-0.5, array_bytes=100),
        measured(1, log_ratio=-0.1, array_bytes=900, quality="busy"),
        measured(2, log_ratio=-0.1, array_bytes=900, quality="busy"),
        measured(2, log_ratio=-0.5, array_bytes=700),
        measured(2, log_ratio=-0.1, array_bytes=100, groups=5),
    )
    assert await changed(session) == set()


async def test_a_count_that_only_clean_reports_tell_apart_is_a_change(client, measured, session):
    await upload(
        client, measured(1, array_bytes=100), measured(1, array_bytes=160, quality="busy"),
        measured(2, array_bytes=160),
    )  # fmt: skip
    assert await changed(session) == {"array_bytes"}


async def test_sessions_speak_of_their_candidate(client, reports, session):
    report = reports.report(2)
    report["comparisons"] = [
        {
            "case": report["cases"][0]["case"], "variant": "fused", "metric": "time", "reference": reports.sha(1),
            "candidate": reports.sha(2), "log_ratio": 0.03, "low": 0.02, "high": 0.04, "n": 20, "outcome": "slower",
        }
    ]  # fmt: skip
    await upload(client, reports.report(1), report)
    project, machine = await here(session)
    first, second = await measured_commits(session, project, machine, limit=2)
    (told,) = [one for one in await answer(session, news_at(machine, [first.id, second.id])) if one.is_claim]
    assert (told.series.variant, told.reference.sha, told.step.reference_id, told.step.commit_id) == (
        "fused", reports.sha(1), first.id, second.id,
    )  # fmt: skip
    assert (told.judgement.outcome, told.judgement.evidence) == ("slower", "paired")
    assert await answer(session, news_at(machine, [first.id])) == []
