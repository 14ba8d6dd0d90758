"""Boards over the API: whose they are, what is on them, and in which order."""

import pytest

pytestmark = pytest.mark.anyio

API = "/api/v1"
TIMES = {"kind": "explore", "project": "demo", "query": {"metric": ["time"]}}
DENSE = {"kind": "workload", "project": "demo", "workload": "dense_bias_act", "query": {}}
MAIN = {"kind": "compare", "project": "demo", "query": {"head": ["main"]}}


async def made(client, name="mine", headers=None, **more):
    answer = await client.post(f"{API}/boards", json={"name": name, **more}, headers=headers)
    assert answer.status_code == 201, answer.text
    return f"{API}/boards/{answer.json()['id']}"


async def pinned(client, board, headers=None):
    answer = await client.get(board, headers=headers)
    assert answer.status_code == 200, answer.text
    return [(chart["kind"], chart["title"], chart["place"]) for chart in answer.json()["pinned"]]


async def test_charts_stand_in_their_order_and_are_moved_retitled_and_removed(client):
    await client.post(f"{API}/projects", json={"name": "demo"})
    board = await made(client)
    ids = []
    for chart in (TIMES, DENSE, MAIN):
        answer = await client.post(f"{board}/charts", json=chart)
        assert answer.status_code == 201, answer.text
        ids.append(answer.json()["chart"]["id"])
    again = await client.post(f"{board}/charts", json=DENSE)
    assert (again.status_code, again.json()["chart"]["id"], again.json()["chart"]["place"]) == (200, ids[1], 2)
    assert (await client.patch(f"{board}/charts/{ids[2]}", json={"place": 1, "title": "Main"})).json()["place"] == 1
    assert await pinned(client, board) == [("compare", "Main", 1), ("explore", None, 2), ("workload", None, 3)]
    assert (await client.patch(f"{board}/charts/{ids[2]}", json={"place": 40})).json()["place"] == 3
    assert (await client.patch(f"{board}/charts/{ids[2]}", json={"title": None})).json()["title"] is None
    assert (await client.delete(f"{board}/charts/{ids[0]}")).json()["query"] == {"metric": ["time"]}
    assert (await client.delete(f"{board}/charts/{ids[0]}")).status_code == 404
    assert await pinned(client, board) == [("workload", None, 1), ("compare", None, 2)]
    assert (await client.patch(board, json={"name": "ours"})).json()["name"] == "ours"
    listed = (await client.get(f"{API}/boards")).json()["items"]
    assert [(one["name"], one["charts"], one["own"], one["may_change"]) for one in listed] == [("ours", 2, True, True)]
    assert (await client.delete(board)).json()["charts"] == 2
    assert (await client.get(board)).status_code == 404


async def test_a_name_is_there_once_for_each_owner_and_project(client):
    for project in ("demo", "other"):
        await client.post(f"{API}/projects", json={"name": project})
    await made(client)
    await made(client, project="demo")
    await made(client, project="other")
    second = await made(client, name="second")
    for answer in (
        await client.post(f"{API}/boards", json={"name": "mine"}),
        await client.post(f"{API}/boards", json={"name": "mine", "project": "demo"}),
        await client.patch(second, json={"name": "mine"}),
    ):
        assert answer.status_code == 409
        assert "choose another name" in answer.json()["detail"]
    assert len((await client.get(f"{API}/boards")).json()["items"]) == 4


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(
    "chart",
    [
        {**TIMES, "kind": "heat"},
        {**TIMES, "workload": "dense"},
        {**DENSE, "workload": None},
        {**TIMES, "query": {"metric": []}},
        {**TIMES, "query": {"metric": ["a\nb"]}},
        {**TIMES, "query": {str(number): ["x"] for number in range(41)}},
        {**TIMES, "title": ""},
    ],
)
async def test_what_is_no_chart_is_refused(client, chart):
    await client.post(f"{API}/projects", json={"name": "demo"})
    board = await made(client)
    answer = await client.post(f"{board}/charts", json=chart)
    assert (answer.status_code, bool(answer.json()["errors"])) == (422, True)


@pytest.mark.long
async def test_a_board_holds_forty_charts(client):
    await client.post(f"{API}/projects", json={"name": "demo"})
    board = await made(client)
    for number in range(40):
        chart = {**TIMES, "query": {"last": [str(number)]}}
        assert (await client.post(f"{board}/charts", json=chart)).status_code == 201
    refused = await client.post(f"{board}/charts", json=TIMES)
    assert (refused.status_code, "40 charts" in refused.json()["detail"]) == (409, True)


async def test_own_boards_are_read_by_address_and_changed_by_their_owner_alone(guarded, admin, make_token):
    await admin.post(f"{API}/projects", json={"name": "demo"})
    reader, other = await make_token("read"), await make_token("read", "upload")
    board = await made(guarded, headers=reader)
    chart = (await guarded.post(f"{board}/charts", json=TIMES, headers=reader)).json()["chart"]["id"]
    assert await pinned(guarded, board, headers=other) == [("explore", None, 1)]
    assert (await guarded.get(f"{API}/boards", headers=other)).json()["items"] == []
    place = f"{board}/charts/{chart}"
    for answer in (
        await guarded.post(f"{board}/charts", json=DENSE, headers=other),
        await guarded.patch(board, json={"name": "theirs"}, headers=other),
        await guarded.patch(place, json={"place": 1}, headers=other),
        await guarded.delete(place, headers=other),
        await guarded.delete(board, headers=other),
    ):
        assert answer.status_code == 403
        assert "make a board of your own" in answer.json()["detail"]
    assert (await admin.patch(board, json={"name": "kept"})).status_code == 200
    assert (await guarded.get(board)).status_code == 401
    assert (await guarded.post(f"{API}/boards", json={"name": "x"})).status_code == 401


async def test_a_projects_board_is_changed_by_who_may_upload_to_it(guarded, admin, make_token):
    for project in ("demo", "secret"):
        await admin.post(f"{API}/projects", json={"name": project})
    reader, uploader = await make_token("read", project="demo"), await make_token("read", "upload", project="demo")
    stranger = await make_token("read", "upload", project="secret")
    refused = await guarded.post(f"{API}/boards", json={"name": "x", "project": "demo"}, headers=reader)
    assert (refused.status_code, "scope upload" in refused.json()["detail"]) == (403, True)
    board = await made(guarded, headers=uploader, project="demo")
    assert (await guarded.post(f"{board}/charts", json=TIMES, headers=reader)).status_code == 403
    assert (await guarded.post(f"{board}/charts", json=TIMES, headers=uploader)).status_code == 201
    assert (await guarded.get(board, headers=stranger)).status_code == 404
    assert (await guarded.post(f"{board}/charts", json=TIMES, headers=stranger)).status_code == 403
    await admin.patch(f"{API}/projects/demo", json={"public_read": True})
    assert [one["may_change"] for one in (await guarded.get(f"{API}/boards")).json()["items"]] == [False]
    assert await pinned(guarded, board) == [("explore", None, 1)]


async def test_charts_of_projects_one_may_not_read_are_not_there(guarded, admin, make_token):
    for project in ("demo", "secret"):
        await admin.post(f"{API}/projects", json={"name": project})
    everybody, of_demo = await make_token("read"), await make_token("read", project="demo")
    board = await made(guarded, headers=everybody)
    for chart in (TIMES, {**TIMES, "project": "secret"}, MAIN):
        await guarded.post(f"{board}/charts", json=chart, headers=everybody)
    answer = await guarded.get(board, headers=of_demo)
    assert "secret" not in answer.text
    assert [chart["project"] for chart in answer.json()["pinned"]] == ["demo", "demo"]
    assert answer.json()["charts"] == 2
    own = await made(guarded, headers=of_demo)
    answer = await guarded.post(f"{own}/charts", json={**TIMES, "project": "secret"}, headers=of_demo)
    assert answer.status_code == 403


async def test_a_token_of_a_name_that_was_free_again_inherits_no_boards(guarded, admin):
    async def token():
        answer = await admin.post(f"{API}/tokens", json={"name": "person", "scopes": ["read"]})
        return answer.json()["id"], {"authorization": f"Bearer {answer.json()['token']}"}

    first_id, first = await token()
    board = await made(guarded, headers=first)
    await admin.post(f"{API}/tokens/{first_id}/revoke")
    _, second = await token()
    assert (await guarded.get(f"{API}/boards", headers=second)).json()["items"] == []
    assert (await guarded.delete(board, headers=second)).status_code == 403


async def test_writes_are_in_the_audit_log_and_a_repeated_pin_is_not(client):
    await client.post(f"{API}/projects", json={"name": "demo"})
    board = await made(client, project="demo")
    for _ in range(2):
        await client.post(f"{board}/charts", json=TIMES)
    lines = (await client.get(f"{API}/audit", params={"project": "demo"})).json()["items"]
    assert [line["action"] for line in lines] == ["pin_chart", "create_board", "create_project"]
