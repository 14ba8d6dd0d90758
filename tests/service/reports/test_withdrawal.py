"""Taking back a report: its points leave history, and what it accused is taken back too."""

import pytest
from sqlalchemy import text

from pullback_service import database_rebuild
from pullback_service.database_checks import check
from pullback_service.incidents.detection import detect

pytestmark = pytest.mark.anyio


@pytest.fixture
async def uploaded(client, reports):
    """Two commits; the report of the second one says that twice the memory is used."""
    documents = []
    for number in (1, 2):
        variants = [reports.variant("unfused"), reports.variant("fused", array_bytes=1024.0 * number)]
        documents.append(reports.report(number, cases=[reports.case(variants=variants)]))
        assert (await client.post("/api/v1/reports", json=documents[-1])).status_code == 201
    return documents


async def reports_behind_readings(session):
    rows = await session.execute(text("SELECT report_id FROM reading UNION SELECT report_id FROM point"))
    return {str(report_id) for (report_id,) in rows}


async def look(database):
    async with database.writing.begin() as session:
        project_id = (await session.execute(text("SELECT id FROM project"))).scalar_one()
        while await detect(session, project_id):
            pass


async def test_its_points_leave_history_and_its_incident_is_withdrawn(
    client, uploaded, reports, database, database_url, looking
):
    variants = [reports.variant("unfused"), reports.variant("fused", array_bytes=2048.0)]
    agreeing = reports.report(2, cases=[reports.case(variants=variants)])
    assert (await client.post("/api/v1/reports", json=agreeing)).status_code == 201
    await look(database)
    (before,) = (await client.get("/api/v1/incidents", params={"kind": "worse"})).json()["items"]
    assert before["state"] == "confirmed"
    url = f"/api/v1/reports/{uploaded[1]['id']}"
    await client.post(f"/api/v1/reports/{agreeing['id']}/withdraw")
    withdrawn = await client.post(f"{url}/withdraw")
    assert (withdrawn.status_code, withdrawn.json()["status"]) == (200, "withdrawn")
    await look(database)
    (after,) = (await client.get("/api/v1/incidents", params={"kind": "worse"})).json()["items"]
    assert (after["id"], after["state"]) == (before["id"], "refuted")
    whole = (await client.get(before["url"])).json()
    assert [event["event"] for event in whole["events"] if event["told"]] == ["confirmed", "withdrawn"]
    assert await reports_behind_readings(looking) == {uploaded[0]["id"]}
    assert (await client.get(f"{url}/body")).status_code == 200
    assert check(database_url) == []
    audit = (await client.get("/api/v1/audit", params={"project": "demo"})).json()["items"]
    assert (audit[0]["action"], audit[0]["subject"]) == ("withdraw_report", f"report {uploaded[1]['id']}")


async def test_a_commit_without_another_report_is_as_if_nobody_had_measured_it(client, uploaded, reports, database_url):
    """No more is it the newest measured commit of its branch; nor do others count it as measured, for `points` says so."""
    newest = reports.report(3)
    assert (await client.post("/api/v1/reports", json=newest)).status_code == 201
    asked = {"project": "demo", "base": reports.sha(1), "head": "main"}
    assert (await client.get("/api/v1/comparisons", params=asked)).json()["candidate"]["sha"] == reports.sha(3)
    withdrawn = (await client.post(f"/api/v1/reports/{newest['id']}/withdraw")).json()
    assert (withdrawn["points"], withdrawn["failures"], withdrawn["cases"]) == (0, 0, 1)
    assert (await client.get("/api/v1/comparisons", params=asked)).json()["candidate"]["sha"] == reports.sha(2)
    assert check(database_url) == []


async def test_another_report_of_the_commit_goes_on(client, uploaded, reports, database_url, looking):
    again = reports.report(2)
    assert (await client.post("/api/v1/reports", json=again)).status_code == 201
    await client.post(f"/api/v1/reports/{uploaded[1]['id']}/withdraw")
    assert await reports_behind_readings(looking) == {uploaded[0]["id"], again["id"]}
    assert await database_rebuild.count_wrong(database_url) == (0, 0)


async def test_a_comparison_that_is_withdrawn_claims_nothing_any_more(client, uploaded, reports, database_url, session):
    compared = reports.report(3)
    compared["comparisons"] = [
        {
            "case": compared["cases"][0]["case"], "variant": "fused", "metric": "time", "reference": reports.sha(1),
            "candidate": reports.sha(3), "log_ratio": 0.3, "low": 0.29, "high": 0.31, "n": 20, "outcome": "slower",
        }
    ]  # fmt: skip
    assert (await client.post("/api/v1/reports", json=compared)).status_code == 201
    await client.post(f"/api/v1/reports/{compared['id']}/withdraw")
    assert (await session.execute(text("SELECT count(*) FROM step WHERE evidence = 'paired'"))).scalar_one() == 0
    assert await database_rebuild.count_wrong(database_url) == (0, 0)


async def test_it_is_withdrawn_once_and_what_is_not_there_is_404(client, uploaded, looking):
    url = f"/api/v1/reports/{uploaded[0]['id']}/withdraw"
    assert (await client.post(url)).status_code == 200
    assert (await client.post(url)).json()["status"] == "withdrawn"
    replayed = await client.post("/api/v1/reports", json=uploaded[0])
    assert (replayed.status_code, replayed.json()["status"]) == (200, "withdrawn")
    audit = (await client.get("/api/v1/audit")).json()["items"]
    assert [line["action"] for line in audit].count("withdraw_report") == 1
    missing = await client.post("/api/v1/reports/00000000-0000-0000-0000-000000000000/withdraw")
    assert (missing.status_code, "There is no report" in missing.json()["detail"]) == (404, True)


@pytest.mark.long
async def test_what_a_release_before_migration_0032_withdraws_during_an_upgrade_is_found_and_mended(
    client, uploaded, database, database_url
):
    """It leaves the counts as they were stored, by which others see at which commits something was measured."""
    await client.post(f"/api/v1/reports/{uploaded[1]['id']}/withdraw")
    async with database.writing.begin() as session:
        await session.execute(text("UPDATE report SET points = 4, failures = 1 WHERE status = 'withdrawn'"))
    assert check(database_url) == [
        "1 withdrawn reports count as measured, as an older release leaves them: run `pullback db rebuild`."
    ]
    await database_rebuild.rebuild_everything(database_url, write=True)
    assert check(database_url) == []
