"""Incidents over the API: who may read them, and what verdicts do."""

import pytest
from sqlalchemy import text

pytestmark = pytest.mark.anyio

API = "/api/v1"
MERGED = """
INSERT INTO incident (project_id, kind, state, seen, reference_id, commit_id, merged_into_id)
SELECT project_id, kind, 'merged', false, reference_id, commit_id, id FROM incident
"""


@pytest.fixture
async def confirmed(history):
    """An incident of one change, that was told: a pair at commit 2 is 30 % slower."""
    first, second = history.commit(1), history.paired(history.commit(2), 0.26, "slower")
    second["commit"]["title"] = 'Unfuse "the" gate\n@everyone `rm`'
    await history.upload(first, second)
    (only,) = (await history.client.get(f"{API}/incidents")).json()["items"]
    return only


async def test_an_incident_says_what_changed_since_when_and_by_what_evidence(history, confirmed, reports):
    assert (confirmed["kind"], confirmed["state"]) == ("worse", "confirmed")
    assert confirmed["sentence"] == (
        "`fused` of `lstm` takes 30 % more time (28 to 31, 20 groups) since 0000000 "
        "\"Unfuse 'the' gate @everyone `rm`\", in `lstm[n=100,act=tanh,f4,cpu]`."
    )
    whole = (await history.client.get(confirmed["url"])).json()
    (change,) = whole["evidence"]
    assert (change["evidence"], change["standing"], change["commit"]) == ("paired", "claimed", reports.sha(2))
    assert [(event["event"], event["told"]) for event in whole["events"]] == [("found", False), ("confirmed", True)]
    assert whole["events"][1]["details"]["markdown"].endswith(
        "`Unfuse \"the\" gate @everyone 'rm'`, in `lstm[n=100,act=tanh,f4,cpu]`."
    )


async def test_lists_are_filtered_and_paged(history, confirmed):
    sizes = {3: 4096.0, 4: 4096.0, 5: 512.0, 6: 512.0}
    await history.upload(*(history.commit(number, array_bytes=size) for number, size in sizes.items()))

    async def listed(**query):
        answer = await history.client.get(f"{API}/incidents", params=query)
        assert answer.status_code == 200, answer.text
        return [each["id"] for each in answer.json()["items"]]

    everything = await listed(project="demo")
    assert everything == [3, 2, 1]
    assert await listed(kind="better") == everything[:1]
    assert await listed(state="resolved") == [2]
    assert await listed(state=["resolved", "confirmed"]) == everything
    assert await listed(since="2100-01-01T00:00:00Z") == []
    assert (await history.client.get(f"{API}/incidents", params={"project": "other"})).status_code == 404
    first = (await history.client.get(f"{API}/incidents", params={"limit": 2})).json()
    assert [each["id"] for each in first["items"]] == everything[:2]
    assert await listed(cursor=first["next"]) == everything[2:]
    file = await history.client.get(f"{API}/incidents", params={"format": "json"})
    assert len(file.text.splitlines()) == 3


async def test_the_accuracy_of_a_project_counts_each_incident_once_for_each_machine_and_workload(history, confirmed):
    async def accuracy():
        answer = await history.client.get(f"{API}/incidents/accuracy", params={"project": "demo"})
        assert answer.status_code == 200, answer.text
        return answer.json()

    whole = (await accuracy())["whole"]
    assert (whole["said"], whole["right"], whole["precision"], whole["interval"]) == (1, 0, None, None)
    await history.upload(*(history.commit(number, array_bytes=4096.0) for number in range(3, 25)))
    assert (await history.client.post("/api/v1/incidents/2/verdict", json={"verdict": "noise"})).status_code == 200
    verdict = f"{confirmed['url']}/verdict"
    for word in ("noise", "expected"):  # the newest counts
        assert (await history.client.post(verdict, json={"verdict": word})).status_code == 200
    async with history.database.writing.begin() as session:  # what was likely first and confirmed later was likely
        await session.execute(
            text("INSERT INTO incident_event (id, incident_id, event) OVERRIDING SYSTEM VALUE VALUES (-1, 2, 'likely')")
        )
    answer = await accuracy()
    parts = {(each["part"], each["name"]): each for each in (answer["whole"], *answer["parts"])}
    assert {key: (each["said"], each["right"], each["noise"], each["withdrawn"]) for key, each in parts.items()} == {
        ("all", ""): (2, 1, 1, 2),  # noise withdraws what was announced
        ("evidence", "confirmed"): (1, 1, 0, 1),
        ("evidence", "likely"): (1, 0, 1, 1),
        ("machine", "box"): (2, 1, 1, 2),
        ("workload", "lstm"): (2, 1, 1, 2),
    }
    assert parts["machine", "box"]["precision"] == 0.5
    low, high = parts["all", ""]["interval"]
    assert low < 0.5 < high
    assert [(each["machine"], each["metric"]) for each in answer["noticed"]] == [("box", "time")]
    assert 0 < answer["noticed"][0]["half"] <= answer["noticed"][0]["most"]
    assert (await history.client.get(f"{API}/incidents/accuracy", params={"project": "other"})).status_code == 404


async def test_a_verdict_decides_until_it_is_revoked(history, confirmed):
    async def say(method, **body):
        answer = await history.client.request(method, f"{confirmed['url']}/verdict", **({"json": body} if body else {}))
        assert answer.status_code == 200, answer.text
        return answer.json()

    said = await say("POST", verdict="expected", note="Exact sums.", link="https://git.example/7")
    assert (said["state"], said["verdict"]["note"]) == ("resolved", "Exact sums.")
    again = await say("POST", verdict="expected", note="Exact sums.", link="https://git.example/7")
    assert len(again["verdicts"]) == 1
    assert (await say("POST", verdict="noise"))["state"] == "refuted"
    assert (await say("DELETE"))["state"] == "confirmed"
    await history.look()
    whole = (await history.client.get(confirmed["url"])).json()
    assert whole["state"] == "confirmed"
    assert [event["event"] for event in whole["events"] if event["told"]] == [
        "confirmed",
        "resolved",
        "withdrawn",
        "confirmed",
    ]
    audit = (await history.client.get(f"{API}/audit", params={"project": "demo"})).json()["items"]
    assert [line["action"] for line in audit[:3]] == ["revoke_verdict", "give_verdict", "give_verdict"]


async def test_what_is_not_there_or_not_understood_is_a_problem(history, confirmed):
    missing = await history.client.get(f"{API}/incidents/999")
    assert (missing.status_code, missing.json()["detail"]) == (
        404,
        "There is no incident 999: GET /api/v1/incidents lists them.",
    )
    for body, path in (({"verdict": "fine"}, "$.verdict"), ({"verdict": "noise", "link": "javascript:1"}, "$.link")):
        refused = await history.client.post(f"{confirmed['url']}/verdict", json=body)
        assert (refused.status_code, refused.json()["errors"][0]["path"]) == (422, path)


async def test_a_verdict_on_what_was_merged_says_where_it_went(history):
    middle = history.paired(history.commit(3), 0.26, "slower", reference=history.commit(1)["commit"]["sha"])
    await history.upload(history.commit(1), history.commit(2), history.commit(4))
    await history.upload(middle, look=True)
    ids = [each.incident.id for each in await history.incidents()]
    assert len(ids) == 1
    async with history.database.writing.begin() as session:
        await session.execute(text(MERGED))
    (gone,) = [each.incident.id for each in await history.incidents(merged=True) if each.incident.id not in ids]
    refused = await history.client.post(f"{API}/incidents/{gone}/verdict", json={"verdict": "noise"})
    assert (refused.status_code, refused.json()["merged_into"]) == (409, ids[0])


async def test_anybody_reads_incidents_of_public_projects_and_verdicts_need_the_scope_upload(
    admin, guarded, make_token, reports
):
    read = await make_token("read")
    assert (await guarded.get(f"{API}/incidents")).status_code == 401
    await admin.post(f"{API}/reports", json=reports.report(1))
    await admin.patch(f"{API}/projects/demo", json={"public_read": True})
    assert (await guarded.get(f"{API}/incidents?project=demo")).status_code == 200
    refused = await guarded.post(f"{API}/incidents/1/verdict", json={"verdict": "noise"}, headers=read)
    assert refused.status_code == 403


async def test_somebody_is_in_charge_until_nobody_is(history, confirmed):
    async def assign(person):
        answer = await history.client.put(f"{confirmed['url']}/assignee", json={"assignee": person})
        assert answer.status_code == 200, answer.text
        return answer.json()

    assert confirmed["assignee"] is None
    assert (await assign("ada"))["assignee"] == "ada"
    again = await assign("ada")
    assert [event["event"] for event in again["events"]].count("assigned") == 1
    (listed,) = (await history.client.get(f"{API}/incidents")).json()["items"]
    assert listed["assignee"] == "ada"
    assert (await assign(None))["assignee"] is None
    refused = await history.client.put(f"{confirmed['url']}/assignee", json={"assignee": ""})
    assert (refused.status_code, refused.json()["errors"][0]["path"]) == (422, "$.assignee")
    audit = (await history.client.get(f"{API}/audit", params={"project": "demo"})).json()["items"]
    assert [line["action"] for line in audit[:2]] == ["assign_incident", "assign_incident"]


async def test_what_no_agent_can_measure_or_bisect_is_a_conflict_that_says_so(history, confirmed):
    for action, said in (("confirm", "cannot be measured in turns"), ("bisect", "begins at one commit")):
        refused = await history.client.post(f"{confirmed['url']}/{action}")
        assert refused.status_code == 409
        assert said in refused.json()["detail"]
    whole = (await history.client.get(confirmed["url"])).json()
    assert (whole["job_id"], whole["bisection"]) == (None, None)
    await history.client.post(f"{confirmed['url']}/verdict", json={"verdict": "fixed"})
    refused = await history.client.post(f"{confirmed['url']}/bisect")
    assert (refused.status_code, "is resolved: only confirmed ones" in refused.json()["detail"]) == (409, True)


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(
    ("method", "action", "body"),
    [
        ("POST", "verdict", {"verdict": "noise"}),
        ("DELETE", "verdict", None),
        ("PUT", "assignee", {"assignee": "ada"}),
        ("POST", "confirm", None),
        ("POST", "bisect", None),
    ],
)
async def test_whatever_is_decided_about_what_was_merged_says_where_it_went(history, confirmed, method, action, body):
    async with history.database.writing.begin() as session:
        await session.execute(text(MERGED))
    refused = await history.client.request(method, f"{API}/incidents/{confirmed['id'] + 1}/{action}", json=body)
    assert (refused.status_code, refused.json()["merged_into"]) == (409, confirmed["id"])
