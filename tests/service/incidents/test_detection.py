"""From uploads to incidents, with a real database and a real worker."""

import asyncio
import random
from collections import defaultdict
from itertools import pairwise
from uuid import uuid4

import pytest
from sqlalchemy import text
from tests.service.incidents.conftest import WRONG, another_number_of_values

from pullback_service import worker
from pullback_service.incidents import change_search
from pullback_service.incidents.detection import detect, sweep
from pullback_service.incidents.trunk_changes import FOUND_BY, changes_of

pytestmark = pytest.mark.anyio

API = "/api/v1"


def story(history):
    """Twelve commits: a count changes at 7, a pair is 30 % slower at 9, a gradient is wrong at 11."""
    documents = [
        history.commit(
            number,
            array_bytes=2048.0 if number >= 7 else 1024.0,
            wrong=("dense",) if number >= 11 else (),
        )
        for number in range(1, 13)
    ]
    documents[8] = history.paired(documents[8], 0.26, "slower")
    return documents


def told_as(details, reports):
    """Incidents by what they say: kind, state, the number of the commit, workloads."""
    numbers = {reports.sha(number): number for number in range(2 * REBASED)}
    return sorted(
        (
            numbers[each.reference.sha],
            numbers[each.commit.sha],
            each.incident.kind,
            each.incident.state,
            tuple(sorted({change.workload for change in each.changes})),
        )
        for each in details
    )


WHOLE_STORY = [
    (6, 7, "worse", "confirmed", ("lstm",)),
    (8, 9, "worse", "confirmed", ("lstm",)),
    (10, 11, "wrong_gradient", "confirmed", ("dense",)),
]


async def test_three_things_that_went_wrong_are_three_incidents_at_their_commits(history, reports):
    await history.upload(*story(history), look=True)
    assert told_as(await history.incidents(), reports) == WHOLE_STORY
    told = await history.told()
    assert [event for _, event in told] == ["confirmed"] * 3
    assert len({incident for incident, _ in told}) == 3


async def test_the_worker_looks_once_for_all_uploads_that_wait(history, reports, database_url):
    for document in story(history):
        await history.client.post("/api/v1/reports", json=document)
    await worker.run_once(database_url)
    assert told_as(await history.incidents(), reports) == WHOLE_STORY
    assert len(await history.told()) == 3


@pytest.mark.parametrize("broken", [{"error": {"kind": "workload", "message": "broke"}}, {"gradient": WRONG}])
async def test_a_wrong_gradient_and_a_case_that_does_not_run_are_one_event_of_channels(history, broken):
    await history.upload(history.commit(1))
    await history.make_channels("team")
    documents = [history.commit(number) for number in (2, 3)]
    for document in documents:
        document["cases"][0] |= {**broken, "variants": [], "paired": []}
    await history.upload(*documents)
    assert await history.messages() == {"team": ["wrong_gradient"]}


@pytest.mark.long
async def test_uploading_all_of_it_again_in_another_order_tells_nothing_more(history, reports):
    documents = story(history)
    await history.upload(*documents)
    before = await history.told()
    again = [document | {"id": str(uuid4())} for document in documents]
    random.Random(5).shuffle(again)
    await history.upload(*documents[::-1], *again, look=True)
    assert told_as(await history.incidents(), reports) == WHOLE_STORY
    assert await history.told() == before


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_the_order_of_uploads_decides_nothing(history, reports, seed):
    documents = story(history)
    random.Random(seed).shuffle(documents)
    await history.upload(*documents, look=True)
    assert told_as(await history.incidents(), reports) == WHOLE_STORY


def busy(document):
    limits = [{"name": "load", "limit": 0.1, "measured": 2.0}]
    return document | {"harness": document["harness"] | {"quality": "busy", "limits": limits}}


def another_machine(document):
    return document | {"machine": {"fingerprint": "another", "name": "another", "facts": {"cpu": "slow"}}}


def another_harness(document):
    return document | {"harness": document["harness"] | {"version": "0.2"}}


def other_facts(document):
    return document | {"machine": document["machine"] | {"facts": {"cpu": "fast", "cores": 2, "kernel": "newer"}}}


def another_text(document):
    for case in document["cases"]:
        for variant in case["variants"]:
            variant["digests"] = {"workload": "0" * 64, "subject": None, "code": None}
    return document


def first_text(document):
    another_text(document)
    for case in document["cases"]:
        for variant in case["variants"]:
            variant["digests"]["workload"] = "1" * 64
    return document


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("edit", [another_machine, another_harness, other_facts, another_text])
async def test_what_is_no_commits_doing_accuses_none(history, edit):
    """Another machine, harness or kernel, or an edited workload, comes with ratios that are 20 % higher."""
    before = [first_text(history.commit(number)) for number in range(1, 9)]
    after = [edit(first_text(history.commit(number, ratio=-0.3))) for number in range(9, 17)]
    await history.upload(*before, *after)
    assert await history.incidents() == []


def another_clock(document, number):
    return document | {"machine": document["machine"] | {"facts": {"cores": 2, "mhz": 2500 + number}}}


@pytest.mark.parametrize("edit", [another_number_of_values, another_clock])
async def test_what_differs_in_every_report_hides_no_change(history, reports, edit):
    """Points of earlier releases have the number of values in their method, and the clock of the moment among the facts."""
    documents = [edit(history.commit(number, ratio=-0.5 if number < 9 else -0.3), number) for number in range(1, 15)]
    await history.upload(*documents, look=True)
    assert told_as(await history.incidents(), reports) == [(8, 9, "worse", "likely", ("lstm",))]


async def test_a_step_that_only_the_detector_sees_is_likely_three_commits_later(history, reports):
    documents = [history.commit(number, ratio=-0.5 if number < 11 else -0.4) for number in range(1, 17)]
    await history.upload(*documents[:12])
    assert {each.incident.state for each in await history.incidents()} <= {"suspected"}
    assert await history.told() == []
    await history.upload(*documents[12:])
    assert told_as(await history.incidents(), reports) == [(10, 11, "worse", "likely", ("lstm",))]
    assert [event for _, event in await history.told()] == ["likely"]


async def test_a_level_that_is_back_ends_its_incident_and_an_improvement_is_told_to_nobody(history, reports):
    sizes = [1024.0] * 3 + [2048.0] * 3 + [1024.0] * 3 + [512.0] * 3
    await history.upload(*(history.commit(number, array_bytes=size) for number, size in enumerate(sizes, 1)))
    worse, better = await history.incidents()
    assert (worse.incident.kind, worse.incident.state, worse.ended.sha) == ("worse", "resolved", reports.sha(7))
    assert (better.incident.kind, better.incident.state, better.commit.sha) == ("better", "confirmed", reports.sha(10))
    assert await history.told() == []  # both ends were known before anybody could be told


async def test_whoever_was_told_is_told_that_the_level_is_back(history):
    sizes = [1024.0, 2048.0, 2048.0, 1024.0]
    await history.upload(*(history.commit(number, array_bytes=size) for number, size in enumerate(sizes, 1)), look=True)
    assert [event for _, event in await history.told()] == ["confirmed", "resolved"]


async def test_a_count_of_one_report_alone_is_suspected_and_told_once_another_report_agrees(history, reports):
    await history.upload(history.commit(1), history.commit(2, array_bytes=2048.0))
    (only,) = await history.incidents()
    assert (only.incident.state, await history.told()) == ("suspected", [])
    again = busy(history.commit(2, array_bytes=2048.0, seed=2))
    await history.upload(again)
    (only,) = await history.incidents()
    assert (only.incident.state, only.commit.sha) == ("confirmed", reports.sha(2))
    assert [event for _, event in await history.told()] == ["confirmed"]


@pytest.mark.long
async def test_the_next_commit_bears_out_a_count_or_speaks_against_it(history, reports):
    await history.upload(history.commit(1), history.commit(2, array_bytes=2048.0))
    await history.upload(history.commit(3, array_bytes=2048.0))
    assert told_as(await history.incidents(), reports) == [(1, 2, "worse", "confirmed", ("lstm",))]
    await history.upload(history.commit(4, array_bytes=4096.0), history.commit(5, array_bytes=2048.0))
    states = {each.commit.sha: each.incident.state for each in await history.incidents()}
    assert states == {reports.sha(2): "confirmed", reports.sha(4): "unconfirmed"}
    assert [event for _, event in await history.told()] == ["confirmed"]


@pytest.mark.long
async def test_one_report_that_counts_less_makes_nothing_worse_of_the_commit_behind_it(history):
    sizes = [1024.0, 1024.0, 512.0, 1024.0, 1024.0]
    await history.upload(*(history.commit(number, array_bytes=size) for number, size in enumerate(sizes, 1)), look=True)
    (only,) = await history.incidents()
    assert (only.incident.kind, only.incident.state, await history.told()) == ("better", "unconfirmed", [])


@pytest.mark.long
async def test_another_report_of_the_commit_that_counts_otherwise_refutes_it(history):
    await history.upload(history.commit(1), history.commit(2, array_bytes=2048.0))
    await history.upload(history.commit(2))
    (only,) = await history.incidents()
    assert (only.incident.state, await history.told()) == ("refuted", [])


@pytest.mark.long
async def test_a_count_that_goes_back_and_forth_is_one_incident(history):
    sizes = [1024.0, 1024.0, 2048.0, 1024.0, 2048.0, 1024.0]
    await history.upload(*(history.commit(number, array_bytes=size) for number, size in enumerate(sizes, 1)), look=True)
    (only,) = await history.incidents()
    assert (only.incident.kind, only.incident.state) == ("unsteady", "confirmed")


@pytest.mark.long
async def test_a_claim_that_a_better_measurement_takes_back_is_withdrawn(history):
    documents = [history.commit(number) for number in range(1, 4)]
    await history.upload(documents[0], history.paired(documents[1], 0.26, "slower"), documents[2], look=True)
    again = history.paired(history.commit(2), 0.0, "same", n=40)
    await history.upload(again)
    (only,) = await history.incidents()
    assert only.incident.state == "refuted"
    assert [event for _, event in await history.told()] == ["confirmed", "withdrawn"]


async def test_a_series_that_raises_is_set_aside_and_holds_up_no_other(history, reports, monkeypatch):
    def raise_for_one(series, *rest, **named):
        if series.variant == "unfused":
            raise ValueError("no such level")
        return changes_of(series, *rest, **named)

    monkeypatch.setattr(change_search, "changes_of", raise_for_one)
    await history.upload(*story(history)[:8])
    assert told_as(await history.incidents(), reports) == WHOLE_STORY[:1]
    status = (await history.client.get("/status")).json()
    (said,) = [finding for finding in status["findings"] if "set aside" in finding]
    assert "ValueError: no such level" in said
    monkeypatch.undo()
    await history.upload(history.commit(9))
    assert not [each for each in (await history.client.get("/status")).json()["findings"] if "set aside" in each]


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("raises", ["changes_of", "suspicions_of", "shown_by_reports", "settled_before"])
async def test_what_was_found_in_a_series_stays_while_it_is_set_aside(history, database, monkeypatch, raises):
    def fail(*_):
        raise ValueError("no such level")

    documents = [
        history.commit(number, ratio=-0.5 if number < 11 else -0.4, array_bytes=1024.0 if number < 6 else 2048.0)
        for number in range(1, 19)
    ]
    await history.upload(*documents[:16])
    found = {each.incident.id: each.incident.state for each in await history.incidents()}
    told = await history.told()
    assert sorted(found.values()) == ["confirmed", "likely"]
    monkeypatch.setattr(change_search, raises, fail)
    await history.upload(documents[16])
    assert await set_aside_in(database)
    assert {each.incident.id: each.incident.state for each in await history.incidents()} == found
    monkeypatch.undo()
    await history.upload(documents[17])
    assert not await set_aside_in(database)
    assert {each.incident.id: each.incident.state for each in await history.incidents()} == found
    assert await history.told() == told


async def set_aside_in(database):
    async with database.reading() as session:
        return (await session.scalars(text("SELECT reason FROM set_aside"))).all()


@pytest.mark.long
async def test_results_older_than_detection_make_incidents_that_are_seen(history, reports, database):
    documents = story(history)
    for document in documents[:8]:
        await history.client.post("/api/v1/reports", json=document)
    async with database.writing.begin() as session:
        await session.execute(text("UPDATE project SET detected_from = now()"))
    await history.upload(*documents[8:])
    assert [each.incident.seen for each in await history.incidents()] == [True, False, False]
    assert len(await history.told()) == 2


async def test_only_the_trunk_is_watched(history, reports, database):
    documents = story(history)
    for document in documents[1:]:
        document["commit"]["branch"] = "topic"
    await history.upload(*documents)
    assert await history.incidents() == []
    await history.client.patch("/api/v1/projects/demo", json={"trunk": "topic"})
    await history.look()
    assert told_as(await history.incidents(), reports) == WHOLE_STORY
    assert await history.told() == []  # a trunk that is chosen later is no news


@pytest.mark.long
async def test_what_was_measured_on_a_branch_is_watched_once_its_commits_are_on_the_trunk(history, reports):
    documents = story(history)
    for document in documents[1:]:
        document["commit"]["branch"] = "topic"
    await history.upload(*documents)
    assert await history.incidents() == []
    commits = {document["commit"]["sha"]: document["commit"] for document in documents}
    newest_first = sorted(commits.values(), key=lambda commit: commit["authored_at"], reverse=True)
    log = [{"sha": commit["sha"], "parents": commit["parents"]} for commit in newest_first]
    answer = await history.client.post("/api/v1/commits", json={"project": "demo", "branch": "main", "commits": log})
    assert answer.is_success, answer.text
    await history.look()
    assert told_as(await history.incidents(), reports) == WHOLE_STORY
    assert await history.told() != []


@pytest.mark.long
async def test_what_somebody_expected_is_the_level_from_which_it_gets_worse(history, reports):
    sizes = [1024.0, 2048.0, 2048.0, 4096.0, 4096.0, 2048.0, 2048.0, 1024.0, 1024.0]
    documents = [history.commit(number, array_bytes=size) for number, size in enumerate(sizes, 1)]
    await history.upload(*documents[:3], look=True)
    (first,) = await history.incidents()
    answer = await history.client.post(f"{API}/incidents/{first.incident.id}/verdict", json={"verdict": "expected"})
    assert answer.is_success, answer.text
    await history.upload(*documents[3:5], look=True)
    states = [(each.commit.sha, each.incident.state) for each in await history.incidents()]
    assert states == [(reports.sha(2), "resolved"), (reports.sha(4), "confirmed")]
    await history.upload(*documents[5:], look=True)
    assert {each.incident.state for each in await history.incidents()} == {"resolved"}
    assert [event for _, event in await history.told()] == ["confirmed", "resolved", "confirmed", "resolved"]


@pytest.mark.long
async def test_what_was_told_is_told_again_where_it_reaches_another_machine(history):
    sizes = [1024.0, 2048.0, 2048.0, 2048.0]
    documents = [history.commit(number, array_bytes=size) for number, size in enumerate(sizes, 1)]
    await history.upload(*documents, look=True)
    for document in documents:
        await history.upload(another_machine(document | {"id": str(uuid4())}), look=True)
    (only,) = await history.incidents()
    assert await history.told() == [(only.incident.id, "confirmed"), (only.incident.id, "grown")]


@pytest.mark.long
async def test_what_was_told_is_told_again_at_twice_its_size_and_not_below(history):
    await history.upload(history.commit(1), history.paired(history.commit(2), 0.1, "slower"), look=True)
    heard = []
    for size, n in ((0.15, 30), (0.26, 40), (0.27, 50), (0.4, 60)):
        await history.upload(history.paired(history.commit(2), size, "slower", n=n), look=True)
        heard.append([event for _, event in await history.told()])
    first = ["confirmed"], ["confirmed", "grown"]
    assert heard == [first[0], first[1], first[1], first[1]]
    (only,) = await history.incidents()
    assert only.incident.state == "confirmed"


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_reports_that_are_withdrawn_leave_nothing_whenever_they_come_and_go(history, reports, seed):
    chance = random.Random(seed)
    documents = story(history)
    never = [
        history.commit(number, array_bytes=9999.0, wrong=("lstm",) if number == 6 else (), seed=7)
        for number in (3, 6, 10)
    ]
    every = [*documents, *never]
    chance.shuffle(every)
    withdrawn = []
    for document in every:
        await history.upload(document, look=True)
        due = [each for each in every[: every.index(document) + 1] if each in never and each not in withdrawn]
        if due and chance.random() < 0.4:
            await withdraw(history, due[0])
            withdrawn.append(due[0])
    for document in never:
        if document not in withdrawn:
            await withdraw(history, document)
    found = await history.incidents()
    assert told_as([each for each in found if each.incident.state != "refuted"], reports) == WHOLE_STORY
    heard = defaultdict(list)
    for incident, event in await history.told():
        heard[incident].append(event)
    for events in heard.values():
        assert not any(event == following for event, following in pairwise(events)), heard
        assert events[0] == "confirmed"
    standing = {each.incident.id for each in found if each.incident.state == "confirmed"}
    assert {incident for incident, events in heard.items() if events[-1] == "confirmed"} == standing


async def withdraw(history, document):
    answer = await history.client.post(f"{API}/reports/{document['id']}/withdraw")
    assert answer.is_success, answer.text
    await history.look()


async def test_a_new_detector_finds_the_same_incidents_and_tells_nobody(history, database):
    documents = [history.commit(number, ratio=-0.5 if number < 11 else -0.4) for number in range(1, 18)]
    await history.upload(*documents[:16])
    (before,) = await history.incidents()
    told = await history.told()
    assert [event for _, event in told] == ["likely"]
    async with database.writing.begin() as session:
        await session.execute(
            text("UPDATE change SET detector = 'levels 1', low = low - 0.01 WHERE evidence = 'levels'")
        )
        await session.execute(text("UPDATE series_state SET state = ''"))
    await history.upload(documents[16])
    (after,) = await history.incidents()
    assert (after.incident.id, after.incident.state) == (before.incident.id, "likely")
    assert {change.change.detector for change in after.changes} == {FOUND_BY}
    assert await history.told() == told


REBASED = 1000
"""Added to the number of a commit that a rebase put in the place of another."""


async def push(history, reports, *numbers):
    """Tell what the trunk is: commits by their numbers, oldest first."""
    commits = []
    for parent, number in pairwise((0, *numbers)):
        commit = reports.report(number % REBASED)["commit"] | {
            "sha": reports.sha(number),
            "parents": [reports.sha(parent)],
        }
        commits.append({name: commit[name] for name in ("sha", "parents", "author", "authored_at", "title")})
    log = {"project": "demo", "branch": "main", "commits": commits[::-1]}
    answer = await history.client.post("/api/v1/commits", json=log)
    assert answer.is_success, answer.text
    await history.look()


def rebased(history, reports, number, parent, **parts):
    """The report of a rebased commit, without what was measured in turns."""
    document = history.commit(number, seed=2, **parts)
    document["commit"] |= {"sha": reports.sha(REBASED + number), "parents": [reports.sha(parent)]}
    return document


@pytest.mark.long
async def test_incidents_of_commits_that_were_rebased_go_on_and_nobody_hears_of_it(history, reports):
    await history.upload(*story(history), look=True)
    before, told = [each.incident.id for each in await history.incidents()], await history.told()
    await push(history, reports, *range(1, 6), *range(REBASED + 6, REBASED + 13))
    moved = [(reference + REBASED, commit + REBASED, *rest) for reference, commit, *rest in WHOLE_STORY]
    assert told_as(await history.incidents(), reports) == moved
    changes = [len(each.changes) for each in await history.incidents()]
    for number in (6, 8, 10, 12):
        sizes = {"array_bytes": 2048.0 if number > 6 else 1024.0, "wrong": ("dense",) if number == 12 else ()}
        await history.upload(rebased(history, reports, number, REBASED + number - 1 if number > 6 else 5, **sizes))
        found = await history.incidents()
        assert [each.incident.id for each in found] == before, number
        if number == 6:  # nothing that was changed is measured yet
            assert [len(each.changes) for each in found] == changes
        assert {each.incident.state for each in found} == {"confirmed"}
    assert await history.told() == told


@pytest.mark.long
async def test_what_a_rebase_dropped_is_withdrawn(history, reports):
    await history.upload(*story(history)[:8], look=True)
    await push(history, reports, *range(1, 7), REBASED + 8)
    await history.upload(rebased(history, reports, 8, 6))
    (only,) = await history.incidents()
    assert only.incident.state == "refuted"
    assert [event for _, event in await history.told()] == ["confirmed", "withdrawn"]


@pytest.mark.long
async def test_a_branch_of_another_name_is_the_trunk_where_there_is_no_main(history, reports):
    documents = story(history)
    for document in documents:
        document["commit"]["branch"] = "master"
    await history.upload(*documents)
    assert told_as(await history.incidents(), reports) == WHOLE_STORY


@pytest.mark.parametrize(
    ("number", "edit"),
    [
        (5, {"authored_at": "1970-01-01T00:00:00Z"}),
        (8, {"authored_at": "2099-01-01T00:00:00Z"}),
        (7, {"parents": ["6", "900"]}),
    ],
    ids=["1970", "2099", "a second root is merged"],
)
async def test_clocks_and_roots_of_commits_accuse_nobody_and_hide_nothing(history, reports, number, edit):
    documents = story(history)
    commit = documents[number - 1]["commit"]
    commit |= edit
    if "parents" in edit:
        commit["parents"] = [reports.sha(int(parent)) for parent in edit["parents"]]
        root = reports.report(900)
        root["commit"] |= {"parents": [], "branch": "side"}
        await history.upload(root)
    await history.upload(*documents)
    assert told_as(await history.incidents(), reports) == WHOLE_STORY


@pytest.mark.parametrize("started_at", ["1970-01-01T00:00:00Z", "2099-01-01T00:00:00Z"])
async def test_a_machine_with_a_wrong_clock_accuses_nobody_and_hides_nothing(history, reports, started_at):
    documents = story(history)
    for number in (4, 8):
        documents[number - 1]["started_at"] = started_at
    for document in documents:
        answer = await history.client.post(f"{API}/reports", json=document)
        assert answer.status_code in {201, 422}, answer.text
    await history.look()
    found = told_as(await history.incidents(), reports)
    assert [each[1:3] for each in found] == [each[1:3] for each in WHOLE_STORY]


@pytest.mark.long
async def test_a_root_or_a_circle_on_the_trunk_accuses_nobody_and_withdraws_nothing(history, reports):
    await history.upload(*story(history))
    told = await history.told()
    for parents in ([], [reports.sha(71)]):
        document = history.commit(70 + len(parents), array_bytes=2048.0, wrong=("dense",))
        document["commit"]["parents"] = parents
        await history.client.post(f"{API}/reports", json=document)
        await history.look()
    circle = [
        {name: reports.report(number)["commit"][name] for name in ("author", "authored_at", "title")}
        | {"sha": reports.sha(number), "parents": [reports.sha(parent)]}
        for number, parent in ((81, 80), (80, 81))
    ]
    await history.client.post(f"{API}/commits", json={"project": "demo", "branch": "main", "commits": circle})
    await history.upload(*(history.commit(number, array_bytes=2048.0, wrong=("dense",)) for number in (80, 81)))
    assert await history.told() == told


@pytest.mark.long
async def test_thousands_of_commits_in_one_log_accuse_nobody_and_hide_nothing(history, reports):
    await history.upload(*story(history)[:6])
    await push(history, reports, *range(1, 7), *range(2000, 6988), *range(7, 13))
    documents = story(history)[6:]
    documents[0]["commit"]["parents"] = [reports.sha(6987)]
    await history.upload(*documents)
    found = await history.incidents()
    assert sorted((each.reference.sha, each.commit.sha, each.incident.state) for each in found) == [
        (reports.sha(before), reports.sha(number), "confirmed") for before, number, *_ in WHOLE_STORY
    ]


async def test_a_project_that_is_removed_while_its_detection_runs_leaves_nothing(history, database):
    for document in story(history)[:8]:
        await history.client.post(f"{API}/reports", json=document)

    async def remove():
        async with database.writing.begin() as session:
            await session.execute(text("DELETE FROM project"))

    async with database.writing.begin() as session:
        (project_id,) = (await session.execute(text("SELECT id FROM project"))).scalars()
        assert await detect(session, project_id) == 8
        removal = asyncio.create_task(remove())
        await until_blocked(session, removal)
    await removal
    async with database.writing.begin() as session:
        assert await detect(session, project_id) == 0
        assert await sweep(session) == 0
    assert await history.incidents() == []


async def until_blocked(session, statement):
    """Wait until another transaction waits for this one."""
    async with asyncio.timeout(30):
        while not await session.scalar(
            text(
                "SELECT EXISTS (SELECT FROM pg_locks WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid)) AND NOT granted)"
            )
        ):
            assert not statement.done(), statement.result()
            await asyncio.sleep(0.01)


@pytest.mark.long
async def test_a_trunk_that_is_renamed_and_named_as_before_is_announced_once(history, reports):
    await history.upload(*story(history))
    told = await history.told()
    for trunk in ("develop", "main"):
        answer = await history.client.patch(f"{API}/projects/demo", json={"trunk": trunk})
        assert answer.status_code == 200, answer.text
        await history.look()
        await history.upload(history.commit(13, array_bytes=2048.0, wrong=("dense",)))
    assert told_as(await history.incidents(), reports) == WHOLE_STORY
    assert await history.told() == told


@pytest.mark.parametrize("value", [0.0, -1.0, 5e-324, 1.7e308, "NaN", None])
async def test_values_that_cannot_be_are_refused_or_accuse_nobody(history, value):
    documents = [history.values(number, workloads=("dense",)) for number in range(1, 15)]
    for number in (8, 9):
        metrics = documents[number - 1]["cases"][0]["variants"][0]["metrics"]
        metrics["time"]["processes"] = [value] * 3
    for document in documents:
        answer = await history.client.post(f"{API}/reports", json=document)
        assert answer.status_code in {201, 422}, answer.text
    await history.look()
    assert await history.told() == []
    async with history.database.reading() as session:
        assert list(await session.scalars(text("SELECT reason FROM set_aside"))) == []


@pytest.mark.parametrize("at", [5, 20])
async def test_a_value_of_zero_hides_no_change_and_gives_none_another_size(history, at, reports):
    """A series with a zero was read as natural logs: a step of 300 B was one by e to the power of 300, or an error."""
    documents = history.all_values(workloads=("dense",), slower=("dense",))
    for number, document in enumerate(documents, 1):
        metric = document["cases"][0]["variants"][0]["metrics"]
        value = 0.0 if number == at else 1e9 * metric.pop("time")["processes"][1]
        metric |= {"rss": {"unit": "B", "value": value, "method": "ps", "kind": "noisy"}}
    await history.upload(*documents)
    (only,) = await history.incidents()
    assert only.commit.sha == reports.sha(17)
    assert [round(each.change.log_ratio, 1) for each in only.changes] == [0.2]
    async with history.database.reading() as session:
        assert list(await session.scalars(text("SELECT reason FROM set_aside"))) == []


async def test_a_series_that_changes_its_unit_is_refused_with_a_sentence_and_accuses_nobody(history):
    documents = history.all_values(workloads=("dense",))
    for number, document in enumerate(documents, 1):
        times = document["cases"][0]["variants"][0]["metrics"]["time"]
        if number >= 17:
            times |= {"unit": "ms", "processes": [1000 * each for each in times["processes"]]}
        answer = await history.client.post(f"{API}/reports", json=document)
        assert answer.status_code == (201 if number < 17 else 422)
    assert "convert it, or name the metric differently" in answer.text
    await history.look()
    assert await history.incidents() == []


async def test_a_machine_that_is_renamed_goes_on_with_its_series_and_accuses_nobody(history, reports):
    documents = history.all_values(slower=("workload_0",))
    for number, document in enumerate(documents, 1):
        document["machine"] |= {"host": "a", "name": "box" if number < 12 else "desk"}
    await history.upload(*documents)
    (only,) = await history.incidents()
    assert (only.commit.sha, {each.machine for each in only.changes}) == (reports.sha(17), {"desk"})
    assert len(only.changes) == 1


async def test_many_reports_of_a_single_commit_accuse_nobody(history):
    documents = [history.commit(1, seed=seed, ratio=-0.5 if seed < 6 else -0.2) for seed in range(12)]
    await history.upload(*(document | {"id": str(uuid4())} for document in documents))
    assert await history.incidents() == []
