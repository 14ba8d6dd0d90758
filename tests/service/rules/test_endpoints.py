"""Rules over the API: taken as a whole or not at all."""

import threading

import pytest
from sqlalchemy import text

from pullback_service.rules.matching import Rule
from pullback_service.rules.queries import AllSeries

pytestmark = pytest.mark.anyio

URL = "/api/v1/rules?project=demo"


@pytest.fixture
def put(client):
    async def put(*rules, status=200, dry_run=False, **more):
        body = {"rules": list(rules), **more}
        answer = await client.put(URL, params={"project": "demo", "dry_run": dry_run}, json=body)
        assert answer.status_code == status, answer.text
        return answer.json()

    return put


@pytest.fixture
async def uploaded(client, reports):
    for number in (1, 2, 3):
        assert (await client.post("/api/v1/reports", json=reports.report(number))).status_code == 201


async def test_rules_take_the_place_of_those_that_held_and_keep_since_when(client, put, uploaded, reports):
    first = await put(
        {"variant": "fused", "at_least": 0.02}, {"metric": "time", "watch": False}, commit=reports.sha(1), trunk="main"
    )
    assert (first["changed"], first["file_trunk"], first["trunk"]) == (True, "main", "main")
    second = await put({"metric": "time", "budget": 0.5}, {"variant": "fused", "at_least": 0.02}, commit=reports.sha(2))
    assert [(rule["number"], rule["commit"], rule["budget"]) for rule in second["rules"]] == [
        (1, reports.sha(2), 0.5),
        (2, reports.sha(1), None),
    ]
    assert second["rules"][1]["since"] == first["rules"][0]["since"]
    assert second["file_trunk"] is None
    held = (await client.get(URL)).json()
    assert (held["rules"], held["commit"]) == (second["rules"], reports.sha(2))
    assert not (await put({"metric": "time", "budget": 0.5}, {"variant": "fused", "at_least": 0.02}))["changed"]
    assert (await put())["rules"] == []
    audit = (await client.get("/api/v1/audit", params={"project": "demo"})).json()["items"]
    assert [line["action"] for line in audit[:4]] == ["replace_rules"] * 3 + ["upload_report"]


async def test_a_file_older_than_the_one_that_was_sent_changes_nothing(put, uploaded, reports):
    await put({"watch": False}, commit=reports.sha(2))
    older = await put({"watch": True}, commit=reports.sha(1))
    assert (older["older"], older["changed"], older["rules"][0]["watch"]) == (True, False, False)
    assert (await put({"watch": True}, commit=reports.sha(3)))["rules"][0]["watch"] is True


async def test_a_file_of_another_branch_than_the_trunk_changes_nothing(put, uploaded):
    assert (await put({"workload": "none", "watch": True}, branch="topic"))["rules"] == []
    assert (await put({"watch": True}, branch="main"))["changed"]


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(
    ("rule", "path", "said"),
    [
        (
            {"workload": "lstm*", "watch": False},
            "$.rules[1].workload",
            "workload 'lstm*' matches nothing that was uploaded",
        ),
        ({"machine": "box-?", "watch": False}, "$.rules[1].machine", "machine 'box-?' matches nothing"),
        (
            {"variant": "unfused", "metric": "native*", "watch": False},
            "$.rules[1].metric",
            "metric 'native*' matches nothing",
        ),
        ({"tell": ["team"]}, "$.rules[1].tell", "There is no channel 'team': make it with `pullback channel add`"),
        ({"metric": "time", "budget": 0}, "$.rules[1]", "A budget of time is a share"),
        ({"budget": 1}, "$.rules[1]", "A budget must name one metric"),
        ({"metric": "time"}, "$.rules[1]", "A rule must set at_least, budget, watch or tell"),
        ({"at_least": 1.5}, "$.rules[1].at_least", "less than 1"),
        ({"watch": True, "watched": 1}, "$.rules[1].watched", ""),
    ],
)
async def test_a_rule_that_means_nothing_is_refused_with_all_others(client, put, uploaded, rule, path, said):
    await put({"at_least": 0.1})
    for dry_run in (True, False):
        refused = await put({"watch": False}, rule, status=422, dry_run=dry_run)
        (error,) = refused["errors"]
        assert (error["path"], said in error["message"]) == (path, True), error
    (held,) = (await client.get(URL)).json()["rules"]
    assert held["at_least"] == 0.1


@pytest.mark.parametrize("dry_run", [False, True])
async def test_rules_are_held_against_series_beside_the_event_loop(put, uploaded, monkeypatch, dry_run):
    threads, matches, read = set(), Rule.matches, AllSeries.read

    def noted(rule, subject):
        threads.add(threading.current_thread())
        return matches(rule, subject)

    monkeypatch.setattr(Rule, "matches", noted)
    monkeypatch.setattr(AllSeries, "read", lambda series: (threads.add(threading.current_thread()), read(series))[1])
    budget = {"metric": "time", "budget": 0.5}
    assert (await put(budget, {"variant": "fused", "watch": True}, dry_run=dry_run))["changed"]
    assert threads
    assert threading.current_thread() not in threads


async def test_globs_that_each_match_but_not_together_are_refused(client, put, reports):
    report = reports.report(1, cases=[reports.case("a"), reports.case("b", variants=[reports.variant("x")], paired=[])])
    await client.post("/api/v1/reports", json=report)
    refused = await put({"workload": "a", "variant": "x", "watch": False}, status=422)
    assert "No series that was uploaded matches workload and variant together" in refused["detail"]


async def test_a_project_that_is_not_there_is_404(client):
    assert (await client.put("/api/v1/rules?project=none", json={"rules": []})).status_code == 404


async def test_the_trunk_of_the_file_is_watched_unless_somebody_chose_another(client, put, uploaded):
    assert (await put(trunk="topic"))["trunk"] == "topic"
    await client.patch("/api/v1/projects/demo", json={"trunk": "chosen"})
    assert (await client.get(URL)).json()["trunk"] == "chosen"


async def test_rules_need_the_scope_upload_and_are_read_by_members(admin, guarded, make_token, reports):
    await admin.post("/api/v1/reports", json=reports.report(1))
    await admin.patch("/api/v1/projects/demo", json={"public_read": True})
    read, upload = await make_token("read"), await make_token("upload", "read")
    assert (await guarded.get(URL)).status_code == 401  # names of channels are nobody's
    assert (await guarded.get(URL, headers=read)).status_code == 200
    assert (await guarded.put(URL, json={"rules": []}, headers=read)).status_code == 403
    assert (await guarded.put(URL, json={"rules": [{"watch": True}]}, headers=upload)).status_code == 200


async def test_rules_of_a_project_are_seen_by_nobody_elses_token(admin, guarded, make_token, reports, session):
    for name in ("demo", "other"):
        await admin.post("/api/v1/reports", json=reports.report(1, project=name))
        await admin.put(f"/api/v1/rules?project={name}", json={"rules": [{"watch": True}]})
    assert (await session.execute(text("SELECT count(*) FROM rule"))).scalar_one() == 2
    own = await make_token("upload", "read", project="other")
    assert (await guarded.get(URL, headers=own)).status_code == 403
