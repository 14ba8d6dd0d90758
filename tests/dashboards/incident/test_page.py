"""The page of an incident: its evidence with links to it, what happened, what was said, and how to measure it again."""

import csv
import io
import re
from html import unescape

import pytest
from sqlalchemy import text as sql

pytestmark = pytest.mark.anyio

PAGE = "/projects/demo/incidents/1"
CASE = "lstm[n=100,act=tanh,f4,cpu]"


@pytest.fixture
async def confirmed(stored_history):
    """An incident at commit 2: a pair is 30 % slower, and four times the bytes."""
    await stored_history.upload(
        stored_history.commit(1), stored_history.paired(stored_history.commit(2, array_bytes=4096.0), 0.26, "slower")
    )
    return stored_history


async def text(stored_history, address=PAGE):
    answer = await stored_history.client.get(address)
    assert answer.status_code == 200, answer.text
    main = answer.text.partition('<main id="content">')[2].partition("</main>")[0]
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", main)))


async def test_the_sentence_is_the_title_and_the_state_is_explained(confirmed):
    page = (await confirmed.client.get(PAGE)).text
    title = re.search("<h1>(.*?)</h1>", page)[1]
    assert title.startswith("<code>fused</code> of <code>lstm</code> takes 30 % more time (28 to 31, 20 groups)")
    assert "confirmed Counts, comparisons or failures show it." in await text(confirmed)


async def test_what_had_no_turn_says_that_it_is_measured_on_request_alone(confirmed):
    async with confirmed.database.writing.begin() as session:
        await session.execute(sql("UPDATE incident SET state = 'unconfirmed', out_of_time_on = current_date - 1"))
    said = await text(confirmed)
    assert (
        "no time left for it on the day it was found. It is measured once a later day has time for it, up to 14 days after it was found, or on "
        "request: pullback incident confirm 1." in said
    )


async def test_the_rule_that_decided_who_is_told_is_named_with_since_when(stored_history, reports):
    await stored_history.upload(stored_history.commit(1))
    rules = {"rules": [{"at_least": 0.5}], "commit": reports.sha(1)}
    assert (await stored_history.client.put("/api/v1/rules?project=demo", json=rules)).status_code == 200
    await stored_history.upload(stored_history.paired(stored_history.commit(2), 0.26, "slower"))
    said = await text(stored_history)
    assert re.search(
        r"Its channels were decided by rule 1 of pullback.toml \(at_least = 0.5\), since 20\d\d-\d\d-\d\d by 0000000\.",
        said,
    )


async def test_every_change_has_its_numbers_and_leads_to_its_case_and_comparison(confirmed, reports):
    rows = (await confirmed.client.get(f"{PAGE}.json")).json()["changes"]
    assert {(row["metric"], row["evidence"]) for row in rows} == {("time", "paired"), ("array_bytes", "exact")}
    for row in rows:
        assert (row["case"], row["variant"], row["machine"]) == (CASE, "fused", "box")
        assert (row["reference"], row["commit"]) == (reports.sha(1), reports.sha(2))
        assert (await confirmed.client.get(row["case_href"])).status_code == 200
        compared = await confirmed.client.get(row["compare_href"])
        assert (compared.status_code, "array bytes" in compared.text) == (200, True)
    said = await text(confirmed)
    assert "1 KiB → 4 KiB" in said
    assert "1.30× 1.28–1.31, 20 groups" in said
    assert "measured in turns" in said


@pytest.mark.long
async def test_its_table_has_the_numbers_of_every_change(confirmed, reports):
    answer = await confirmed.client.get(f"{PAGE}.csv")
    assert answer.headers["content-disposition"] == 'attachment; filename="demo-incident-1.csv"'
    time, memory = csv.DictReader(io.StringIO(answer.text))
    for row in (time, memory):
        assert (row["case"], row["variant"], row["machine"]) == (CASE, "fused", "box")
        assert (row["reference"], row["commit"]) == (reports.sha(1), reports.sha(2))
    assert (time["evidence"], time["groups"], round(float(time["factor"]), 2)) == ("paired", "20", 1.3)
    assert (memory["evidence"], memory["before"], memory["after"]) == ("exact", "1024.0", "4096.0")
    assert f'href="{PAGE}.csv"' in (await confirmed.client.get(PAGE)).text


async def test_what_happened_and_who_said_what_is_told(confirmed):
    body = {"verdict": "expected", "note": "Exact sums.", "link": "https://git.example/7"}
    (await confirmed.client.post("/api/v1/incidents/1/verdict", json=body)).raise_for_status()
    (await confirmed.client.put("/api/v1/incidents/1/assignee", json={"assignee": "ada"})).raise_for_status()
    view = (await confirmed.client.get(f"{PAGE}.json")).json()
    assert [(each["event"], each["told"]) for each in view["events"]] == [
        ("found", False),
        ("confirmed", True),
        ("expected", False),
        ("resolved", True),
        ("assigned", False),
    ]
    assert "in charge: ada" in (said := await text(confirmed))
    assert "assigned to ada" in said
    assert view["line"]["verdict"]["note"] == "Exact sums."
    page = (await confirmed.client.get(PAGE)).text
    assert 'href="https://git.example/7"' in page
    assert "Exact sums." in (await confirmed.client.get(f"{PAGE}.md")).text


async def test_the_commands_measure_the_range_again_and_give_a_verdict(confirmed, reports):
    view = (await confirmed.client.get(f"{PAGE}.json")).json()
    assert view["reproduce"] == (
        f"pullback compare --against {reports.sha(1)} --candidate {reports.sha(2)} "
        f"--suite standard --case '{CASE}' --variant fused"
    )
    assert view["verdict_command"].startswith("pullback incident verdict 1 expected --note ")


@pytest.mark.long
async def test_what_a_gpu_showed_is_named_with_it_and_measured_again_there(stored_history, reports):
    document = stored_history.paired(stored_history.commit(2), 0.26, "slower")
    for each in (*document["cases"], *document["comparisons"]):
        each["case"]["device"] = "cuda"
    await stored_history.upload(stored_history.commit(1), document)
    title = re.search("<h1>(.*?)</h1>", (await stored_history.client.get(PAGE)).text)[1]
    assert title.startswith("<code>fused</code> of <code>lstm</code> on <code>cuda</code> takes 30 % more time")
    view = (await stored_history.client.get(f"{PAGE}.json")).json()
    assert view["reproduce"].endswith("--case 'lstm[n=100,act=tanh,f4,cuda]' --variant fused --device cuda")


@pytest.mark.long
async def test_a_failure_is_measured_again_at_its_commit_alone(stored_history, reports):
    await stored_history.upload(stored_history.commit(1), stored_history.commit(2, wrong=("lstm",)))
    view = (await stored_history.client.get(f"{PAGE}.json")).json()
    assert (view["line"]["kind"], view["changes"][0]["metric"]) == ("wrong_gradient", None)
    assert view["reproduce"].startswith(f"pullback run --commits {reports.sha(2)} --suite standard --case ")
    assert "wrong gradient" in await text(stored_history)
    assert (await stored_history.client.get(view["changes"][0]["case_href"])).status_code == 200


async def test_what_an_incident_became_a_part_of_is_linked(confirmed, database):
    from sqlalchemy import text as sql

    async with database.writing.begin() as session:
        await session.execute(
            sql(
                "INSERT INTO incident (project_id, kind, state, seen, reference_id, commit_id, merged_into_id) "
                "SELECT project_id, kind, 'merged', true, reference_id, commit_id, id FROM incident"
            )
        )
    said = await text(confirmed, "/projects/demo/incidents/2")
    assert "merged It became a part of another incident. See incident 1 ." in said
    assert "older than detection" in said
    assert "No change is left" in said


async def test_an_incident_of_another_project_is_not_there(confirmed):
    await confirmed.client.post("/api/v1/reports", json=confirmed.commit(1, project="other"))
    answer = await confirmed.client.get("/projects/other/incidents/1", headers={"accept": "text/html"})
    assert (answer.status_code, "No such incident" in answer.text) == (404, True)


async def test_messages_lead_to_the_page(confirmed):
    whole = (await confirmed.client.get("/api/v1/incidents/1")).json()
    (told,) = [event["details"] for event in whole["events"] if event["told"]]
    assert told["url"] == PAGE


@pytest.mark.long
async def test_the_commit_at_which_an_incident_begins_leads_to_it(confirmed, reports):
    view = (await confirmed.client.get(f"/projects/demo/commits/{reports.sha(2)}.json")).json()
    assert [(each["id"], each["href"], each["kind"], each["state"]) for each in view["incidents"]] == [
        (1, PAGE, "worse", "confirmed")
    ]
    page = (await confirmed.client.get(f"/projects/demo/commits/{reports.sha(2)}")).text
    assert f'<a href="{PAGE}">incident 1</a> worse, confirmed' in page
    assert (await confirmed.client.get(f"/projects/demo/commits/{reports.sha(1)}.json")).json()["incidents"] == []


@pytest.mark.long
async def test_an_incident_is_marked_once_at_the_first_commit_that_shows_it(confirmed, reports):
    later = confirmed.commit(3, array_bytes=4096.0)
    await confirmed.upload(confirmed.paired(later, 0.26, "slower", reference=reports.sha(1)))
    assert (await confirmed.client.get("/api/v1/incidents/1")).json()["changes"] == 3
    address = f"/projects/demo/workloads/lstm?case={CASE}"
    assert (await text(confirmed, address)).count("incident 1:") == 1
    table = (await confirmed.client.get(address)).text.partition("<tbody>")[2]
    assert re.findall("/commits/([0-9a-f]{40})", table.partition("incident 1:")[0])[-1] == reports.sha(2)


async def test_the_page_of_a_commit_shows_each_series_that_changed_before_and_after(confirmed, reports):
    view = (await confirmed.client.get(f"/projects/demo/commits/{reports.sha(2)}.json")).json()
    shown = [(one["variant"], one["metric"], one["amount"], one["tone"]) for one in view["changes"]["series"]]
    assert shown == [
        ("fused", "time", "+29.7 %", "worse"),
        ("fused", "array bytes", "+3\N{NARROW NO-BREAK SPACE}KiB", "worse"),
    ]
    page = (await confirmed.client.get(f"/projects/demo/commits/{reports.sha(2)}")).text
    assert page.index("Before and after") < page.index("<summary>All results</summary>")


@pytest.mark.long
async def test_what_may_be_the_machine_is_said_with_what_would_tell(stored_history):
    await stored_history.upload(*stored_history.all_values(slower=["ci"]))
    view = (await stored_history.client.get(f"{PAGE}.json")).json()
    assert (view["line"]["state"], view["line"]["cause"]) == ("unconfirmed", "machine")
    said = await text(stored_history)
    assert "unrelated cases on ci moved alike: the machine, or something that all of them use" in said
    assert "to tell them apart, measure both commits in turns." in said
    assert "to tell them apart, measure both commits in turns." in (await stored_history.client.get(f"{PAGE}.md")).text
    assert "It was measured again without an answer" not in said  # it never was
    rows = csv.DictReader(io.StringIO((await stored_history.client.get("/projects/demo/incidents.csv?show=all")).text))
    assert {row["cause"] for row in rows} == {"machine"}
