"""Steps are what readings, parents and statements say, whatever happened in whatever order."""

from itertools import chain
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy import select, text
from tests.service.held_threads import longest_call

from pullback_service import database_rebuild
from pullback_service.database_checks import check
from pullback_service.models import Commit, StoredStep
from pullback_service.readings.projection import project_everything
from pullback_service.reports import retention
from pullback_service.rule_version import RULE
from pullback_service.steps import judging, projection
from pullback_service.steps.projection import OWN_AT_ONCE, in_order, judge_everything, judge_next, unjudged, wrong_steps

pytestmark = pytest.mark.anyio

COMMITS = 6
FIRST, LAST = 1, COMMITS


@pytest.fixture
def run(database_url):
    """Call a function with a database, from a test that is no coroutine."""
    from anyio.from_thread import start_blocking_portal

    from pullback_service.database import Database
    from pullback_service.roles import ALL_PROJECTS

    with start_blocking_portal() as portal:
        database = Database(database_url).seeing(ALL_PROJECTS)
        yield lambda function, *rest: portal.call(function, database, *rest)
        portal.call(database.close)


async def wrong(database):
    """Stored steps that are not what they would be if they were judged anew; those that wait are not looked at."""
    found = set()
    async with database.writing.begin() as session:
        for project in (await session.scalars(text("SELECT id FROM project"))).all():
            judged = "SELECT id FROM commit WHERE project_id = :id AND projected AND judged_by > 0"
            commits = (await session.scalars(text(judged), {"id": project})).all()
            found |= await wrong_steps(session, project, commits)
    return found


async def followed_by_hand(database):
    """What each reading follows, by its definition: (series, commit) to the commit and how it was found."""
    async with database.reading() as session:
        commits = (await session.execute(text("SELECT id, sha, ordered_at FROM commit"))).all()
        told = (await session.execute(text("SELECT commit_id, parent_sha FROM commit_parent WHERE position = 0"))).all()
        readings = (await session.execute(text("SELECT series_id, commit_id FROM reading"))).all()
        right = """
            SELECT series_id, commit_id FROM reading r JOIN series s ON s.id = r.series_id
             WHERE NOT EXISTS (SELECT FROM failure f WHERE f.commit_id = r.commit_id AND f.case_id = s.case_id
               AND f.machine_id = s.machine_id AND kind = 'gradient' AND (f.variant IS NULL OR f.variant = s.variant))
        """
        usable = {tuple(row) for row in await session.execute(text(right))}
    by_sha = {row.sha: row.id for row in commits}
    place = {row.id: (row.ordered_at, row.id) for row in commits}
    parent = {row.commit_id: by_sha[row.parent_sha] for row in told if row.parent_sha in by_sha}

    def ancestors(commit):
        while commit in parent:
            commit = parent[commit]
            yield commit

    found = {}
    for series, commit in readings:
        line = [*ancestors(commit)]
        near = next((each for each in line if (series, each) in usable), None)
        if near is not None:
            found[series, commit] = near, "parent"
            continue
        bound = min(place[each] for each in (commit, *line[-1:]))
        before = max((place[c] for s, c in usable if s == series and place[c] < bound), default=(None, None))[1]
        made_from_it = before is not None and commit in ancestors(before)
        found[series, commit] = (commit, "none") if before is None or made_from_it else (before, "history")
    return found


async def followed_as_stored(database):
    async with database.reading() as session:
        rows = await session.execute(
            select(
                StoredStep.series_id, StoredStep.commit_id, StoredStep.reference_id, StoredStep.via, StoredStep.stale
            ).where(StoredStep.via != "compared")
        )
        return {(row.series_id, row.commit_id): (row.reference_id, row.via) for row in rows if not row.stale}


numbers = st.integers(FIRST, LAST)
events = st.lists(
    st.one_of(
        st.tuples(st.just("upload"), numbers, st.sampled_from(["a", "b", "ab"]), st.integers(0, 5)),
        st.tuples(st.just("upload"), numbers, st.sampled_from(["a", "ab"]), st.integers(0, 5)),
        st.tuples(st.just("child"), numbers, numbers, st.integers(0, 5)),
        st.tuples(st.just("parent"), numbers, numbers, st.sampled_from([None, 2022, 2027])),
        st.tuples(st.just("compare"), numbers, numbers, st.sampled_from(["slower", "same", "failed"])),
        st.tuples(st.just("wrong"), numbers, st.just("a"), st.just(0)),
        st.tuples(st.just("withdraw"), st.integers(0, 13), st.just(0), st.just(0)),
        st.tuples(st.just("roll up"), st.just(0), st.just(0), st.just(0)),
        st.tuples(st.just("forget"), numbers, st.just(0), st.just(0)),
        st.tuples(st.just("work"), st.just(0), st.just(0), st.just(0)),
    ),
    min_size=2,
    max_size=14,
)


def cases_of(reports, named, seed):
    seconds = [(1.0, 1.1, 0.9), (1.3, 1.2, 1.9, 1.1), (0.5,), (2.0, 2.0), (0.6, 0.61, 0.62), (1.0, 1.0, 1.0)][seed]
    return [
        reports.case(
            name, variants=[reports.variant("unfused", seconds=seconds, array_bytes=100.0 + seed // 3)], paired=[]
        )
        for name in named
    ]


def report_of(reports, what, commit, other, more):
    """The report, or None where the event is no report."""
    if what == "upload":
        return reports.report(commit, cases=cases_of(reports, other, more))
    if what == "child":  # measured, and tells its parent
        made = reports.report(commit, cases=cases_of(reports, "a", more))
        made["commit"]["parents"] = [] if other >= commit else [reports.sha(other)]
        return made
    if what == "wrong":
        case = reports.case("a") | {"gradient": {"ok": False, "max_rel_error": 0.1}, "variants": [], "paired": []}
        return reports.report(commit, cases=[case])
    if what == "compare":
        case = {"workload": "a", "params": {"n": 100, "act": "tanh"}, "dtype": "f4", "device": "cpu"}
        ratio = {"slower": (0.2, 0.15, 0.25), "same": (0.0, -0.005, 0.005), "failed": (None, None, None)}[more]
        stated = {
            **dict(zip(("log_ratio", "low", "high"), ratio, strict=True)),
            "case": case, "reference": reports.sha(other), "candidate": reports.sha(commit), "variant": "unfused",
            "metric": "time", "n": 20 if ratio[0] is not None else 0, "outcome": more,
        }  # fmt: skip
        return reports.report(commit, cases=[], comparisons=[stated])
    return None


@pytest.mark.long
@settings(
    max_examples=25,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(events)
def test_steps_are_what_they_would_be_if_judged_anew_in_any_order_of_events(send, run, reports, monkeypatch, taken):
    """All that can be is judged at once, and anew one by one, which must come to the same."""

    def wrong_steps_one_by_one():
        with monkeypatch.context() as patched:
            patched.setattr(judging, "FEWEST_AT_ONCE", 1_000)
            return run(wrong)

    monkeypatch.setattr(judging, "FEWEST_AT_ONCE", 1)
    run(empty)
    sent = []
    for what, commit, other, more in taken:
        made = report_of(reports, what, commit, other, more)
        if made is not None:
            answer = send("POST", "/api/v1/reports", json=made)
            assert answer.status_code == 201, answer.text
            sent.append(made["id"])
        elif what == "withdraw" and sent:
            answer = send("POST", f"/api/v1/reports/{sent[commit % len(sent)]}/withdraw")
            assert answer.status_code == 200, answer.text
        elif what == "parent":
            log = [{"sha": reports.sha(commit), "parents": [reports.sha(other)] if other < commit else []}]
            if other < commit and more is not None:
                log.append({"sha": reports.sha(other), "authored_at": f"{more}-01-01T00:00:00Z"})
            answer = send("POST", "/api/v1/commits", json={"project": "demo", "branch": "main", "commits": log})
            assert answer.status_code == 200, answer.text
        elif what == "roll up":
            run(roll_up)
        elif what == "forget":  # as an earlier release would have stored it
            run(forget, reports.sha(commit))
        elif what == "work":
            run(work)
        assert wrong_steps_one_by_one() == set()
    run(work)
    assert wrong_steps_one_by_one() == set()
    assert run(followed_as_stored) == run(followed_by_hand)


async def empty(database):
    async with database.writing.begin() as session:
        await session.execute(text("DELETE FROM project"))
        await session.execute(text("INSERT INTO project (name) VALUES ('demo')"))


async def roll_up(database):
    async with database.writing.begin() as session:
        await session.execute(text("UPDATE project SET raw_days = 1"))
        await session.execute(text("UPDATE report SET received_at = received_at - interval '2 days'"))
    await retention.apply(database)


async def forget(database, sha):
    async with database.writing.begin() as session:
        for statement in (
            "DELETE FROM step USING commit WHERE commit.id = step.commit_id AND sha = :sha",
            "DELETE FROM reading USING commit WHERE commit.id = reading.commit_id AND sha = :sha",
            "UPDATE commit SET projected = false, judged_by = 0 WHERE sha = :sha",
        ):
            await session.execute(text(statement), {"sha": sha})
        # What followed it was judged by what it no longer finds, which the earlier release would not have seen either.
        await session.execute(text("DELETE FROM step"))
        await session.execute(text("UPDATE commit SET judged_by = 0"))


async def work(database):
    async for _ in project_everything(database):
        pass
    async for _ in judge_everything(database):
        pass
    async with database.reading() as session:
        assert await unjudged(session) == 0
        assert not (await session.scalars(select(StoredStep.series_id).where(StoredStep.stale))).all()


async def upload(client, report):
    answer = await client.post("/api/v1/reports", json=report)
    assert answer.status_code == 201, answer.text


@pytest.mark.long
async def test_a_database_is_checked_and_rebuilt(client, reports, database, database_url):
    for number in (1, 2, 3):
        await upload(client, reports.report(number))
    assert check(database_url) == []
    async with database.writing.begin() as session:
        await session.execute(text("UPDATE step SET outcome = 'more' WHERE evidence = 'exact'"))
        await session.execute(text("DELETE FROM step WHERE evidence = 'ratios'"))
    changed = (await database_rebuild.rebuild_everything(database_url, write=False)).steps.changed
    assert changed == 6  # two counts and a ratio of two commits
    assert check(database_url) == [
        f"{changed} steps do not match the readings of their series: run `pullback db rebuild`."
    ]
    assert (await database_rebuild.rebuild_everything(database_url, write=True)).steps.changed == changed
    assert check(database_url) == []


async def test_a_parent_that_touches_much_is_left_to_the_task_and_not_shown_until_then(
    client, reports, database, monkeypatch
):
    """The steps of the child wait, marked; everything else is as it should be."""
    for number in (1, 2, 4):
        await upload(client, reports.report(number))
    monkeypatch.setattr(projection, "AT_ONCE", 2)
    log = [{"sha": reports.sha(3), "parents": [reports.sha(1)]}]
    answer = await client.post("/api/v1/commits", json={"project": "demo", "branch": "main", "commits": log})
    assert answer.status_code == 200, answer.text
    async with database.reading() as session:
        waiting = select(Commit.sha).join(StoredStep, StoredStep.commit_id == Commit.id).where(StoredStep.stale)
        assert set(await session.scalars(waiting)) == {reports.sha(4)}
    assert await wrong(database) == set()
    await work(database)
    assert await wrong(database) == set()
    assert await followed_as_stored(database) == await followed_by_hand(database)


async def stale_rows(database):
    async with database.reading() as session:
        return (await session.execute(text("SELECT ctid, xmin, rule FROM step WHERE stale ORDER BY ctid"))).all()


@pytest.mark.parametrize("rule", [projection.NEW, RULE])
async def test_a_small_upload_leaves_many_steps_that_wait_as_they_are(client, reports, database, monkeypatch, rule):
    for number in (1, 2, 4):
        await upload(client, reports.report(number))
    monkeypatch.setattr(projection, "AT_ONCE", 2)
    log = [{"sha": reports.sha(3), "parents": [reports.sha(1)]}]
    answer = await client.post("/api/v1/commits", json={"project": "demo", "branch": "main", "commits": log})
    assert answer.status_code == 200, answer.text
    async with database.writing.begin() as session:
        await session.execute(text("UPDATE step SET rule = :rule WHERE stale"), {"rule": rule})
    waiting = await stale_rows(database)
    assert len(waiting) > 2
    await upload(client, reports.report(5))
    assert await stale_rows(database) == waiting
    await work(database)
    assert await wrong(database) == set()


async def test_steps_of_new_readings_that_wait_are_left_to_the_task(client, reports, database):
    """It looks for what follows them, which an upload of something else does not."""
    for number in (1, 2):
        await upload(client, reports.report(number))
    async with database.writing.begin() as session:
        await session.execute(text("UPDATE step SET stale = true, rule = 0"))
    await upload(client, reports.report(3, cases=[reports.case(workload="other")]))
    assert {row.rule for row in await stale_rows(database)} == {projection.NEW}
    await work(database)
    assert await wrong(database) == set()


async def test_so_many_steps_of_an_upload_are_judged_at_once_and_the_rest_waits(client, reports, database, monkeypatch):
    for number in (1, 3):
        await upload(client, reports.report(number))
    monkeypatch.setattr(projection, "OWN_AT_ONCE", 2)
    await upload(client, reports.report(2))
    of_all = len(await rows_at(database, reports.sha(2)))
    waiting = [row for row in await rows_at(database, reports.sha(2)) if row.stale]
    assert len(waiting) == of_all - 2 > 0
    assert await wrong(database) == set()
    await work(database)
    assert await wrong(database) == set()
    assert await followed_as_stored(database) == await followed_by_hand(database)


async def rows_at(database, sha):
    async with database.reading() as session:
        found = select(StoredStep.series_id, StoredStep.stale).join(Commit, Commit.id == StoredStep.commit_id)
        return (await session.execute(found.where(Commit.sha == sha))).all()


async def test_a_new_version_of_the_rule_judges_all_of_history_again_while_uploads_go_on(
    client, reports, database, monkeypatch
):
    for number in (1, 2, 3):
        await upload(client, reports.report(number))
    async with database.writing.begin() as session:
        await session.execute(text("UPDATE step SET rule = 0, outcome = 'more' WHERE via <> 'none'"))
        await session.execute(text("UPDATE commit SET judged_by = 0"))
        assert await unjudged(session) == 3
        monkeypatch.setattr(projection, "COMMITS_AT_ONCE", 1)
        await judge_next(session)
        assert await unjudged(session) == 2
    await upload(client, reports.report(4))
    await work(database)
    assert await wrong(database) == set()
    async with database.reading() as session:
        assert set(await session.scalars(select(StoredStep.rule))) == {RULE}


@pytest.mark.long
async def test_history_that_an_earlier_release_stored_is_judged_with_each_step_waiting_at_most_once(
    client, reports, database, monkeypatch
):
    """So the work grows with the history and not with its square."""
    for number in range(1, 13):
        await upload(client, reports.report(number))
        await forget(database, reports.sha(number))
    waited, let_wait = [], projection._let_wait

    async def noted(session, pairs, rule):
        waited.extend(pairs)
        await let_wait(session, pairs, rule)

    monkeypatch.setattr(projection, "_let_wait", noted)
    await work(database)
    assert len(waited) == len(set(waited))
    assert await wrong(database) == set()
    assert await followed_as_stored(database) == await followed_by_hand(database)


async def test_after_an_upgrade_nobody_looks_for_what_follows_a_commit_also_where_uploads_came_meanwhile(
    client, reports, database, monkeypatch
):
    """Nothing is judged before all is projected, so there is nothing that was judged without a reading."""
    for number in range(1, 6):
        await upload(client, reports.report(number))
    async with database.writing.begin() as session:
        for statement in (
            "DELETE FROM step",
            "DELETE FROM reading",
            "UPDATE commit SET projected = false, judged_by = 0",
        ):
            await session.execute(text(statement))
    await upload(client, reports.report(6))
    looked_for = []

    async def noted(session, followed):
        looked_for.extend(followed)
        return set()

    monkeypatch.setattr(projection, "later_steps", noted)
    await work(database)
    assert looked_for == []
    assert await wrong(database) == set()
    assert await followed_as_stored(database) == await followed_by_hand(database)


async def test_two_uploads_of_parent_and_child_at_once_are_judged_against_each_other(client, reports, database):
    from anyio import create_task_group

    await upload(client, reports.report(1))
    async with create_task_group() as tasks:
        for number in range(2, 8):
            tasks.start_soon(upload, client, reports.report(number, machine="box"))
    assert await wrong(database) == set()
    assert await followed_as_stored(database) == await followed_by_hand(database)


def test_the_order_of_many_pairs_is_found_in_pieces():
    draw = Random(7)
    pairs = {(draw.randrange(10**7), draw.randrange(2)) for _ in range(200_000)}
    ordered = sorted(pairs, key=lambda pair: pair[::-1])
    longest_s, pieces = longest_call(lambda: [*in_order(pairs)])
    assert [*chain(*pieces)] == ordered
    assert {len(piece) for piece in pieces[:-1]} == {OWN_AT_ONCE}
    assert longest_s < 0.06  # sorted at once they take 0.2 s
    assert not pairs
