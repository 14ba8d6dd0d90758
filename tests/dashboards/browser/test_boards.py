"""Pinning and boards as a reader uses them: links and forms, without a script."""

import re

import httpx
import pytest

pytestmark = pytest.mark.browser

EXPLORED = "/projects/pullback/explore?workload=dense_bias_act&metric=time&split=variant"


def drawn_for(page):
    """For which widths the images are drawn that the browser chose."""
    chosen = page.locator("figure img").evaluate_all("(images) => images.map((image) => image.currentSrc)")
    return {address.rpartition("width=")[2] for address in chosen}


@pytest.mark.long
def test_charts_are_pinned_ordered_named_and_taken_off_without_a_script(visit, base):
    page = visit(EXPLORED, javascript=False)
    page.get_by_role("link", name=re.compile("^Pin fused: time")).click()
    assert page.locator("figure h2").inner_text() == "dense_bias_act, time, fused"
    page.get_by_label("or a new board, called").or_(page.get_by_label("name of a new board")).fill(
        "Dense <b>layers</b>"
    )
    page.get_by_role("button", name=re.compile("^(Create and pin|Pin)$")).last.click()
    board = page.url.partition("#")[0]
    assert page.locator("h1").inner_text() == "Dense <b>layers</b>"

    for place, link in (
        ("/projects/pullback/workloads/dense_bias_act", "Pin array bytes to a board"),
        ("/projects/pullback/compare?head=main", "Pin to a board"),
    ):
        page.goto(base + place)
        page.get_by_role("link", name=link).click()
        page.locator("select[name=board]").select_option("Dense <b>layers</b>")
        page.get_by_role("button", name="Pin", exact=True).click()
    titles = page.locator("figure h2")
    assert [title.split(",")[0] for title in titles.all_inner_texts()][-1] == "main against its first parent"
    assert "7 series are worse, 2 are better" in page.locator("figure").last.inner_text()
    assert page.locator("figure img").count() == 2
    for image in page.locator("figure img").all():
        address = image.get_attribute("src")
        drawn = httpx.get(base + address)
        assert drawn.headers["content-type"] == "image/svg+xml"
        assert drawn.text.count("<circle") >= 12

    assert drawn_for(page) == {"600"}
    page.set_viewport_size({"width": 390, "height": 900})
    page.reload()
    assert drawn_for(page) == {"420"}

    page.get_by_role("link", name="Change this board").click()
    page.get_by_role("button", name=re.compile("^Move forward: main")).click()
    page.get_by_label(re.compile("^Title of main")).fill("What main did")
    page.locator("figure", has=page.get_by_label(re.compile("^Title of main"))).get_by_role(
        "button", name="Title"
    ).click()
    assert titles.nth(1).inner_text() == "What main did"
    page.get_by_role("button", name=re.compile("^Unpin: dense_bias_act, time")).click()
    assert titles.count() == 2
    page.goto(base + "/boards")
    row = page.locator("tbody tr", has_text="Dense <b>layers</b>")
    assert row.locator("td").nth(1).inner_text() == "2"

    board_json = httpx.get(f"{board}.json").json()
    assert board_json["tiles"][0]["title"] == "What main did"
    page.goto(f"{board}?edit=true")
    page.get_by_role("checkbox").check()
    page.get_by_role("button", name="Remove this board").click()
    assert httpx.get(board).status_code == 404


@pytest.mark.parametrize(
    ("address", "sent", "status", "words"),
    [
        ("/boards", {"name": ""}, 422, "name"),
        ("/boards/pin", {"chart": "/jobs", "name": "x"}, 422, "Only charts of explore"),
        ("/boards/pin", {"chart": EXPLORED, "board": "nonsense"}, 422, "This is not a board"),
        ("/boards/pin", {"chart": "/projects/nope/explore", "name": "x"}, 404, "no project"),
        ("/boards/pin", {"chart": EXPLORED, "name": "x", "whose": "theirs"}, 422, "one of own, project"),
        ("/boards/00000000-0000-0000-0000-000000000000", {"do": "rename", "name": "x"}, 404, "no board"),
    ],
)
def test_what_cannot_be_is_said_in_the_pages_style(base, address, sent, status, words):
    answer = httpx.post(base + address, data=sent, headers={"accept": "text/html"})
    assert answer.status_code == status
    assert words in answer.text
    assert "Back to the overview" in answer.text


def test_a_form_that_does_not_say_what_to_do_changes_nothing(base):
    headers = {"accept": "text/html"}
    charts = [
        f"/projects/pullback/explore?workload=dense_bias_act&metric={metric}" for metric in ("time", "array_bytes")
    ]
    made = httpx.post(f"{base}/boards/pin", data={"chart": charts[0], "name": "undecided"}, headers=headers)
    board = made.headers["location"].partition("#")[0]
    httpx.post(f"{base}/boards/pin", data={"chart": charts[1], "board": board.rpartition("/")[2]}, headers=headers)
    before = httpx.get(f"{base}{board}.json").json()
    chart = f"{board}/charts/{before['tiles'][1]['id']}"
    for address, sent, words in (
        (board, {"name": "renamed"}, "is missing: give one of rename, copy, remove"),
        (board, {"do": "burn", "name": "renamed"}, "one of rename, copy, remove"),
        (chart, {}, "is missing: give one of move, title, remove"),
        (chart, {"do": "swap", "place": "1"}, "one of move, title, remove"),
        (chart, {"do": "move"}, "place"),
        (chart, {"do": "title"}, "has no field"),
    ):
        refused = httpx.post(base + address, data=sent, headers=headers)
        assert (refused.status_code, words in refused.text) == (422, True), (sent, refused.text)
    assert httpx.get(f"{base}{board}.json").json() == before


def test_a_form_of_another_site_changes_nothing(base):
    headers = {"origin": "https://evil.example", "accept": "text/html"}
    answer = httpx.post(f"{base}/boards", data={"name": "theirs"}, headers=headers)
    assert answer.status_code == 403
    assert "Requests from pages of other sites are refused" in answer.text
    assert "Back to the overview" in answer.text
    assert "theirs" not in httpx.get(f"{base}/boards.json").text


def test_two_machines_are_held_against_each_other(empty_base, made):
    case = ("held_apart", {"n": 1}, "f8", 1e-3, 800)
    for machine in ("old", "new"):
        report = made.made_report(3, project="machines", machine=machine, cases=[case])
        httpx.post(f"{empty_base}/api/v1/reports", json=report).raise_for_status()
    sha = report["commit"]["sha"]
    address = f"{empty_base}/projects/machines/compare"
    view = httpx.get(f"{address}.json?head={sha}&head_machine=new&base_machine=old&show=all").json()
    outcomes = {(row["variant"], row["metric"]): (row["outcome"], row["kind"]) for row in view["rows"]}
    assert outcomes["fused", "array_bytes"] == ("equal", "counted")
    assert outcomes["fused", "time"][0] == "ambiguous"
    assert {row["machine"] for row in view["rows"]} == {"new"}
    assert "two machines" in view["rows"][0]["reason"] + view["verdict"]["then"]
    assert view["reference"]["sha"] == view["candidate"]["sha"] == sha
    refused = httpx.get(f"{address}?head={sha}&base_machine=old", headers={"accept": "text/html"})
    assert (refused.status_code, "give head_machine too" in refused.text) == (422, True)


def test_a_board_of_a_replaced_token_goes_on_as_a_copy(guarded_base):
    with httpx.Client(base_url=guarded_base, headers={"authorization": "Bearer the-secret"}) as admin:
        admin.post("/api/v1/projects", json={"name": "copied"})

        def token(name):
            made = admin.post("/api/v1/tokens", json={"name": name, "scopes": ["read"]}).json()
            return made["id"], {"authorization": f"Bearer {made['token']}"}

        first_id, first = token("replaced")
        board = admin.post("/api/v1/boards", json={"name": "mine"}, headers=first).json()["id"]
        chart = {"kind": "explore", "project": "copied", "query": {"metric": ["time"]}, "title": "Times"}
        admin.post(f"/api/v1/boards/{board}/charts", json=chart, headers=first)
        admin.post(f"/api/v1/tokens/{first_id}/revoke")

        _, second = token("successor")
        page = admin.get(f"/boards/{board}", headers=second).text
        assert "make a copy with the new one" in page
        assert 'name="name" value="mine"' in page
        answer = admin.post(f"/boards/{board}", data={"do": "copy", "name": "mine"}, headers=second)
        copied = admin.get(f"{answer.headers['location']}.json", headers=second).json()
        assert (copied["own"], copied["board"]["name"], [tile["title"] for tile in copied["tiles"]]) == (
            True, "mine", ["Times"],
        )  # fmt: skip
        again = admin.post(f"/boards/{board}", data={"do": "copy", "name": "mine"}, headers=second)
        assert again.status_code == 409
        assert len(admin.get(f"/boards/{board}.json").json()["tiles"]) == 1
