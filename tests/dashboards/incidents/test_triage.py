"""Triage by forms: verdicts on one incident and on many, who is in charge, and what is refused."""

import httpx
import pytest

from pullback_cli.app import create_app
from pullback_service.settings import Settings

pytestmark = pytest.mark.anyio

LIST = "/projects/demo/incidents"
HTML = {"accept": "text/html"}


@pytest.fixture
async def several(stored_history):
    """An open incident of time; behind it one of memory that is over, and an improvement."""
    await stored_history.upload(
        stored_history.commit(1),
        stored_history.paired(stored_history.commit(2), 0.26, "slower"),
        stored_history.commit(3, array_bytes=4096.0),
        stored_history.commit(4, array_bytes=512.0),
    )
    return stored_history


async def verdicts(stored_history):
    items = (await stored_history.client.get("/api/v1/incidents")).json()["items"]
    return {one["id"]: one["verdict"] and one["verdict"]["verdict"] for one in items}


async def test_a_button_gives_a_verdict_with_a_note_and_a_link(several):
    said = {"verdict": "expected", "note": "Exact sums.", "link": "https://git.example/7"}
    answer = await several.client.post(f"{LIST}/1/verdict", data=said)
    assert (answer.status_code, answer.headers["location"]) == (303, f"{LIST}/1")
    given = (await several.client.get("/api/v1/incidents/1")).json()["verdict"]
    assert (given["verdict"], given["note"], given["link"], given["by"]) == (
        "expected", "Exact sums.", "https://git.example/7", "local",
    )  # fmt: skip
    assert (await several.client.post(f"{LIST}/1/verdict", data={"verdict": "none"})).status_code == 303
    assert (await verdicts(several))[1] is None


async def test_one_verdict_is_of_all_that_are_ticked_and_is_one_line_of_the_audit_log(several):
    ticked = {"incident-1": "on", "incident-2": "on", "verdict": "fixed", "note": "Both."}
    answer = await several.client.post(f"{LIST}?show=all&sort=newest", data=ticked)
    assert (answer.status_code, answer.headers["location"]) == (303, f"{LIST}?show=all&sort=newest")
    assert await verdicts(several) == {1: "fixed", 2: "fixed", 3: None}
    lines = (await several.client.get("/api/v1/audit", params={"project": "demo"})).json()["items"]
    assert [line["subject"] for line in lines if line["details"].get("verdict")] == ["incidents 1, 2"]
    # The same again says nothing new.
    await several.client.post(LIST, data=ticked)
    again = (await several.client.get("/api/v1/audit", params={"project": "demo"})).json()["items"]
    assert len(again) == len(lines)


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"verdict": "noise"}, "No incident is chosen"),
        ({"incident-1": "on", "verdict": "maybe"}, "give one of real, noise, expected, fixed, none"),
        ({"incident-1": "on", "incident-99": "on", "verdict": "noise"}, "There is no incident 99"),
    ],
)
async def test_a_list_with_a_mistake_is_refused_whole(several, data, says):
    answer = await several.client.post(LIST, data=data, headers=HTML)
    assert answer.status_code in {400, 404, 422}
    assert says in answer.text or "No such incident" in answer.text
    assert await verdicts(several) == {1: None, 2: None, 3: None}


async def test_incidents_of_another_project_are_not_judged(several):
    await several.client.post("/api/v1/reports", json=several.commit(1, project="other"))
    for address, data in (
        ("/projects/other/incidents", {"incident-1": "on", "verdict": "noise"}),
        ("/projects/other/incidents/1/verdict", {"verdict": "noise"}),
    ):
        assert (await several.client.post(address, data=data)).status_code == 404
    assert (await verdicts(several))[1] is None


async def test_somebody_is_put_in_charge_and_finds_it_among_what_is_theirs(several):
    assert "Nothing is open for local" in (await several.client.get(f"{LIST}?show=mine")).text
    answer = await several.client.post(f"{LIST}/1/assignee", data={"assignee": "local"})
    assert answer.status_code == 303
    mine = (await several.client.get(f"{LIST}.json?show=mine")).json()
    assert [(line["id"], line["assignee"]) for line in mine["lines"]] == [(1, "local")]
    await several.client.post(f"{LIST}/1/assignee", data={"assignee": ""})
    assert (await several.client.get(f"{LIST}.json?show=mine")).json()["lines"] == []
    assert (await several.client.post(f"{LIST}/1/assignee", data={})).status_code in {400, 422}


@pytest.mark.long
async def test_what_cannot_be_measured_or_bisected_says_why(several):
    for action, says in (("confirm", "Incident 1 cannot be measured"), ("bisect", "begins at one commit")):
        answer = await several.client.post(f"{LIST}/1/{action}", headers=HTML)
        assert (answer.status_code, says in answer.text) == (409, True)
    assert "Bisect</button>" not in (await several.client.get(f"{LIST}/1")).text


async def test_the_buttons_are_for_those_who_may_and_others_are_told_what_it_takes(several, database_url, tmp_path):
    secret = tmp_path / "token"
    secret.write_text("the-secret")
    await several.client.patch("/api/v1/projects/demo", json={"public_read": True})
    app = create_app(Settings(DATABASE_URL=database_url, auth="token", token_file=secret))
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client,
    ):
        for address in (LIST, f"{LIST}/1"):
            page = (await client.get(address)).text
            assert "Triage needs a token with the scope upload; you are not signed in." in page
            assert 'name="verdict"' not in page
            assert "Messages</h2>" not in page  # deliveries are for administrators
        refused = await client.post(f"{LIST}/1/verdict", data={"verdict": "noise"}, headers=HTML)
        assert refused.status_code in {401, 403}
    assert (await verdicts(several))[1] is None


async def test_channels_see_what_was_sent_of_an_incident(stored_history):
    await stored_history.upload(stored_history.commit(1))
    channel = {"project": "demo", "name": "ops", "kind": "webhook", "url": "https://hooks.example/1"}
    (await stored_history.client.post("/api/v1/channels", json=channel)).raise_for_status()
    await stored_history.upload(stored_history.paired(stored_history.commit(2), 0.26, "slower"))
    (sent,) = (await stored_history.client.get(f"{LIST}/1.json")).json()["messages"]
    assert (sent["channel"], sent["event"], sent["state"]) == ("ops", "confirmed", "waiting")
