"""A token with `admin` for one project gives no right beyond that project."""

import pytest

pytestmark = pytest.mark.anyio

API = "/api/v1"


async def test_an_administrator_of_one_project_stays_in_it(guarded, admin, make_token, reports):
    for project in ("mine", "yours"):
        await admin.post(f"{API}/projects", json={"name": project})
    await admin.post(f"{API}/reports", json=reports.report(1, project="yours"))
    headers = await make_token("admin", project="mine")
    await make_token("read", project="yours")
    for wider in ({}, {"project": "yours"}):
        answer = await guarded.post(f"{API}/tokens", json={"name": "x", "scopes": ["read"], **wider}, headers=headers)
        assert answer.status_code == 403, wider
        assert (await guarded.post(f"{API}/enrolments", json=wider, headers=headers)).status_code == 403, wider
    for name in ("yours", "new"):  # one answer, so that it tells nothing of what there is
        answer = await guarded.post(f"{API}/projects", json={"name": name}, headers=headers)
        assert (answer.status_code, "cannot create others" in answer.json()["detail"]) == (403, True)
    made = await guarded.post(
        f"{API}/tokens", json={"name": "x", "scopes": ["read"], "project": "mine"}, headers=headers
    )
    assert made.status_code == 201
    assert (await guarded.post(f"{API}/enrolments", json={"project": "mine"}, headers=headers)).status_code == 201

    listed = (await guarded.get(f"{API}/tokens", headers=headers)).json()["items"]
    assert {token["project"] for token in listed} == {"mine"}
    others = [
        token["id"] for token in (await admin.get(f"{API}/tokens")).json()["items"] if token["project"] == "yours"
    ]
    assert (await guarded.post(f"{API}/tokens/{others[0]}/revoke", headers=headers)).status_code == 404
    own = made.json()["id"]
    assert (await guarded.post(f"{API}/tokens/{own}/revoke", headers=headers)).json()["revoked_at"] is not None

    lines = (await guarded.get(f"{API}/audit", headers=headers)).json()["items"]
    assert {line["project"] for line in lines} == {"mine"}
    machine = (await admin.get(f"{API}/machines")).json()["items"][0]["id"]
    change = {"accepts": "untrusted"}
    refused = await guarded.patch(f"{API}/machines/{machine}", json=change, headers=headers)
    assert (refused.status_code, "serve all projects" in refused.json()["detail"]) == (403, True)
    assert (await admin.patch(f"{API}/machines/{machine}", json=change)).json()["accepts"] == "untrusted"
