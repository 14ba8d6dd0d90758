"""What is told is written with what caused it, and sent at least once under one id, five times an hour at most."""

import json

import pytest
from sqlalchemy import text
from tests.service.notifications.conftest import FACTS

from pullback_service import worker
from pullback_service.notifications import outbox
from pullback_service.notifications.events import EVENTS

pytestmark = pytest.mark.anyio

STATES = "SELECT state, count(*) FROM delivery GROUP BY state ORDER BY state"


async def test_a_notification_is_sent_once_to_each_channel_that_wants_it(box, project_id, hooks, database_url):
    await box.make_channel(project_id, "all")
    await box.make_channel(project_id, "ends", events=["resolved"])
    await box.make_channel(await box.make_project("other"), "strangers")
    assert await box.tell(project_id)
    assert not await box.tell(project_id)
    await worker.run_once(database_url, outside=box.outside)  # by the chore that was deferred with it
    await box.work(as_a_worker=True)
    (request,) = hooks.received
    assert request.path == "/all"
    body = json.loads(request.body)
    assert (body["event"], body["key"], body["project"]) == ("confirmed", "k", "demo")
    assert body["facts"] == {**FACTS, "url": "https://pullback.example/projects/demo/commits/a"}
    assert request.headers["pullback-delivery"] == body["delivery"]
    assert await box.rows("SELECT state, attempts, answer FROM delivery") == [("sent", 1, "200 OK")]


async def test_what_is_rolled_back_is_told_to_nobody(box, project_id, database, hooks):
    await box.make_channel(project_id)
    async with database.writing() as session:
        await outbox.enqueue(session, project_id, "confirmed", "k", FACTS)
        await session.rollback()
    await box.work()
    assert hooks.received == []
    assert await box.rows("SELECT count(*) FROM notification") == [(0,)]
    assert await box.tell(project_id)


async def test_old_notifications_are_deleted_unless_they_wait(box, project_id, hooks, database):
    await box.make_channel(project_id)
    for number in range(8):
        await box.tell(project_id, key=f"old {number}")
    await box.work()  # five messages; three wait for a digest
    await box.tell(project_id, key="new")
    async with database.writing.begin() as session:
        for table in ("notification", "delivery"):
            await session.execute(text(f"UPDATE {table} SET created_at = created_at - interval '91 days'"))  # noqa: S608
        await session.execute(text("UPDATE notification SET created_at = now() WHERE key = 'new'"))
        assert not await outbox.delete_old(session)
    assert await box.rows("SELECT count(*) FROM notification") == [(4,)]
    await box.pass_time(2)
    await box.work()
    async with database.writing.begin() as session:
        await outbox.delete_old(session)
    assert await box.rows("SELECT key FROM notification") == [("new",)]
    assert await box.rows("SELECT count(*) FROM delivery WHERE notification_id IS NULL AND state <> 'sent'") == [(0,)]


async def test_a_channel_hears_nothing_of_what_was_before_it(box, project_id, hooks):
    await box.tell(project_id)
    await box.make_channel(project_id)
    await box.tell(project_id)
    await box.work()
    assert hooks.received == []


async def test_what_is_likely_is_told_to_a_channel_that_chose_nothing_only_where_it_is_usual(box, project_id, hooks):
    await box.make_channel(project_id, "usual")
    await box.make_channel(project_id, "asked", events=["likely"])
    await box.make_channel(project_id, "ends", events=["resolved"])
    await box.tell(project_id, event="likely", usual=EVENTS)
    await box.tell(project_id, "later", event="likely")
    await box.work()
    assert sorted(request.path for request in hooks.received) == ["/asked", "/asked", "/usual"]


async def test_beyond_five_messages_an_hour_there_is_one_digest(box, project_id, hooks):
    await box.make_channel(project_id)
    for number in range(20):
        await box.tell(project_id, f"k{number:02}", title=f"Title {number:02}")
    await box.work()
    await box.work()
    assert [json.loads(each.body)["key"] for each in hooks.received] == [f"k{number:02}" for number in range(5)]
    await box.tell(project_id, "late")
    await box.work()
    assert len(hooks.received) == 5
    await box.pass_time(0.9)
    await box.work()
    assert len(hooks.received) == 5
    await box.pass_time(0.2)
    await box.work()
    await box.work()
    digest = json.loads(hooks.received[5].body)
    assert digest["event"] == hooks.received[5].headers["pullback-event"] == "digest"
    assert [each["key"] for each in digest["notifications"]] == [*(f"k{number:02}" for number in range(5, 20)), "late"]
    assert len(hooks.received) == 6
    await box.tell(project_id, "after")
    await box.work()
    assert json.loads(hooks.received[6].body)["key"] == "after"
    assert await box.rows(STATES) == [("digested", 16), ("sent", 7)]


async def test_one_that_waited_for_the_next_hour_is_sent_as_itself(box, project_id, hooks):
    await box.make_channel(project_id)
    for number in range(6):
        await box.tell(project_id, f"k{number}")
    await box.work()
    await box.pass_time(1.1)
    await box.work()
    assert [json.loads(each.body)["event"] for each in hooks.received] == ["confirmed"] * 6


async def test_many_at_once_after_a_quiet_time_are_no_digest(box, project_id, hooks):
    await box.make_channel(project_id)
    for number in range(5):
        await box.tell(project_id, f"k{number}")
    await box.work()
    await box.pass_time(3)
    for number in range(3):
        await box.tell(project_id, f"later {number}")
    await box.work()
    assert [json.loads(each.body)["event"] for each in hooks.received] == ["confirmed"] * 8


async def test_what_was_tried_before_is_in_no_digest_and_keeps_its_id(box, project_id, hooks):
    await box.make_channel(project_id)
    for number in range(8):
        await box.tell(project_id, f"k{number}")
    hooks.answers = [400]
    await box.work()
    await box.retry_now()  # five others, which are those of the hour
    await box.pass_time(1.1)
    await box.work()
    keys = [
        [each["key"] for each in body.get("notifications", [body])]
        for body in map(json.loads, (each.body for each in hooks.received))
    ]
    assert keys == [["k0"], ["k1"], ["k2"], ["k3"], ["k4"], ["k5"], ["k6", "k7"], ["k0"]]
    assert hooks.received[0].headers["pullback-delivery"] == hooks.received[-1].headers["pullback-delivery"]


@pytest.mark.long
async def test_a_digest_that_fails_is_repeated_as_it_was(box, project_id, hooks):
    await box.make_channel(project_id)
    for number in range(7):
        await box.tell(project_id, f"k{number}")
    await box.work()
    await box.pass_time(1.1)
    hooks.answers = [500]
    await box.work()
    await box.tell(project_id, "meanwhile")
    await box.retry_now()
    digests = [each for each in hooks.received if each.headers["pullback-event"] == "digest"]
    assert len(digests) == 2
    assert digests[0].body == digests[1].body
    assert json.loads(hooks.received[-1].body)["event"] in {"confirmed", "digest"}


async def test_a_failure_is_retried_after_a_growing_pause_under_the_same_id(box, project_id, hooks):
    await box.make_channel(project_id)
    await box.tell(project_id)
    hooks.answers = [503, (500, {}, b"out of\r\nbeer"), 302]
    await box.work()
    await box.work()
    assert len(hooks.received) == 1
    pause = "SELECT round(extract(epoch FROM retry_at - (SELECT attempted_at FROM delivery))) FROM channel"
    assert await box.rows(pause) == [(30,)]
    await box.retry_now()
    assert await box.rows(pause) == [(60,)]
    assert await box.rows("SELECT answer FROM delivery") == [("500 Internal Server Error: out of beer",)]
    await box.retry_now()
    assert "redirects are not followed" in (await box.rows("SELECT answer FROM delivery"))[0][0]
    await box.retry_now()
    assert len({each.headers["pullback-delivery"] for each in hooks.received}) == 1
    assert await box.rows("SELECT state, attempts FROM delivery") == [("sent", 4)]
    assert await box.rows("SELECT failures, failing_since, retry_at FROM channel") == [(0, None, None)]


async def test_a_message_that_one_side_will_not_take_holds_up_no_other(box, project_id, hooks):
    await box.make_channel(project_id)
    await box.tell(project_id, "bad")
    hooks.answers = [400]
    await box.work()
    await box.tell(project_id, "good")
    await box.retry_now()
    assert [json.loads(each.body)["key"] for each in hooks.received] == ["bad", "good", "bad"]


async def test_a_channel_that_fails_for_a_day_is_switched_off_and_the_others_are_told(box, project_id, hooks):
    await box.make_channel(project_id, "broken")
    await box.make_channel(project_id, "other", events=["resolved"])
    await box.tell(project_id)
    hooks.answers = [500] * 6
    await box.work()
    for _ in range(4):
        await box.retry_now()
    assert await box.rows("SELECT count(*) FROM channel WHERE switched_off_at IS NOT NULL") == [(0,)]
    await box.pass_time(24.1)
    await box.tell(project_id, "another")
    await box.retry_now()
    assert await box.rows("SELECT name, switched_off_because FROM channel WHERE switched_off_at IS NOT NULL") == [
        ("broken", "500 Internal Server Error: ok")
    ]
    await box.work()
    told = json.loads(hooks.received[-1].body)
    assert (hooks.received[-1].path, told["event"]) == ("/other", "channel_off")
    assert "broken" in told["facts"]["sentence"]
    assert await box.rows(
        "SELECT DISTINCT state FROM delivery JOIN channel ON channel.id = channel_id WHERE name = 'broken'"
    ) == [("failed",)]
    before = len(hooks.received)
    await box.tell(project_id, "afterwards")
    await box.work()
    assert len(hooks.received) == before


async def test_a_worker_that_was_stopped_for_a_day_switches_nothing_off_at_its_first_failure(box, project_id, hooks):
    await box.make_channel(project_id)
    await box.tell(project_id)
    hooks.answers = [500] * 2
    await box.work()
    await box.pass_time(30)
    await box.retry_now()
    assert await box.rows("SELECT switched_off_at FROM channel") == [(None,)]
    await box.retry_now()
    assert await box.rows("SELECT state FROM delivery") == [("sent",)]
