"""Channels over the API: made, listed, tested and removed by administrators of their project, without ever showing a secret again."""

import pytest
from sqlalchemy import select, text
from tests.service.notifications.conftest import LOOPBACK

from pullback_service.models import Audit
from pullback_service.notifications.delivery import send_messages
from pullback_service.notifications.transport import DeliverySettings

pytestmark = pytest.mark.anyio

CHANNELS = "/api/v1/channels"
WEBHOOK = {"project": "demo", "name": "team", "kind": "webhook", "url": "https://hooks.example/T0/secret-part"}


@pytest.fixture
async def demo(client):
    assert (await client.post("/api/v1/projects", json={"name": "demo"})).status_code == 201
    return client


async def test_a_secret_is_shown_once(demo, session):
    made = await demo.post(CHANNELS, json=WEBHOOK)
    assert (made.status_code, made.headers["cache-control"]) == (201, "no-store")
    body = made.json()
    secret = body["secret"]
    assert secret.startswith("plb_hook_")
    assert len(secret) > 40
    assert (body["state"], body["events"], body["target"]) == ("on", None, "https://hooks.example/…")
    delivery = (await demo.post(f"{CHANNELS}/{body['id']}/test")).json()
    answers = [
        await demo.get(CHANNELS, params={"project": "demo"}),
        await demo.get(f"{CHANNELS}?format=csv"),
        await demo.get(f"{CHANNELS}/{body['id']}/deliveries"),
        await demo.get(f"{CHANNELS}/{body['id']}/deliveries?format=csv"),
        await demo.get("/api/v1/audit"),
        await demo.delete(f"{CHANNELS}/{body['id']}"),
    ]
    for answer in answers:
        assert answer.is_success
        assert secret not in answer.text
        assert "secret-part" not in answer.text
    assert answers[0].json()["items"][0] == {
        **{name: value for name, value in body.items() if name != "secret"},
        "waiting": 1,
    }
    assert answers[2].json()["items"] == [delivery]
    assert (delivery["event"], delivery["state"]) == ("test", "waiting")
    lines = await session.execute(select(Audit.action, Audit.subject, Audit.project).order_by(Audit.id))
    assert [tuple(line) for line in lines][1:] == [
        (action, f"channel {body['id']}", "demo") for action in ("create_channel", "test_channel", "remove_channel")
    ]
    assert await session.scalar(text("SELECT count(*) FROM delivery")) == 0
    assert (await demo.delete(f"{CHANNELS}/{body['id']}")).status_code == 404


async def test_a_test_is_sent_whatever_the_state_and_switches_the_channel_on(demo, database, hooks):
    made = (await demo.post(CHANNELS, json=WEBHOOK)).json()
    async with database.writing.begin() as session:
        await session.execute(
            text(
                "UPDATE channel SET target = :url, switched_off_at = now(), switched_off_because = 'x', failing_since = now(), "
                "retry_at = now() + interval '1 day', limited_until = now() + interval '1 hour'"
            ),
            {"url": hooks.url()},
        )
    assert (await demo.get(CHANNELS)).json()["items"][0]["state"] == "off"
    hooks.answers = [500]
    for _ in range(2):
        assert (await demo.post(f"{CHANNELS}/{made['id']}/test")).status_code == 202
        await send_messages(database, made["id"], DeliverySettings(networks=LOOPBACK))
    deliveries = (await demo.get(f"{CHANNELS}/{made['id']}/deliveries")).json()["items"]
    assert [(each["state"], each["answer"]) for each in deliveries] == [
        ("sent", "200 OK"), ("failed", "500 Internal Server Error: ok"),
    ]  # fmt: skip
    shown = (await demo.get(CHANNELS)).json()["items"][0]
    assert (shown["state"], shown["switched_off_because"]) == ("on", None)


async def test_tests_are_few(demo):
    channel = (await demo.post(CHANNELS, json=WEBHOOK)).json()
    answers = [await demo.post(f"{CHANNELS}/{channel['id']}/test") for _ in range(6)]
    assert [answer.status_code for answer in answers] == [202] * 5 + [429]
    assert answers[-1].headers["retry-after"] == "3600"


async def test_deliveries_are_paged_newest_first(demo):
    channel = (await demo.post(CHANNELS, json=WEBHOOK)).json()
    made = [(await demo.post(f"{CHANNELS}/{channel['id']}/test")).json()["id"] for _ in range(3)]
    first = (await demo.get(f"{CHANNELS}/{channel['id']}/deliveries?limit=2")).json()
    rest = (await demo.get(f"{CHANNELS}/{channel['id']}/deliveries", params={"cursor": first["next"]})).json()
    assert [each["id"] for each in first["items"] + rest["items"]] == made[::-1]
    assert (await demo.get(f"{CHANNELS}/99/deliveries")).status_code == 404


@pytest.mark.sample(every=4)
@pytest.mark.parametrize(
    ("change", "where", "said"),
    [
        ({"url": "ftp://hooks.example/"}, "$.url", "no https address"),
        ({"url": "http://hooks.example/"}, "$.url", "is http"),
        ({"url": "https://127.0.0.1/"}, "$.url", "private address"),
        ({"url": "https://[::ffff:10.0.0.1]/"}, "$.url", "private address"),
        ({"url": "https://169.254.169.254/latest"}, "$.url", "PULLBACK_ALLOW_NETWORKS"),
        ({"url": "https://0x7f000001/"}, "$.url", "private address"),
        ({"url": "https://metadata.internal/"}, "$.url", "private address"),
        ({"url": "https://%31%32%37.0.0.1/"}, "$.url", "no valid host"),
        ({"url": "https://hooks.example:port/"}, "$.url", "no address"),
        ({"url": "https://hooks.example/\n"}, "$.url", ""),
        ({"url": None}, "$", "`url` and no `to`"),
        ({"kind": "email"}, "$", "`to` and no `url`"),
        ({"kind": "email", "url": None, "to": ["a@b.co,c@d.co"]}, "$.to[0]", "Give a mail address like"),
        ({"kind": "email", "url": None, "to": ["a@b.co\r\nBcc: c@d.co"]}, "$.to[0]", "Give a mail address like"),
        ({"kind": "email", "url": None, "to": []}, "$.to", "1 or more values"),
        ({"events": ["channel_off"]}, "$.events[0]", "confirmed"),
        ({"events": []}, "$.events", "1 or more values"),
        ({"name": "a\u200bb"}, "$.name", "ZERO WIDTH SPACE"),
        ({"secret": "mine"}, "$.secret", "Unknown name"),
    ],
)  # fmt: skip
async def test_what_does_not_hold_is_refused_with_its_place(demo, change, where, said):
    wanted = {name: value for name, value in {**WEBHOOK, **change}.items() if value is not None}
    answer = await demo.post(CHANNELS, json=wanted)
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["path"] == where
    assert said in answer.json()["errors"][0]["message"]


async def test_the_operator_may_allow_a_network(start_service):
    async with start_service(allow_networks="10.0.0.0/8") as client:
        await client.post("/api/v1/projects", json={"name": "demo"})
        for number, (url, status) in enumerate(
            (
                ("http://10.1.2.3/", 201),
                ("http://hooks.internal/", 201),
                ("https://127.0.0.1/", 422),
                ("http://1.1.1.1/", 422),
            )
        ):
            answer = await client.post(CHANNELS, json={**WEBHOOK, "name": f"c{number}", "url": url})
            assert answer.status_code == status, (url, answer.text)


async def test_names_are_one_projects_own_and_channels_are_few(demo):
    assert (await demo.post(CHANNELS, json=WEBHOOK)).status_code == 201
    again = await demo.post(CHANNELS, json=WEBHOOK)
    assert (again.status_code, "'team' already" in again.json()["detail"]) == (409, True)
    for number in range(19):
        await demo.post(CHANNELS, json={**WEBHOOK, "name": f"c{number}"})
    many = await demo.post(CHANNELS, json={**WEBHOOK, "name": "more"})
    assert (many.status_code, "20 channels" in many.json()["detail"]) == (409, True)
    assert (await demo.post(CHANNELS, json={**WEBHOOK, "project": "nowhere"})).status_code == 404


async def test_administrators_of_a_project_see_its_channels_and_nobody_else_does(admin, guarded, make_token):
    for name in ("mine", "yours"):
        await admin.post("/api/v1/projects", json={"name": name, "public_read": True})
    made = {
        name: (await admin.post(CHANNELS, json={**WEBHOOK, "project": name})).json()["id"] for name in ("mine", "yours")
    }
    me = await make_token("admin", project="mine")
    assert [each["project"] for each in (await guarded.get(CHANNELS, headers=me)).json()["items"]] == ["mine"]
    assert (await guarded.post(f"{CHANNELS}/{made['mine']}/test", headers=me)).status_code == 202
    for request in (
        guarded.post(f"{CHANNELS}/{made['yours']}/test", headers=me),
        guarded.delete(f"{CHANNELS}/{made['yours']}", headers=me),
        guarded.get(f"{CHANNELS}/{made['yours']}/deliveries", headers=me),
    ):
        assert (await request).status_code == 404
    assert (
        await guarded.post(CHANNELS, json={**WEBHOOK, "project": "yours", "name": "x"}, headers=me)
    ).status_code == 403
    assert (await guarded.get(CHANNELS, params={"project": "yours"}, headers=me)).json()["items"] == []
    uploader = await make_token("read", "upload", project="mine")
    for headers, status in ((uploader, 403), ({}, 401)):
        assert (await guarded.get(CHANNELS, headers=headers)).status_code == status
        assert (await guarded.get(f"{CHANNELS}/{made['mine']}/deliveries", headers=headers)).status_code == status
        assert (
            await guarded.post(CHANNELS, json={**WEBHOOK, "project": "mine"}, headers=headers)
        ).status_code == status
