"""Suspicions are measured again by an agent of the machine that raised them, before anybody is told."""

import asyncio

import pytest
from sqlalchemy import text
from tests.service.jobs.conftest import enroll, expire, let_pass  # noqa: F401 - fixtures

from pullback_service.incidents.changes import Change
from pullback_service.incidents.confirmation import Budget, MeasurementMethod, chosen_to_measure, effort_for
from pullback_service.incidents.detection import detect, sweep
from pullback_service.incidents.triage import give_verdict

pytestmark = pytest.mark.anyio

API = "/api/v1"
KINDS = ["run", "compare"]


@pytest.fixture
async def suspected(history, enroll, reports):  # noqa: F811
    """An agent whose machine measured the project, and thirteen commits, from the eleventh on 10 % slower."""
    agent = await enroll("box")
    job = {"project": "demo", "commit": {"sha": reports.sha(1)}, "suite": "standard:lstm*", "timeout_s": 60}
    await history.client.post(f"{API}/jobs", json=job)
    first = await (await agent.take(kinds=KINDS)).report(history.commit(1))
    assert first.status_code == 201, first.text
    documents = [history.commit(number, ratio=-0.5 if number < 11 else -0.4) for number in range(2, 14)]
    await history.upload(*(document | {"machine": agent.machine} for document in documents))
    return agent


def compared(history, reports, outcome, log_ratio):
    """What an agent sends of a comparison: no points of the commit."""
    document = history.paired(history.commit(11), log_ratio, outcome, reference=reports.sha(10))
    return document | {"cases": []}


async def state(history):
    (only,) = await history.incidents()
    return only.incident.state


async def test_the_job_compares_the_ends_of_the_range_in_the_cases_that_show_it(history, suspected, reports):
    assert await state(history) == "confirming"
    assert await history.told() == []
    job = (await suspected.take(kinds=KINDS)).claim["job"]
    assert (job["kind"], job["suite"], job["variants"]) == ("compare", "standard", ["fused"])
    assert job["cases"] == ["lstm[n=100,act=tanh,f4,cpu]", "dense[n=100,act=tanh,f4,cpu]"]  # the second is unaffected
    assert (job["reference"]["sha"], job["commit"]["sha"]) == (reports.sha(10), reports.sha(11))
    (listed,) = (await history.client.get(f"{API}/jobs", params={"origin": "confirm"})).json()["items"]
    assert listed["machine_id"] == suspected.machine_id


@pytest.mark.parametrize(("outcome", "log_ratio", "ends"), [("slower", 0.1, "confirmed"), ("same", 0.0, "refuted")])
async def test_its_result_decides(history, suspected, reports, outcome, log_ratio, ends):
    lease = await suspected.take(kinds=KINDS)
    answer = await lease.report(compared(history, reports, outcome, log_ratio))
    assert answer.status_code == 201, answer.text
    await history.look()
    assert await state(history) == ends
    assert [event for _, event in await history.told()] == (["confirmed"] if ends == "confirmed" else [])
    (only,) = await history.incidents()
    if ends == "confirmed":
        assert only.commit.sha == reports.sha(11)


@pytest.mark.long
async def test_without_an_answer_it_is_measured_once_more_and_then_given_up(history, suspected, reports):
    for ends in ("confirming", "unconfirmed"):
        lease = await suspected.take(kinds=KINDS)
        document = compared(history, reports, "ambiguous", 0.004)
        document["comparisons"][0] |= {"low": -0.02, "high": 0.03}
        await lease.report(document)
        await history.look()
        assert await state(history) == ends
    assert (await suspected.claim(kinds=KINDS)).status_code == 204
    assert await history.told() == []


async def test_reports_that_are_withdrawn_while_their_suspicion_is_measured_leave_nothing_to_announce(
    history, suspected, reports
):
    lease = await suspected.take(kinds=KINDS)
    for each in (await history.client.get(f"{API}/reports", params={"limit": 100})).json()["items"]:
        if each["commit"] >= reports.sha(11):
            await history.client.post(f"{API}/reports/{each['id']}/withdraw")
    await history.look()
    assert await state(history) == "refuted"
    assert (await lease.report(compared(history, reports, "same", 0.0))).status_code == 201
    await history.look()
    assert await state(history) == "refuted"
    assert await history.told() == []


async def test_a_job_that_fails_is_asked_for_once_more(history, suspected):
    for ends in ("confirming", "suspected"):
        lease = await suspected.take(kinds=KINDS)
        await lease.fail("build", message="does not build")
        await history.look()
        assert await state(history) == ends


@pytest.mark.long
async def test_where_no_agent_came_for_a_day_later_commits_decide(history, suspected, database):
    async with database.writing.begin() as session:
        await session.execute(text("UPDATE agent SET last_seen_at = now() - interval '2 days'"))
        await session.execute(text("UPDATE job SET state = 'cancelled' WHERE origin = 'confirm'"))
    for number in (14, 15):
        await history.upload(history.commit(number, ratio=-0.4) | {"machine": suspected.machine})
    assert await state(history) == "likely"
    assert [event for _, event in await history.told()] == ["likely"]


@pytest.mark.long
async def test_channels_that_chose_nothing_hear_what_is_likely_while_no_agent_can_measure(
    history,
    suspected,
    enroll,  # noqa: F811
    database,
):
    await history.make_channels("team")
    async with database.writing.begin() as session:
        await session.execute(text("UPDATE agent SET last_seen_at = now() - interval '2 days'"))
        await session.execute(text("UPDATE job SET state = 'cancelled' WHERE origin = 'confirm'"))
    await enroll("of other projects")
    for number in (14, 15):
        await history.upload(history.commit(number, ratio=-0.4) | {"machine": suspected.machine})
    assert await history.messages() == {"team": ["likely"]}


@pytest.mark.sample(every=2)
@pytest.mark.parametrize(
    ("rules", "heard"),
    [([], {"team": [], "gpu": []}), ([{"workload": "lstm", "tell": ["gpu"]}], {"team": [], "gpu": ["likely"]})],
)
async def test_channels_that_chose_nothing_hear_what_is_likely_by_a_rule_alone_while_an_agent_can_measure(
    history, suspected, database, rules, heard
):
    await history.make_channels("team", "gpu")
    said = await history.client.put(f"{API}/rules", params={"project": "demo"}, json={"rules": rules})
    assert said.status_code == 200, said.text
    async with database.writing.begin() as session:  # every job of it failed
        await session.execute(text("UPDATE job SET state = 'failed' WHERE origin = 'confirm'"))
        await session.execute(text("UPDATE incident SET asked = 2"))
    for number in (14, 15):
        await history.upload(history.commit(number, ratio=-0.4) | {"machine": suspected.machine})
    assert await state(history) == "likely"
    assert await history.messages() == heard


async def measured_again(history, suspected, reports, *, affected=("slower", 0.1), control=("same", 0.0)):
    """A result of the job with the unaffected case in it."""
    lease = await suspected.take(kinds=KINDS)
    document = history.paired(history.commit(11), affected[1], affected[0], reference=reports.sha(10))
    document = history.paired(document, control[1], control[0], reference=reports.sha(10), workload="dense")
    for row, (outcome, _) in zip(document["comparisons"], (affected, control), strict=True):
        if outcome == "ambiguous":
            row |= {"low": -0.02, "high": 0.03}
    answer = await lease.report(document | {"cases": []})
    assert answer.status_code == 201, answer.text
    await history.look()
    return lease.claim["job"]


async def events(history):
    (only,) = (await history.client.get(f"{API}/incidents")).json()["items"]
    return (await history.client.get(only["url"])).json()["events"]


async def test_where_an_unaffected_case_moved_as_well_it_is_the_machine_and_nobody_is_told(history, suspected, reports):
    await measured_again(history, suspected, reports, control=("slower", 0.09))
    assert await state(history) == "refuted"
    assert await history.told() == []
    assert (await events(history))[-1]["details"] == {
        "because": "An unaffected case moved as well: the machine changed, not the code."
    }
    await history.look()
    assert await state(history) == "refuted"


@pytest.mark.sample(every=2)
@pytest.mark.parametrize(("moved", "ends"), [(0.09, "unconfirmed"), (0.03, "confirmed")])
async def test_an_unaffected_case_that_moved_in_one_measurement_and_not_in_another_leaves_it_open(
    history, suspected, reports, moved, ends
):
    await measured_again(history, suspected, reports, affected=("ambiguous", 0.004))
    assert await state(history) == "confirming"
    await measured_again(history, suspected, reports, control=("slower", moved))
    assert await state(history) == ends
    assert [event for _, event in await history.told()] == (["confirmed"] if ends == "confirmed" else [])
    if ends == "unconfirmed":
        assert (await events(history))[-1]["details"] == {
            "because": "An unaffected case moved in one measurement and not in another: it may be the machine, and not the code."
        }


@pytest.mark.long
async def test_a_late_result_speaks_of_the_unaffected_case_too(history, suspected, reports, let_pass, expire):  # noqa: F811
    await measured_again(history, suspected, reports, affected=("ambiguous", 0.004))
    late = await suspected.take(kinds=KINDS)
    await let_pass(100)
    await expire()
    second = await suspected.take(kinds=KINDS)
    document = history.paired(history.commit(11), 0.1, "slower", reference=reports.sha(10))
    document = history.paired(document, 0.09, "slower", reference=reports.sha(10), workload="dense")
    assert (await late.report(document | {"cases": []})).json()["status"] == "late"
    assert (await second.fail("infra", retryable=True))["answer"] == "done"
    await history.look()
    assert await state(history) == "unconfirmed"


@pytest.mark.long
async def test_an_unaffected_case_that_moved_by_less_than_half_as_much_refutes_nothing(history, suspected, reports):
    await measured_again(history, suspected, reports, control=("slower", 0.02))
    assert [event for _, event in await history.told()] == ["confirmed"]


async def test_the_unaffected_case_is_the_one_that_moved_least(history, enroll, reports):  # noqa: F811
    agent = await enroll("box")
    job = {"project": "demo", "commit": {"sha": reports.sha(1)}, "suite": "standard", "timeout_s": 60}
    await history.client.post(f"{API}/jobs", json=job)
    await (await agent.take(kinds=KINDS)).report(history.commit(1))
    for number in range(2, 14):
        document = history.commit(number, ratio=-0.5 if number < 11 else -0.4)
        document["cases"].append(reports.case("mlp"))  # which takes as long as ever; `dense`, an older case, scatters
        await history.upload(document | {"machine": agent.machine})
    asked = (await agent.take(kinds=KINDS)).claim["job"]["cases"]
    assert [case.partition("[")[0] for case in asked] == ["lstm", "mlp"]


async def test_where_it_did_not_move_the_suspicion_is_confirmed(history, suspected, reports):
    await measured_again(history, suspected, reports)
    assert [event for _, event in await history.told()] == ["confirmed"]


@pytest.mark.long
async def test_what_was_ambiguous_is_measured_twice_as_long(history, suspected, reports):
    efforts = [
        (await measured_again(history, suspected, reports, affected=("ambiguous", 0.004)))["effort"] for _ in range(2)
    ]
    assert efforts == [1, 2]
    assert await state(history) == "unconfirmed"


@pytest.fixture
async def slow_again(history, enroll, reports):  # noqa: F811
    """As `suspected`, with both workloads slower: `lstm` by 10 %, `dense` by 20 %; nothing looked for changes yet."""
    agent = await enroll("box")
    job = {"project": "demo", "commit": {"sha": reports.sha(1)}, "suite": "standard", "timeout_s": 60}
    await history.client.post(f"{API}/jobs", json=job)
    await (await agent.take(kinds=KINDS)).report(history.commit(1))
    for number in range(2, 14):
        lstm = history.commit(number, ratio=-0.5 if number < 11 else -0.4)
        other = history.commit(number, ratio=-0.5 if number < 11 else -0.3, workload="dense")
        dense = [case for case in other["cases"] if case["case"]["workload"] == "dense"]
        lstm["cases"] = [case for case in lstm["cases"] if case["case"]["workload"] != "dense"] + dense
        document = lstm | {"machine": agent.machine}
        assert (await history.client.post(f"{API}/reports", json=document)).status_code == 201
    return agent


async def test_a_measurement_that_nobody_takes_for_two_weeks_is_given_up(history, suspected, database):
    assert await state(history) == "confirming"
    async with database.writing.begin() as session:
        await session.execute(text("UPDATE job SET created_at = created_at - interval '15 days'"))
        await session.execute(text("UPDATE agent SET last_seen_at = last_seen_at - interval '15 days'"))
        assert await sweep(session) == 1
    await history.look()
    assert await state(history) == "suspected"  # as where no agent can measure
    (job,) = (await history.client.get(f"{API}/jobs", params={"origin": "confirm"})).json()["items"]
    assert (job["state"], job["failure_message"]) == (
        "cancelled",
        "No agent of its machine took it within 14 days.",
    )


async def look_with(history, minutes):
    async with history.database.writing.begin() as session:
        (project,) = (await session.execute(text("SELECT id FROM project"))).scalars()
        await detect(session, project, minutes_a_day=minutes)


@pytest.mark.long
async def test_what_had_no_turn_by_the_end_of_the_day_is_unconfirmed_for_want_of_time(history, suspected):
    async with history.database.writing.begin() as session:
        await session.execute(text("UPDATE job SET state = 'cancelled' WHERE origin = 'confirm'"))
        await session.execute(text("UPDATE incident SET state = 'suspected', asked = 0, job_id = NULL"))
    await look_with(history, 0)
    assert await state(history) == "suspected"
    async with history.database.writing.begin() as session:
        await session.execute(text("UPDATE incident SET out_of_time_on = out_of_time_on - 1"))
        assert await sweep(session) == 1
    await look_with(history, 60)
    assert await state(history) == "unconfirmed"
    last = (await events(history))[-1]["details"]["because"]
    assert last == "The machine had no time left to measure it on the day it was found."
    (only,) = (await history.client.get(f"{API}/incidents")).json()["items"]
    assert only["sentence"].endswith("(not measured again: the machine had no time left).")


async def without_turn(history, **parts):
    """Let incidents have had no turn yesterday; those of some ids alone where they are given."""
    values = {"days": 1, "found": 1, "id": None, "ended": False} | parts
    async with history.database.writing.begin() as session:
        await session.execute(
            text(
                "UPDATE incident SET state = 'unconfirmed', asked = 0, job_id = NULL, out_of_time_on = current_date - CAST(:days AS int),"
                "       found_at = now() - make_interval(days => CAST(:found AS int)), ended_id = CASE WHEN :ended THEN commit_id END"
                " WHERE id = coalesce(CAST(:id AS bigint), id)"
            ),
            values,
        )
        await session.execute(text("UPDATE job SET state = 'cancelled' WHERE origin = 'confirm' AND state = 'queued'"))


async def test_what_had_no_turn_is_measured_on_a_later_day_that_has_time_and_once(history, suspected, reports):
    await without_turn(history)
    async with history.database.writing.begin() as session:
        assert await sweep(session) == 1
    await look_with(history, 0)
    assert await state(history) == "unconfirmed"
    async with history.database.writing.begin() as session:
        assert await sweep(session) == 0  # until tomorrow
    await without_turn(history, days=2)
    await look_with(history, 60)
    assert await state(history) == "confirming"
    waiting = {"origin": "confirm", "state": "queued"}
    (job,) = (await history.client.get(f"{API}/jobs", params=waiting)).json()["items"]
    assert job["priority"] == 49  # after those of today
    lease = await suspected.take(kinds=KINDS)
    await lease.report(compared(history, reports, "slower", 0.1))
    await look_with(history, 60)
    assert await state(history) == "confirmed"
    assert [event for _, event in await history.told()] == ["confirmed"]


async def test_what_had_no_turn_is_likely_once_no_agent_can_measure_it_and_stands_when_one_comes_back(
    history, suspected, database
):
    later = [history.commit(number, ratio=-0.4) | {"machine": suspected.machine} for number in (14, 15, 16)]
    await history.upload(*later[:2])
    await without_turn(history)
    await look_with(history, 0)
    assert await state(history) == "unconfirmed"  # the agent is there
    await without_turn(history)
    async with database.writing.begin() as session:
        await session.execute(text("UPDATE agent SET last_seen_at = now() - interval '2 days'"))
        assert await sweep(session) == 1
    await look_with(history, 60)
    assert await state(history) == "likely"
    async with database.writing.begin() as session:
        await session.execute(text("UPDATE agent SET last_seen_at = now()"))
        assert await sweep(session) == 0
    answer = await history.client.post("/api/v1/reports", json=later[2])
    assert answer.status_code == 201, answer.text
    await look_with(history, 0)
    assert await state(history) == "likely"
    assert [event for _, event in await history.told()] == ["likely"]


@pytest.mark.parametrize("why_not", [{"found": 15}, {"ended": True}])
async def test_what_had_no_turn_and_is_over_or_weeks_old_is_not_measured(history, suspected, why_not):
    await without_turn(history, **why_not)
    async with history.database.writing.begin() as session:
        assert await sweep(session) == 0
    await look_with(history, 60)
    assert await state(history) == "unconfirmed"
    assert (await suspected.claim(kinds=KINDS)).status_code == 204


@pytest.mark.long
async def test_of_earlier_days_the_newest_has_the_first_turn_behind_those_of_today(history, slow_again):
    async with history.database.writing.begin() as session:  # two incidents: one variant alone would be of one cause
        await session.execute(text("UPDATE series SET variant = 'native' WHERE variant = 'fused' AND case_id = 1"))
    await history.look()
    older, newer = sorted(each.incident.id for each in await history.incidents())
    await without_turn(history)
    await look_with(history, 3)  # 90 s are left for those of earlier days
    found = {each.incident.id: each.incident.state for each in await history.incidents()}
    assert found == {older: "unconfirmed", newer: "confirming"}
    await without_turn(history, id=newer)
    async with history.database.writing.begin() as session:
        await session.execute(
            text("UPDATE incident SET state = 'suspected', out_of_time_on = NULL WHERE id = :id"), {"id": older}
        )
    await look_with(history, 3)
    found = {each.incident.id: each.incident.state for each in await history.incidents()}
    assert found == {older: "confirming", newer: "unconfirmed"}


@pytest.mark.parametrize(
    ("seen", "spent", "ends"), [(True, 61, "suspected"), (True, 59, "confirming"), (False, 61, "confirming")]
)
async def test_suspicions_in_old_results_leave_half_of_a_day_to_new_ones(history, suspected, seen, spent, ends):
    """Of 120 minutes; an upgrade finds hundreds in the history of a project at once."""
    async with history.database.writing.begin() as session:
        await session.execute(text("DELETE FROM job WHERE origin = 'confirm'"))
        await session.execute(
            text("UPDATE incident SET state = 'suspected', asked = 0, job_id = NULL, seen = :seen"), {"seen": seen}
        )
        await session.execute(text("UPDATE job SET origin = 'bisect', machine_id = (SELECT machine_id FROM attempt)"))
        await session.execute(text("SET LOCAL timezone = 'UTC'"))
        await session.execute(
            text(
                "UPDATE attempt SET leased_at = current_date, ended_at = current_date + make_interval(mins => :spent)"
            ),
            {"spent": spent},
        )
    await look_with(history, 120)
    assert await state(history) == ends
    jobs = (await history.client.get(f"{API}/jobs", params={"origin": "confirm"})).json()["items"]
    assert [job["priority"] for job in jobs] == ([49 if seen else 50] if ends == "confirming" else [])


@pytest.mark.long
async def test_what_was_told_as_likely_stands_while_an_agent_that_came_back_has_no_time_left(
    history, suspected, database
):
    async with database.writing.begin() as session:
        await session.execute(text("UPDATE agent SET last_seen_at = now() - interval '2 days'"))
        await session.execute(text("UPDATE job SET state = 'cancelled' WHERE origin = 'confirm'"))
    documents = [history.commit(number, ratio=-0.4) | {"machine": suspected.machine} for number in range(14, 20)]
    await history.upload(*documents[:2])
    async with database.writing.begin() as session:
        await session.execute(text("UPDATE agent SET last_seen_at = now()"))
        await session.execute(text("UPDATE incident SET asked = 0"))
    for document in documents[2:]:
        answer = await history.client.post("/api/v1/reports", json=document)
        assert answer.status_code == 201, answer.text
    await look_with(history, 0)
    assert await state(history) == "likely"
    assert [event for _, event in await history.told()] == ["likely"]
    await look_with(history, 60)
    await history.upload(history.commit(20, ratio=-0.4) | {"machine": suspected.machine})
    assert await state(history) == "confirming"
    assert [event for _, event in await history.told()] == ["likely"]


@pytest.mark.long
async def test_the_largest_suspicion_has_the_first_turn(history, slow_again):
    async with history.database.writing.begin() as session:  # two incidents: one variant alone would be of one cause
        await session.execute(text("UPDATE series SET variant = 'native' WHERE variant = 'fused' AND case_id = 1"))
    await look_with(history, 0.5)
    found = {each.changes[0].workload: each.incident.state for each in await history.incidents()}
    assert sorted(found.values()) == ["confirming", "suspected"]
    assert found["dense"] == "confirming"


@pytest.mark.sample(every=2)
@pytest.mark.parametrize(
    ("older_than", "told"), [("detector = 'levels 1'", ["confirmed"]), ("detected_from = now()", [])]
)
async def test_what_a_new_detector_sees_in_older_results_is_announced_once_it_is_confirmed(
    history, slow_again, reports, database, older_than, told
):
    async with database.writing.begin() as session:
        await session.execute(text(f"UPDATE project SET {older_than}"))  # noqa: S608 - our own words
    await history.look()
    (found,) = await history.incidents()
    assert (found.incident.state, found.incident.seen) == ("confirming", True)
    await measured_again(history, slow_again, reports, control=("slower", 0.2))
    (found,) = await history.incidents()
    assert (found.incident.state, found.incident.seen) == ("confirmed", not told)
    assert [event for _, event in await history.told()] == told


@pytest.mark.long
async def test_somebody_may_have_it_measured_again_whatever_was_measured_before(history, suspected, reports):
    await measured_again(history, suspected, reports, affected=("same", 0.0))
    (refuted,) = (await history.client.get(f"{API}/incidents")).json()["items"]
    assert refuted["state"] == "refuted"
    asked = (await history.client.post(f"{refuted['url']}/confirm")).json()
    again = (await history.client.post(f"{refuted['url']}/confirm")).json()
    assert asked["job_id"] == again["job_id"] != refuted["job_id"]
    job = (await history.client.get(f"{API}/jobs/{asked['job_id']}")).json()
    assert (job["origin"], job["asked_by"], job["state"]) == ("confirm", "local", "queued")
    await measured_again(history, suspected, reports)  # which contradicts what was measured before
    assert await state(history) == "confirming"
    assert (await suspected.take(kinds=KINDS)).claim["job"]["effort"] == 2


@pytest.mark.long
async def test_what_was_told_as_likely_stands_until_the_measurement_that_somebody_asked_for_is_there(
    history, suspected, database, reports
):
    async with database.writing.begin() as session:
        await session.execute(text("UPDATE agent SET last_seen_at = now() - interval '2 days'"))
        await session.execute(text("UPDATE job SET state = 'cancelled' WHERE origin = 'confirm'"))
    for number in (14, 15):
        await history.upload(history.commit(number, ratio=-0.4) | {"machine": suspected.machine})
    assert (await suspected.claim(kinds=KINDS)).status_code == 204  # it is back
    (likely,) = (await history.client.get(f"{API}/incidents")).json()["items"]
    assert (await history.client.post(f"{likely['url']}/confirm")).json()["state"] == "confirming"
    assert [event for _, event in await history.told()] == ["likely"]
    await measured_again(history, suspected, reports, affected=("same", 0.0))
    assert [event for _, event in await history.told()] == ["likely", "withdrawn"]


@pytest.mark.long
@pytest.mark.parametrize("decision", ["revoked", "real"])
async def test_what_waits_for_its_measurement_is_announced_by_no_decision_of_a_person(
    history, suspected, database, decision
):
    for number in (14, 15):
        await history.upload(history.commit(number, ratio=-0.4) | {"machine": suspected.machine})
    async with database.writing.begin() as session:  # three commits behind it bear it out, and nobody measured it yet
        await session.execute(text("UPDATE job SET state = 'cancelled' WHERE origin = 'confirm'"))
        await session.execute(text("UPDATE incident SET state = 'suspected', asked = 0, job_id = NULL"))
    (only,) = (await history.client.get(f"{API}/incidents")).json()["items"]
    verdict = f"{only['url']}/verdict"
    assert (await history.client.post(verdict, json={"verdict": "noise"})).json()["state"] == "refuted"
    if decision == "revoked":
        said = await history.client.delete(verdict)
    else:
        said = await history.client.post(verdict, json={"verdict": "real"})
    assert said.json()["state"] == "suspected"
    await history.look()
    assert await state(history) == "confirming"
    assert await history.told() == []


@pytest.mark.long
async def test_what_had_no_turn_stays_unconfirmed_when_a_verdict_is_revoked(history, suspected):
    async with history.database.writing.begin() as session:
        await session.execute(text("UPDATE job SET state = 'cancelled' WHERE origin = 'confirm'"))
        await session.execute(
            text("UPDATE incident SET state = 'unconfirmed', job_id = NULL, out_of_time_on = current_date - 2")
        )
    (only,) = (await history.client.get(f"{API}/incidents")).json()["items"]
    await history.client.post(f"{only['url']}/verdict", json={"verdict": "noise"})
    assert (await history.client.delete(f"{only['url']}/verdict")).json()["state"] == "unconfirmed"


@pytest.mark.long
async def test_what_was_told_as_likely_stands_while_a_person_decides_about_it(history, suspected, database):
    async with database.writing.begin() as session:
        await session.execute(text("UPDATE agent SET last_seen_at = now() - interval '2 days'"))
        await session.execute(text("UPDATE job SET state = 'cancelled' WHERE origin = 'confirm'"))
    for number in (14, 15):
        await history.upload(history.commit(number, ratio=-0.4) | {"machine": suspected.machine})
    assert (await suspected.claim(kinds=KINDS)).status_code == 204  # it is back
    (likely,) = (await history.client.get(f"{API}/incidents")).json()["items"]
    await history.client.post(f"{likely['url']}/verdict", json={"verdict": "expected"})
    assert (await history.client.delete(f"{likely['url']}/verdict")).json()["state"] == "likely"
    assert [event for _, event in await history.told()] == ["likely", "resolved"]


@pytest.mark.long
async def test_a_verdict_that_is_given_while_states_are_settled_decides(history, suspected, database):
    for number in (14, 15):
        await history.upload(history.commit(number, ratio=-0.4) | {"machine": suspected.machine})
    (confirming,) = await history.incidents()
    async with database.writing.begin() as session:  # by which it would be likely
        await session.execute(text("UPDATE agent SET last_seen_at = now() - interval '2 days'"))
        await session.execute(text("UPDATE job SET state = 'cancelled' WHERE origin = 'confirm'"))
    async with database.writing.begin() as session:
        await give_verdict(session, confirming.incident.id, "noise", note=None, link=None, by="ada")
        await session.flush()
        settling = asyncio.create_task(look_with(history, 60))
        while not settling.done():
            if (await session.execute(text("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)"))).scalar_one():
                break
            await asyncio.sleep(0.01)
    await settling
    assert await state(history) == "refuted"
    assert await history.told() == []


def suspicion(case, size, *, standing="suspected", worse=True, machine=1):
    return Change(case, machine, case, "fused", "step", worse, "levels", standing, 10, 11, log_ratio=size)


def test_the_largest_suspicions_of_at_most_eight_cases_on_one_device_are_measured():
    on_cpu = MeasurementMethod(1, "cpu", "quick", {})
    measuring = {(case, 1): on_cpu for case in range(1, 12)} | {(12, 1): on_cpu._replace(device="cuda")}
    small = [suspicion(case, 0.01 * case) for case in range(1, 12)]
    assert [each.case_id for each in chosen_to_measure(small, measuring)] == [11, 10, 9, 8, 7, 6, 5, 4]
    on_gpu = suspicion(12, -0.5)
    assert chosen_to_measure([*small, on_gpu], measuring) == [on_gpu]
    others = [
        suspicion(1, 0.9, standing="claimed"), suspicion(2, 0.9, standing="refuted"), suspicion(3, 0.9, worse=False),
        suspicion(4, 0.9, machine=2),
    ]  # fmt: skip
    assert chosen_to_measure(others, measuring) == []


def test_after_an_ambiguous_answer_the_effort_is_larger():
    efforts = [effort_for([suspicion(1, 0.1), suspicion(2, 0.1, standing=each)]) for each in ("suspected", "ambiguous")]
    assert efforts == [1, 2]


def test_a_day_has_minutes_for_so_many_comparisons_of_each_machine():
    budget = Budget({1: 3.0}, 10.0)
    assert [budget.comparisons_left(machine) for machine in (1, 2)] == [8, 36]  # a minute for the job, 15 s for each
    assert not budget.take(1, 2, 2, 1, of_old_results=True)  # half of the day is for new ones
    assert budget.take(1, 2, 2, 2)  # three minutes
    assert not budget.take(1, 1, 1, 1)
    assert budget.take(2, 1, 1, 1, of_old_results=True)
