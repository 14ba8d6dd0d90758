"""Of what numbers were measured: stored once for many points, told by the API, and decisive where it differs."""

import pytest
from sqlalchemy import func, select, text

from pullback_service.measured_code.code_identity import NOT_TOLD, CodeIdentity, is_equal_code, other_level
from pullback_service.models import Point, StoredCodeIdentity, StoredReading
from pullback_service.readings.projection import wrong_readings

pytestmark = pytest.mark.anyio

API = "/api/v1"
TEXT, FILES, CODE = "1111111111111111", "2222222222222222", "3333333333333333"


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        (CodeIdentity("a", "s", "1"), CodeIdentity("a", "t", "1"), None),
        (CodeIdentity("a", "s", "1"), NOT_TOLD, None),
        (NOT_TOLD, CodeIdentity("a", "s", "1"), None),
        (CodeIdentity("a", "s", "1"), CodeIdentity("b", "s", "1"), "the text of the workload (a, then b)"),
        (CodeIdentity("a", "s", "1"), CodeIdentity("", "s", "2"), "the release of the harness (1, then 2)"),
        (
            CodeIdentity("a", "", "1"),
            CodeIdentity("b", "", "2"),
            "(a, then b) and the release of the harness (1, then 2)",
        ),
    ],
)
def test_another_text_or_harness_is_another_level(one, other, said):
    found = other_level(one, other)
    assert found is None if said is None else said in found and found.startswith("Another level: ")


def test_code_is_equal_where_both_tell_the_same_files():
    assert is_equal_code(CodeIdentity("a", "s", "1"), CodeIdentity("b", "s", "2"))
    assert not is_equal_code(CodeIdentity("a", "s", "1"), CodeIdentity("a", "t", "1"))
    assert not is_equal_code(CodeIdentity("a", "", "1"), CodeIdentity("a", "", "1"))


@pytest.fixture
def measured(reports):
    """A report whose variants say what was measured; time and bytes as given."""

    def report(
        commit, *, workload=TEXT, subject=FILES, code=None, harness="0.9", seconds=1.0, array_bytes=4096.0, **more
    ):
        variants = [reports.variant(name, array_bytes=array_bytes) for name in ("unfused", "fused")]
        for variant in variants:
            variant["metrics"]["time"]["processes"] = [seconds * each for each in (1.0, 1.001, 0.999)]
            variant["digests"] = {"workload": workload, "subject": subject, "code": code}
        made = reports.report(commit, cases=[reports.case(variants=variants, paired=[])], **more)
        made["harness"]["version"] = harness
        return made

    return report


@pytest.fixture
def upload(client):
    async def post(*all_of_them):
        for report in all_of_them:
            answer = await client.post(f"{API}/reports", json=report)
            assert answer.status_code == 201, answer.text

    return post


@pytest.fixture
def compare(client, reports):
    async def asked(base=1, head=2, **more):
        params = {"project": "demo", "base": reports.sha(base), "head": reports.sha(head), **more}
        answer = await client.get(f"{API}/comparisons", params=params)
        assert answer.status_code == 200, answer.text
        return {(row["variant"], row["metric"]): row for row in answer.json()["items"]}

    return asked


async def test_many_points_share_a_row(upload, measured, session):
    await upload(measured(1), measured(1), measured(2, subject="4444444444444444"))
    assert await session.scalar(select(func.count()).select_from(StoredCodeIdentity)) == 2
    points = (await session.scalars(select(Point.measured_id).order_by(Point.id))).all()
    assert points == [1] * 8 + [2] * 4
    assert (
        await session.scalars(select(StoredReading.measured_id).distinct().order_by(StoredReading.measured_id))
    ).all() == [1, 2]


async def test_points_tell_what_was_measured(client, upload, measured, reports):
    await upload(measured(1, code=CODE), reports.report(2))
    first, second = (await client.get(f"{API}/series/1/points")).json()["items"]
    assert first["measured"] == {"workload": TEXT, "subject": FILES, "harness": "0.9"}
    assert first["program_hash"] == CODE
    assert second["measured"] == {"workload": None, "subject": None, "harness": "0.1"}
    lines = (await client.get(f"{API}/series/1/points", params={"format": "csv"})).text.splitlines()
    assert f"{TEXT},{FILES},0.9" in lines[1]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"workload": "5" * 16}, "the text of the workload (11111111, then 55555555)"),
        ({"harness": "1.0"}, "0.9, then 1.0"),
    ],
)
async def test_nobody_is_accused_of_another_level(upload, compare, measured, changed, said):
    await upload(measured(1), measured(2, subject="4" * 16, seconds=3.0, array_bytes=9999.0, **changed))
    for row in (await compare()).values():
        assert row["outcome"] == "not_comparable"
        assert row["reason"].startswith("Another level: ")
        assert said in row["reason"]


async def test_of_equal_code_nothing_is_claimed(upload, compare, measured):
    stated = {
        "case": {"workload": "dense_bias_act", "params": {"n": 100, "act": "tanh"}, "dtype": "f4", "device": "cpu"},
        "variant": "unfused", "metric": "time", "reference": f"{1:040x}", "candidate": f"{2:040x}",
        "log_ratio": 0.2, "low": 0.19, "high": 0.21, "n": 20, "outcome": "slower",
    }  # fmt: skip
    await upload(measured(1), measured(2, seconds=3.0, array_bytes=9999.0, comparisons=[stated]))
    found = await compare()
    assert {row["outcome"] for row in found.values()} == {"ambiguous"}
    assert {row["reason"] for row in found.values()} == {"Equal code: the commit changed nothing that is measured."}
    assert all(row["equal_code"] for row in found.values())
    assert found["unfused", "time"]["evidence"] == "paired"
    assert found["fused", "time"]["candidate"]["measured"]["subject"] == FILES


async def test_of_other_files_claims_are_made_as_before(upload, compare, measured):
    await upload(measured(1), measured(2, subject="4" * 16, seconds=3.0, array_bytes=9999.0))
    found = await compare()
    assert found["fused", "array_bytes"]["outcome"] == "more"
    assert found["fused", "time"]["outcome"] == "likely_slower"
    assert not any(row["equal_code"] for row in found.values())


async def test_two_machines_differ_though_their_code_is_equal(upload, compare, measured):
    await upload(measured(1, machine="old"), measured(1, machine="new", array_bytes=9999.0))
    found = await compare(1, 1, base_machine="old", head_machine="new")
    assert found["fused", "array_bytes"]["outcome"] == "more"


async def test_a_reading_is_of_the_newest_level_alone(client, upload, measured):
    await upload(measured(1, seconds=9.0), measured(1, workload="5" * 16, seconds=3.0))
    (point,) = (await client.get(f"{API}/series/2/points", params={"raw": "true"})).json()["items"]
    assert (point["value"], point["spread"]["n"], len(point["report_ids"])) == (3.0, 3, 1)
    assert point["measured"]["workload"] == "5" * 16
    assert len(point["raw"]) == 2  # nothing is lost
    # Of the first text again: it is the newest now, and both of its reports are pooled.
    await upload(measured(1, seconds=9.0))
    (point,) = (await client.get(f"{API}/series/2/points")).json()["items"]
    assert (point["value"], point["spread"]["n"], len(point["report_ids"])) == (9.0, 6, 2)


async def test_reports_of_one_text_are_pooled_whichever_way_their_files_were_read(client, upload, measured, reports):
    await upload(measured(1, subject="7" * 16), measured(1), reports.report(1))
    (point,) = (await client.get(f"{API}/series/2/points")).json()["items"]
    assert len(point["report_ids"]) == 1  # the last one is of another harness
    await upload(measured(1, subject="8" * 16, seconds=3.0))
    (point,) = (await client.get(f"{API}/series/2/points")).json()["items"]
    assert (point["spread"]["n"], len(point["report_ids"])) == (9, 3)


async def test_stored_readings_are_what_their_points_say(client, upload, measured, reports, session):
    await upload(measured(1), measured(1, workload="5" * 16), reports.report(1), measured(2), reports.report(2))
    wrong = await wrong_readings(session, [1, 2])
    assert wrong == set()


@pytest.mark.parametrize("digest", ["", "short", "has blanks in it", 7])
async def test_what_is_no_digest_is_refused_with_its_place(client, measured, digest):
    answer = await client.post(f"{API}/reports", json=measured(1, workload=digest))
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["path"] == "$.cases[0].variants[0].digests.workload"


async def test_a_project_does_not_see_what_others_measured(guarded, admin, make_token, measured, looking):
    for project in ("mine", "yours"):
        await admin.post(f"{API}/projects", json={"name": project})
        assert (await admin.post(f"{API}/reports", json=measured(1, project=project))).status_code == 201
    limited = await make_token("read", project="mine")
    (point,) = (await guarded.get(f"{API}/series/1/points", headers=limited)).json()["items"]
    assert point["measured"]["workload"] == TEXT
    rows = (await looking.execute(text("SELECT project_id, workload FROM measured ORDER BY 1"))).all()
    assert [tuple(row) for row in rows] == [(1, TEXT), (2, TEXT)]
