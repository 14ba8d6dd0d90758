"""Names that people read hold nothing unseen: chosen ones are refused with it, and sent ones show it, for nothing is lost."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import insert, select

from pullback_service.models import Agent, Machine, Token
from pullback_service.name_characters import in_plain_sight, unseen_in
from pullback_service.tokens.queries import valid_token_by_name

pytestmark = pytest.mark.anyio

COMPOSED, DECOMPOSED = "d\u00e9mo", "de\u0301mo"
HIDDEN, SHOWN = "de\u200bmo", "de⟨U+200B⟩mo"
REFUSED = (
    "The name has U+200B (ZERO WIDTH SPACE) after 'de', which is not visible: remove it, or use an ordinary space."
)


@given(st.text(max_size=30))
def test_in_plain_sight_everything_is_seen_and_composed(name):
    shown = in_plain_sight(name)
    assert unseen_in(shown) is None
    assert shown == unicodedata.normalize("NFC", shown)
    assert in_plain_sight(shown) == shown


@given(st.text(st.characters(categories=["L", "N", "P", "S"]), max_size=50))
def test_a_name_that_is_seen_only_takes_its_one_form(name):
    if unseen_in(name) is None:
        assert in_plain_sight(name) == unicodedata.normalize("NFC", name)


def test_what_was_hidden_can_be_read_and_names_are_no_longer_than_names_are():
    assert in_plain_sight(HIDDEN) == SHOWN
    assert in_plain_sight("lab\u00a0\U000e00411") == "lab⟨U+00A0⟩⟨U+E0041⟩1"
    assert len(in_plain_sight("\u200b" * 200)) == 200


@pytest.mark.parametrize("address", ["/api/v1/tokens", "/api/v1/boards"])
async def test_a_name_that_somebody_chooses_is_composed_and_hides_nothing(admin, address):
    more = {"scopes": ["read"]} if address.endswith("tokens") else {}
    refused = await admin.post(address, json={"name": HIDDEN, **more})
    assert (refused.status_code, refused.json()["detail"]) == (422, f"$.name: {REFUSED}")
    made = await admin.post(address, json={"name": DECOMPOSED, **more})
    assert (made.status_code, made.json()["name"]) == (201, COMPOSED)
    assert (await admin.post(address, json={"name": COMPOSED, **more})).status_code == 409


async def test_a_board_gets_no_name_that_hides_anything(client):
    board = (await client.post("/api/v1/boards", json={"name": "one"})).json()
    refused = await client.patch(f"/api/v1/boards/{board['id']}", json={"name": HIDDEN})
    assert (refused.status_code, refused.json()["detail"]) == (422, f"$.name: {REFUSED}")
    renamed = await client.patch(f"/api/v1/boards/{board['id']}", json={"name": DECOMPOSED})
    assert renamed.json()["name"] == COMPOSED


@pytest.mark.parametrize("stored", [COMPOSED, DECOMPOSED])
async def test_a_token_is_found_however_its_name_is_typed(session, stored):
    row = {"digest": b"digest", "prefix": "plb_", "scopes": ["read"], "created_by": "somebody"}
    await session.execute(insert(Token).values(name=stored, **row))
    for typed in (COMPOSED, DECOMPOSED):
        assert (await valid_token_by_name(session, typed)).token.name == stored


async def test_a_machine_with_a_strange_name_delivers_and_its_name_can_be_read(client, reports):
    for commit, name in enumerate((HIDDEN, HIDDEN, DECOMPOSED), start=1):
        report = reports.report(commit, machine=name)
        assert (await client.post("/api/v1/reports", json=report, params={"machine": name})).status_code == 201
        again = await client.post("/api/v1/reports", json=report)
        assert (again.status_code, again.json()["id"]) == (200, report["id"])
    machines = (await client.get("/api/v1/machines")).json()["items"]
    assert [machine["name"] for machine in machines] == [SHOWN, COMPOSED]
    for name in (HIDDEN, SHOWN, f"fingerprint of {HIDDEN}", COMPOSED, DECOMPOSED):
        asked = {"project": "demo", "machine": name}
        assert (await client.get("/api/v1/series", params=asked)).json()["items"], name
        assert (await client.get("/api/v1/matrix", params=asked)).json()["items"], name


async def test_a_file_from_a_machine_with_a_strange_name_is_stored(client, reports, looking):
    file = {"results": [{"command": "sleep 1", "times": [1.0, 2.0]}]}
    for commit, name in enumerate((HIDDEN, COMPOSED, DECOMPOSED), start=1):
        said = {"project": "demo", "commit": reports.sha(commit), "machine": name}
        assert (await client.post("/api/v1/reports", json=file, params=said)).status_code == 201
    assert (await looking.scalars(select(Machine.name).order_by(Machine.id))).all() == [SHOWN, COMPOSED]


async def test_an_agent_with_a_strange_name_is_the_same_agent_again(client, looking):
    wanted = {"name": HIDDEN, "machine": {"fingerprint": "f", "name": DECOMPOSED}}
    first, second = [await client.post("/api/v1/agents/enroll", json=wanted) for _ in range(2)]
    assert first.status_code == second.status_code == 201
    assert first.json()["agent_id"] == second.json()["agent_id"]
    named = await looking.execute(select(Agent.name, Machine.name).join(Machine, Machine.id == Agent.machine_id))
    assert [tuple(row) for row in named] == [(SHOWN, COMPOSED)]
