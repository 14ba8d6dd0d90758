"""Settings pages on a service that needs a token: who may, who may not, and what the forms do."""

import re
from contextlib import ExitStack

import httpx
import pytest

pytestmark = pytest.mark.browser


@pytest.fixture
def signed_in(guarded_base):
    """Sign a browser in with a token: the browser, and the proof that its forms carry."""
    with ExitStack() as browsers:

        def sign_in(token):
            browser = browsers.enter_context(httpx.Client(base_url=guarded_base, headers={"accept": "text/html"}))
            assert browser.post("/login", data={"token": token}).status_code == 303
            proof = re.search(r'name="csrf" value="([0-9a-f]{128})"', browser.get("/settings").text)[1]
            return browser, {"csrf": proof}

        yield sign_in


def test_settings_are_changed_by_administrators_and_explained_to_others(guarded_base, signed_in, made):  # noqa: PLR0915 - one service for all looks
    admin, proof = signed_in("the-secret")
    assert admin.post("/settings/projects", data={"name": "demo"}).status_code == 403  # no proof
    made_project = admin.post("/settings/projects", data={"name": "demo", **proof})
    assert (made_project.status_code, made_project.headers["location"]) == (303, "/settings/projects/demo")
    form = {"public_read": "on", "raw_days": "30", "body_days": "", "suite": "quick", "branch": "main", **proof}
    assert admin.post("/settings/projects/demo", data=form).status_code == 303
    settings = admin.get("/settings/projects/demo.json").json()
    assert settings["project"] | {"href": "", "mirror": ""} == {
        "name": "demo", "public_read": True, "raw_days": 30, "body_days": None, "backfill": "quick on main",
        "mirror": "", "href": "",
    }  # fmt: skip
    partial = admin.post("/settings/projects/demo", data=proof)
    assert (partial.status_code, "has no field" in partial.text) == (422, True)
    assert admin.get("/settings/projects/demo.json").json() == settings
    bearer = {"authorization": "Bearer the-secret"}
    channel = {"project": "demo", "name": "<b>team", "kind": "webhook", "url": "https://hooks.example/sesame"}
    made_channel = httpx.post(f"{guarded_base}/api/v1/channels", json=channel, headers=bearer).json()
    httpx.post(f"{guarded_base}/api/v1/channels/{made_channel['id']}/test", headers=bearer).raise_for_status()
    with_channel = admin.get("/settings/projects/demo").text
    assert all(each in with_channel for each in ("&lt;b&gt;team", "https://hooks.example/…", "waiting: test"))
    assert not any(each in with_channel for each in ("sesame", "<b>team", made_channel["secret"]))
    assert "Each agent takes commits from a clone of its own." in " ".join(with_channel.split())
    address = {"repository": "https://git.example/group/demo"}
    httpx.patch(f"{guarded_base}/api/v1/projects/demo", json=address, headers=bearer).raise_for_status()
    assert address["repository"] in admin.get("/settings/projects/demo").text
    wrong = admin.post("/settings/projects/demo", data={**form, "raw_days": "soon"})
    assert (wrong.status_code, "raw_days" in wrong.text) == (422, True)
    wrong = admin.post("/settings/projects/demo", data={**form, "requires": "{"})
    assert (wrong.status_code, "are not JSON" in wrong.text) == (422, True)

    shown = admin.post("/settings/tokens", data={"name": "person", "scope_read": "on", "days": "90", **proof})
    assert (shown.status_code, shown.headers["cache-control"]) == (200, "no-store")
    token = re.search(r"<code>(plb_[\w-]{32})</code>", shown.text)[1]
    listed = admin.get("/settings/tokens")
    assert (token in listed.text, token[:10] in listed.text) == (False, True)
    again = admin.post("/settings/tokens", data={"name": "person", "scope_read": "on", **proof})
    assert (again.status_code, "revoke it first" in again.text) == (409, True)
    none = admin.post("/settings/tokens", data={"name": "nobody", **proof})
    assert (none.status_code, "scopes" in none.text) == (422, True)
    code = admin.post("/settings/enrolments", data={"minutes": "5", **proof}).text
    assert re.search(r"<code>plb_enroll_[\w-]{32}</code>", code)

    person, persons_proof = signed_in(token)
    explained = person.get("/settings").text
    assert "needs a token with the scope <b>admin</b>" in explained
    assert "<form" not in explained.partition("<main")[2]
    assert "disabled" in person.get("/settings/projects/demo").text
    assert person.get("/settings/projects/demo.json").json()["channels"] == []
    for address in ("/settings/tokens", "/settings/audit"):
        refused = person.get(address)
        assert (refused.status_code, "needs admin" in refused.text) == (403, True)
    assert person.post("/settings/projects/demo", data={"public_read": "on", **persons_proof}).status_code == 403
    assert person.post("/boards", data={"name": "mine", **persons_proof}).status_code == 303
    assert person.post("/boards", data={"name": "mine too"}).status_code == 403

    token_id = admin.get("/settings/tokens.json").json()["tokens"][0]["id"]
    assert admin.post(f"/settings/tokens/{token_id}/revoke", data=proof).status_code == 303
    assert person.get("/settings").status_code == 401

    report = made.made_report(0, project="demo")
    headers = {"authorization": "Bearer the-secret"}
    httpx.post(f"{guarded_base}/api/v1/reports", json=report, headers=headers).raise_for_status()
    machine = admin.get("/settings.json").json()["machines"][0]
    assert machine["accepts_forks"] is False
    admin.post(f"/settings/machines/{machine['id']}", data={"accepts": "untrusted", **proof})
    assert admin.get("/settings.json").json()["machines"][0]["accepts_forks"] is True

    lines = admin.get("/settings/audit.json").json()["lines"]
    actions = [line["action"] for line in lines]
    assert actions[:2] == ["change_machine_settings", "upload_report"]
    assert {"make_project", "change_project_settings", "make_token", "make_code", "end_token", "create_board"} <= {
        *actions
    }
    of_demo = admin.get("/settings/audit.csv?project=demo").text.splitlines()
    assert (
        len(of_demo) == 7
    )  # its making, its two changes, its channel and the test of it, the upload; and the line of names
    nobody = httpx.get(f"{guarded_base}/boards", headers={"accept": "text/html"})
    assert (nobody.status_code, "sign in" in nobody.text) == (200, True)  # demo is public
