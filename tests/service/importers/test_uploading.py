"""Files of other tools over HTTP: stored, answered, shown, and refused in words."""

import gzip

import pytest
from sqlalchemy import func, select, text

from pullback_service.models import Commit, Point, Project, Report, Series
from pullback_service.zstandard import zstd

pytestmark = pytest.mark.anyio

URL = "/api/v1/reports"
SHA = "a" * 40
SAID = {"project": "demo", "commit": SHA, "branch": "main", "machine": "ci"}


async def count(session, table):
    return await session.scalar(select(func.count()).select_from(table))


async def test_a_tools_file_is_stored_with_its_address_in_the_answer(client, sample):
    body = sample("pyperf/two-benchmarks.json")
    response = await client.post(URL, content=body, params=SAID)
    assert response.status_code == 201
    receipt = response.json()
    assert response.headers["location"] == receipt["url"]
    assert (receipt["format"], receipt["cases"], receipt["points"]) == ("pyperf", 2, 2)
    assert receipt["notes"] == ["2 calibration runs left out"]
    assert (await client.get(f"{receipt['url']}/body")).content == body
    document = (await client.get(receipt["url"])).json()["document"]
    assert document["format"] == "pullback-report"
    assert [case["case"]["workload"] for case in document["cases"]] == ["sort a list", "sum a range"]
    series = (await client.get("/api/v1/series", params={"project": "demo"})).json()["items"]
    assert {(each["variant"], each["metric"], each["unit"]) for each in series} == {("external", "time", "s")}


async def test_the_same_file_again_is_the_same_report_and_elsewhere_another(client, sample, session):
    body = sample("hyperfine/parameters.json")
    first = await client.post(URL, content=body, params=SAID)
    again = await client.post(URL, content=gzip.compress(body), params=SAID)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    other = await client.post(URL, content=body, params={**SAID, "machine": "another"})
    assert other.status_code == 201
    assert await count(session, Report) == 2


async def test_a_key_stands_for_one_file(client, sample):
    headers = {"Idempotency-Key": "run-7"}
    first = await client.post(URL, content=sample("hyperfine/parameters.json"), params=SAID, headers=headers)
    again = await client.post(URL, content=sample("hyperfine/parameters.json"), params=SAID, headers=headers)
    other = await client.post(URL, content=sample("hyperfine/failing.json"), params=SAID, headers=headers)
    assert (first.status_code, again.status_code, other.status_code) == (201, 200, 409)


@pytest.mark.parametrize(("pack", "encoding"), [(gzip.compress, "gzip"), (zstd.compress, "zstd")])
async def test_bodies_may_be_compressed_said_or_not(client, sample, pack, encoding):
    packed = pack(sample("hyperfine/parameters.json"))
    said = await client.post(URL, content=packed, params=SAID, headers={"Content-Encoding": encoding})
    unsaid = await client.post(URL, content=packed, params=SAID)
    assert (said.status_code, unsaid.status_code) == (201, 200)
    strange = await client.post(URL, content=packed, params=SAID, headers={"Content-Encoding": "br"})
    assert strange.status_code == 400
    assert "send gzip, zstd or no compression" in strange.json()["detail"]


async def test_a_report_of_ours_may_be_compressed_too(client, report):
    import orjson

    response = await client.post(URL, content=zstd.compress(orjson.dumps(report)))
    assert response.status_code == 201
    assert response.json()["format"] == "pullback-report"


async def test_a_bomb_is_refused(client):
    response = await client.post(URL, content=gzip.compress(b" " * 20_000_000), params=SAID)
    assert response.status_code == 413
    assert "PULLBACK_MAX_REPORT_BYTES" in response.json()["detail"]


async def test_a_dry_run_shows_what_would_be_stored_and_stores_nothing(client, sample, session):
    response = await client.post(
        URL, content=sample("google-benchmark/repetitions.json"), params={**SAID, "dry_run": "true"}
    )
    assert response.status_code == 200
    receipt = response.json()
    assert (receipt["dry_run"], receipt["status"], receipt["url"]) == (True, "would be accepted", None)
    assert receipt["preview"][0] == {
        "case": "BM_sin[arg0=8]",
        "variant": "external",
        "metric": "time",
        "value": pytest.approx(7.176582691787502e-08),
        "unit": "s",
        "direction": "smaller",
        "method": "median of repetitions",
    }
    for table in (Report, Point, Series, Commit, Project):
        assert await count(session, table) == 0
    stored = await client.post(URL, content=sample("google-benchmark/repetitions.json"), params=SAID)
    assert stored.status_code == 201
    assert {key: stored.json()[key] for key in ("id", "points", "cases", "failures", "notes")} == {
        key: receipt[key] for key in ("id", "points", "cases", "failures", "notes")
    }


async def test_a_dry_run_meets_the_checks_of_the_database(client, sample):
    body = sample("github-action-benchmark/custom.json")
    await client.post(URL, content=body, params={**SAID, "direction": "smaller"})
    response = await client.post(
        URL, content=body, params={**SAID, "commit": "b" * 40, "direction": "bigger", "dry_run": "true"}
    )
    assert response.status_code == 422
    assert response.json()["errors"][0]["path"] == "$[0]: value"
    assert "convert it, or name the metric differently" in response.json()["detail"]


@pytest.mark.parametrize(
    ("left_out", "remedy"),
    [("project", "project=NAME"), ("commit", "commit=SHA, the full hash"), ("machine", "machine=ci")],
)
async def test_what_a_file_leaves_unsaid_is_asked_for(client, sample, left_out, remedy):
    said = {name: value for name, value in SAID.items() if name != left_out}
    response = await client.post(URL, content=sample("hyperfine/parameters.json"), params=said)
    assert response.status_code == 400
    assert response.json()["type"] == "urn:pullback:problem:incomplete-request"
    assert [error["path"] for error in response.json()["errors"]] == [f"query.{left_out}"]
    assert remedy in response.json()["detail"]


async def test_a_file_of_no_known_format_is_told_which_are_known(client):
    for body in (b"[1, 2]", b'{"a": 1}', b"hello"):
        response = await client.post(URL, content=body, params=SAID)
        assert response.status_code == 400
        assert response.json()["detail"]
    assert "hyperfine" in (await client.post(URL, content=b"[1]", params=SAID)).json()["detail"]
    response = await client.post(URL, content=b"[1]", params={**SAID, "format": "excel"})
    assert response.status_code == 422
    assert response.json()["errors"][0]["path"] == "query.format"


async def test_units_in_the_address_are_refused_where_a_report_says_them_itself(client, report):
    response = await client.post(URL, json=report, params={"unit": "ns"})
    assert response.status_code == 422
    assert response.json()["errors"][0]["path"] == "query.unit"


async def test_every_name_in_the_description_is_a_format(client):
    from pullback_service.importers.registry import IMPORTERS

    description = (await client.get("/api/v1/openapi.json")).json()["paths"][URL]["post"]["description"]
    for importer in IMPORTERS:
        title = importer.title.removeprefix("the ").removesuffix("'s nightly archive")
        assert title in " ".join(description.split()), (
            f"add {title!r} to the docstring of upload_report in service/pullback_service/endpoints/reports.py, then run make api"
        )


@pytest.mark.parametrize(
    ("query", "status", "said"),
    [
        ("brnch=main", 422, "query.brnch is not a known parameter: did you mean branch=?"),
        ("mashine=ci", 422, "query.mashine is not a known parameter: did you mean machine=?"),
        ("zzz=1", 422, "query.zzz is not a known parameter: choose one of project, commit"),
        ("machine=%ff%fe", 422, "query.machine is not UTF-8"),
        ("project=a/../b", 422, "must not have . or .."),
        ("authored_at=yesterday", 422, "like 2026-01-31T12:00:00Z"),
        ("authored_at=2026-01-31T12:00:00", 422, "needs a time zone"),
        (
            "format=hyperfine",
            422,
            "The file has no `results`: this looks like a file of pytest-benchmark, so leave format=",
        ),
    ],
)
async def test_addresses_that_do_not_hold_are_refused_with_the_remedy(client, sample, query, status, said):
    response = await client.post(f"{URL}?{query}", content=sample("pytest-benchmark/parametrized.json"))
    assert response.status_code == status
    assert said in response.json()["detail"]


@pytest.mark.parametrize("body", [b"", b" \n", b"hello"])
async def test_what_is_no_file_is_refused_with_the_way_to_send_one(client, body):
    response = await client.post(URL, content=body, params=SAID)
    assert response.status_code == 400
    assert response.json()["detail"].endswith("send the file itself, as with `curl --data-binary @FILE`.")


async def test_a_form_is_refused_with_the_way_to_send_the_file(client, sample):
    response = await client.post(URL, files={"file": sample("pytest-benchmark/parametrized.json")}, params=SAID)
    assert response.status_code == 400
    assert "inside a form" in response.json()["detail"]
    assert "--data-binary @FILE" in response.json()["detail"]


async def test_a_key_that_is_taken_says_what_differs(client, sample):
    body, key = sample("google-benchmark/repetitions.json"), {"Idempotency-Key": "nightly"}
    assert (await client.post(URL, content=body, params=SAID, headers=key)).status_code == 201
    same = await client.post(URL, content=body, params={**SAID, "machine": "other"}, headers=key)
    assert same.status_code == 409
    assert same.json()["detail"].startswith(
        "This file was stored with other parameters under Idempotency-Key 'nightly'"
    )
    other = await client.post(URL, content=body + b"\n", params=SAID, headers=key)
    assert other.json()["detail"].startswith("Another file was stored under Idempotency-Key 'nightly'")
    assert other.json()["detail"].endswith("use a new Idempotency-Key, or none.")


async def test_a_key_that_is_taken_by_a_file_that_is_damaged_is_a_conflict_all_the_same(client, sample, session):
    body, key = sample("google-benchmark/repetitions.json"), {"Idempotency-Key": "nightly"}
    assert (await client.post(URL, content=body, params=SAID, headers=key)).status_code == 201
    await session.execute(text("UPDATE report SET body = substr(body, 1, length(body) - 7)"))
    await session.commit()
    again = await client.post(URL, content=body, params=SAID, headers=key)
    assert again.status_code == 200
    other = await client.post(URL, content=body, params={**SAID, "machine": "other"}, headers=key)
    assert other.status_code == 409
    assert other.json()["detail"].startswith("A file that is now damaged was stored under Idempotency-Key 'nightly'")
