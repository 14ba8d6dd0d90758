"""One case across commits: whole where it is short, thinned where it is long, with what every point followed."""

from functools import partial

import pytest
from sqlalchemy import select

from pullback_service.ids import ProjectId
from pullback_service.models import Project, Series
from pullback_service.series import case_history as queries
from pullback_service.series.overview_data import lines_at
from pullback_service.series.queries import machines_of
from pullback_service.series.sketches import sketches_of
from pullback_service.statements import answer, together
from pullback_service.steps.queries import news_of

pytestmark = pytest.mark.anyio


async def upload(client, *reports):
    for report in reports:
        response = await client.post("/api/v1/reports", json=report)
        assert response.status_code == 201, response.text


async def asked(session, *, last=100, metrics=("time", "array_bytes")):
    project = ProjectId(await session.scalar(select(Project.id).where(Project.name == "demo")))
    machine = (await answer(session, machines_of(project)))[0]
    case = next(iter(await answer(session, queries.cases_of_workload(project, "dense_bias_act"))))
    series = (await answer(session, queries.series_of_workload(project, "dense_bias_act"))).get(
        (case.id, machine.id), []
    )
    wanted = [one.id for one in series if one.metric in metrics]
    async with together(session) as ask:
        newest = queries.newest_of_case(ask, case.id, machine.id, wanted, last=last)
    found, _ = await queries.case_history(
        session, project, series, newest(), partial(news_of, [one.id for one in series])
    )
    return found


async def drawn(session, found):
    """The points of a history with the series that they are of."""
    series = {one.id: one for one in await session.scalars(select(Series))}
    return [(series[point.series_id], point) for point in found.readings]


async def changed(session, found):
    """Counts that are news in the window of a history."""
    series = (await session.scalars(select(Series.id))).all()
    return [one for one in await answer(session, news_of(series, found.commits[0].place)) if one.series.exact]


async def test_the_newest_commits_of_a_case_come_with_everything_measured_there(client, reports, session):
    await upload(client, *(reports.report(number) for number in range(1, 7)))
    found = await asked(session, last=3)
    assert [commit.sha for commit in found.commits] == [reports.sha(number) for number in (4, 5, 6)]
    assert {series.metric for series, _ in await drawn(session, found)} == {"time", "array_bytes"}
    assert {point.commit_id for point in found.readings} == {commit.id for commit in found.commits}
    assert not found.thinned


async def test_commits_come_in_their_order_however_they_arrived_and_those_that_failed_with_them(
    client, reports, session
):
    broken = reports.case(gradient={"ok": False}, variants=[], paired=[])
    await upload(client, reports.report(4), reports.report(1), reports.report(3, cases=[broken]), reports.report(2))
    await upload(client, reports.report(2))  # a second report at a commit is no commit more
    found = await asked(session, last=3)
    assert [commit.sha for commit in found.commits] == [reports.sha(number) for number in (2, 3, 4)]
    second, _, fourth = (commit.id for commit in found.commits)
    assert [point.commit_id for point in found.readings] == [second, fourth] * 4
    (failure,) = found.failures
    assert (failure.commit.sha, failure.kind) == (reports.sha(3), "gradient")


@pytest.mark.long
async def test_a_long_history_keeps_extremes_and_tells_what_each_point_followed(client, reports, session, monkeypatch):
    ratios = [-0.5 + 0.001 * number for number in range(1, 41)]
    ratios[20] = 0.7
    uploads = [reports.report(n, cases=[reports.case(log_ratio=ratio)]) for n, ratio in enumerate(ratios, 1)]
    await upload(client, *uploads)
    monkeypatch.setattr(queries, "MOST_MARKS", 16)
    found = await asked(session, metrics=("time",))
    fused = [point for series, point in await drawn(session, found) if series.variant == "fused"]
    assert len(found.commits) == 40
    assert found.thinned
    assert 4 <= len(fused) <= 16
    peak = next(point for point in fused if point.ratio.log_ratio == pytest.approx(0.7))
    followed = found.before[peak.series_id, peak.commit_id]
    assert followed.ratio.log_ratio == pytest.approx(ratios[19])
    assert followed.report_id == uploads[19]["id"]


@pytest.mark.long
async def test_several_reports_at_a_commit_leave_no_other_commit_out(client, reports, session, monkeypatch):
    """What is asked for are commits: three times as many reports must not make two thirds of them disappear, unsaid."""
    for number in range(1, 21):
        for place in range(3):
            fused = reports.case(log_ratio=-0.01 * number - 0.001 * place)
            fused["paired"][0]["n"] = 20 + place % 2  # so that neither the oldest nor the newest speaks
            quality = "busy" if place == 1 and number == 5 else "clean"
            await upload(client, reports.report(number, cases=[fused], quality=quality))
    monkeypatch.setattr(queries, "MOST_MARKS", 16)
    found = await asked(session, last=18, metrics=("time",))
    assert [commit.sha for commit in found.commits] == [reports.sha(number) for number in range(3, 21)]
    assert found.thinned
    number_of = {commit.id: number for number, commit in enumerate(found.commits, 3)}
    fused = [point for series, point in await drawn(session, found) if series.variant == "fused"]
    followed = {
        number_of[point.commit_id]: found.before[point.series_id, point.commit_id].ratio.log_ratio
        for point in fused[1:]
    }
    said = {number: -0.01 * number - (0.002 if number == 5 else 0.001) for number in range(3, 21)}
    assert followed == {number: pytest.approx(said[number - 1]) for number in followed}


async def test_the_oldest_commit_of_a_window_speaks_with_all_of_its_reports(client, reports, session, monkeypatch):
    for groups in (30, 20):  # the first, which speaks, lies one row further back than there are commits
        fused = reports.case(log_ratio=-0.01 * groups)
        fused["paired"][0]["n"] = groups
        await upload(client, reports.report(1, cases=[fused]))
    await upload(client, reports.report(2, cases=[reports.case(log_ratio=0.5)]))  # a mark, for it is the highest
    await upload(client, *(reports.report(number) for number in range(3, 18)))
    monkeypatch.setattr(queries, "MOST_MARKS", 16)
    found = await asked(session, last=17, metrics=("time",))
    assert len(found.commits) == 17
    second = found.commits[1].id
    said = [before.ratio.log_ratio for (_, commit), before in found.before.items() if commit == second]
    assert [ratio for ratio in said if ratio is not None] == [pytest.approx(-0.3)]


@pytest.fixture
def counting(reports):
    """A report in which `fused` takes so many bytes of arrays."""

    def counting(number, bytes_, **parts):
        variant = reports.variant("fused")
        variant["metrics"]["array_bytes"]["value"] = bytes_
        return reports.report(number, cases=[reports.case(variants=[reports.variant("unfused"), variant])], **parts)

    return counting


async def test_counts_that_changed_are_told_of_all_exact_metrics(client, counting, session):
    uploads = [counting(n, bytes_) for n, bytes_ in ((1, 100), (2, 100), (3, 160))]
    await upload(client, *uploads)
    found = await asked(session, metrics=("time",))
    (change,) = await changed(session, found)
    assert (change.series.variant, change.series.metric) == ("fused", "array_bytes")
    assert (change.before.value, change.now.value) == (100, 160)
    assert change.step.commit_id == found.commits[-1].id
    assert [change.before.report_id, change.now.report_id] == [uploads[1]["id"], uploads[2]["id"]]


async def test_what_a_busy_report_counted_is_no_change_where_a_clean_one_counted_too(client, counting, session):
    clean = [counting(n, bytes_) for n, bytes_ in ((1, 100), (2, 160), (2, 170), (3, 170), (4, 170))]
    noisy = [counting(2, 99, quality="busy"), counting(3, 99, quality="busy")]
    await upload(client, *clean, *noisy)
    found = await asked(session, metrics=("array_bytes",))
    (change,) = await changed(session, found)
    assert (change.before.value, change.now.value, change.step.commit_id) == (100, 170, found.commits[1].id)
    assert [change.before.report_id, change.now.report_id] == [clean[0]["id"], clean[2]["id"]]
    fused = [point.value for series, point in await drawn(session, found) if series.variant == "fused"]
    assert fused == [100, 170, 170, 170]  # as the curve says


async def test_reports_of_one_commit_are_one_point_as_everywhere(client, reports, session):
    """The page's readings are those that everybody reads, of all reports pooled."""
    ratios = {1: (-0.3, -0.2, -0.25), 2: (-0.1,)}
    for number, of_commit in ratios.items():
        await upload(client, *(reports.report(number, cases=[reports.case(log_ratio=ratio)]) for ratio in of_commit))
    noisy = reports.report(2, cases=[reports.case(log_ratio=0.4)], quality="busy")
    await upload(client, noisy)
    found = await asked(session)
    series = {reading.series_id for reading in found.readings}
    cells = await answer(session, lines_at(series, [commit.id for commit in found.commits]))
    assert set(found.readings) == {cell.reading for cell in cells}
    fused = [reading for one, reading in await drawn(session, found) if (one.variant, one.metric) == ("fused", "time")]
    assert [(reading.ratio.log_ratio, reading.quality, reading.reports) for reading in fused] == [
        (-0.25, "clean", 3),
        (-0.1, "clean", 2),
    ]


async def test_the_report_of_a_point_is_the_one_whose_count_stands_for_all(client, counting, session):
    """Which software a count was made with is looked up for it."""
    clean, newer = counting(1, 100), counting(1, 110)
    last = counting(2, 120)
    await upload(client, clean, newer, counting(1, 999, quality="busy"), last)
    found = await asked(session)
    counts = [
        (point.report_id, point.value)
        for series, point in await drawn(session, found)
        if (series.variant, series.metric) == ("fused", "array_bytes")
    ]
    assert counts == [(newer["id"], 110), (last["id"], 120)]
    ids = {point.series_id for point in found.readings}
    cells = await answer(session, lines_at(ids, [commit.id for commit in found.commits]))
    assert {(cell.reading.report_id, cell.reading.commit_id) for cell in cells} == {
        (newer["id"], found.commits[0].id),
        (last["id"], found.commits[1].id),
    }


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("last", [100, 19], ids=["all are read", "Postgres says who speaks"])
async def test_a_mark_of_a_thinned_history_follows_the_count_that_stands_for_all(
    client, counting, session, monkeypatch, last
):
    several = [counting(1, 100), counting(1, 110), counting(1, 999, quality="busy")]
    for report, groups in zip(several, (40, 20, 40), strict=True):  # a ratio of more groups, of an older count
        report["cases"][0]["paired"][1] |= {"n": groups}
    await upload(client, *several, *(counting(number, 120) for number in range(2, 20)))
    monkeypatch.setattr(queries, "MOST_MARKS", 16)
    found = await asked(session, last=last, metrics=("array_bytes",))
    assert found.thinned
    series = next(series for series, _ in await drawn(session, found) if series.variant == "fused")
    followed = found.before[series.id, found.commits[1].id]
    assert (followed.value, followed.report_id) == (110, several[1]["id"])


async def test_a_sketch_says_of_several_reports_what_the_curve_says(client, reports, session):
    """The machine of the page is among those side by side: two numbers for one thing would be one too many."""
    for number, ratios in {1: (-0.3, -0.2), 2: (-0.1,), 3: (-0.5, -0.4, -0.45)}.items():
        for place, ratio in enumerate(ratios):
            seconds = [1 + 0.1 * number + 0.01 * place, 1.3, 1.5]
            fused = reports.case(
                log_ratio=ratio, variants=[reports.variant("unfused"), reports.variant("fused", seconds=seconds)]
            )
            fused["paired"][0]["n"] = 40 - 10 * place  # so that the oldest speaks
            await upload(client, reports.report(number, cases=[fused]))
    await upload(client, reports.report(3, cases=[reports.case(log_ratio=0.4)], quality="busy"))
    found = await asked(session, metrics=("time",))
    project = ProjectId(await session.scalar(select(Project.id).where(Project.name == "demo")))
    ((case, machines),) = (await answer(session, queries.cases_of_workload(project, "dense_bias_act"))).items()
    sketches = {one.variant: one for one in await answer(session, sketches_of(case.id, "time", machines, last=3))}
    curves = {}
    for series, point in await drawn(session, found):
        curves.setdefault(series.variant, []).append((point.value, point.ratio.log_ratio))
    assert {name: [*zip(one.values, one.log_ratios, strict=True)] for name, one in sketches.items()} == curves
    assert [ratio for _, ratio in curves["fused"]] == pytest.approx([-0.3, -0.1, -0.5])
    assert sketches["fused"].places == [0, 1, 2]
