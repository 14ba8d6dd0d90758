"""The newest state of a project over HTTP."""

import threading

import pytest

from pullback_service.endpoints import matrix as endpoint
from pullback_service.matrix import queries
from pullback_service.series import queries as series_queries

pytestmark = pytest.mark.anyio

URL = "/api/v1/matrix"


@pytest.fixture
def upload(client):
    async def upload(*reports):
        for report in reports:
            response = await client.post("/api/v1/reports", json=report)
            assert response.status_code == 201, response.text

    return upload


@pytest.fixture
def matrix(client):
    async def matrix(status=200, **asked):
        response = await client.get(URL, params={"project": "demo", **asked})
        assert response.status_code == status, response.text
        return response.json()

    return matrix


def number(row):
    return None if row["commit"] is None else int(row["commit"]["sha"], 16)


async def test_each_case_stands_at_its_newest_commit(upload, matrix, reports):
    await upload(
        reports.report(3, cases=[reports.case("a")]),
        reports.report(1, cases=[reports.case("a"), reports.case("b")]),
    )
    page = await matrix()
    assert [item["workload"] for item in page["items"]] == ["a", "b"]
    assert [number(row) for item in page["items"] for row in item["cases"]] == [3, 1]
    cells = page["items"][0]["cases"][0]["cells"]
    assert [(cell["variant"], cell["metric"]) for cell in cells] == [
        ("fused", "array_bytes"),
        ("fused", "time"),
        ("unfused", "array_bytes"),
        ("unfused", "time"),
    ]
    assert (cells[1]["value"], cells[1]["log_ratio"], cells[1]["outcome"], cells[1]["spread"]["n"]) == (
        0.6,
        -0.5,
        "faster",
        3,
    )


async def test_machines_metrics_and_branches_can_be_chosen(upload, matrix, reports):
    beside = reports.report(9)
    beside["commit"] |= {"branch": "topic", "sha": reports.sha(109)}
    await upload(reports.report(1), reports.report(2, machine="small"), beside)

    async def places(**asked):
        page = await matrix(**asked)
        return [(row["machine"], number(row)) for item in page["items"] for row in item["cases"]]

    assert await places() == [("box", 109), ("small", 2)]
    assert await places(branch="main") == [("box", 1), ("small", 2)]
    assert await places(machine="small") == [("small", 2)]
    assert await places(machine="fingerprint of small", branch="topic") == []
    (item,) = (await matrix(metric="time", machine="box"))["items"]
    assert {cell["metric"] for cell in item["cases"][0]["cells"]} == {"time"}


async def test_failures_since_are_shown_whatever_the_metric(upload, matrix, reports):
    broken = reports.case("a", error={"kind": "workload", "message": "broke"}, variants=[], paired=[])
    never = reports.case("never", error={"kind": "missing", "message": "no rule"}, variants=[], paired=[])
    await upload(
        reports.report(1, cases=[broken]),
        reports.report(2, cases=[reports.case("a")]),
        reports.report(3, cases=[broken, never]),
    )
    for asked in ({}, {"metric": "time"}, {"branch": "main"}):
        first, second = (item["cases"][0] for item in (await matrix(**asked))["items"])
        assert number(first) == 2
        assert [(failed["message"], int(failed["commit"], 16)) for failed in first["failures"]] == [("broke", 3)]
        assert (second["commit"], second["cells"], second["failures"][0]["message"]) == (None, [], "no rule")
    # A metric that was never measured makes no old failure new.
    rows = [row for item in (await matrix(metric="gpu_bytes"))["items"] for row in item["cases"]]
    assert [(row["commit"], int(row["failures"][0]["commit"], 16)) for row in rows] == [(None, 3), (None, 3)]


async def test_pages_hold_whole_workloads(upload, matrix, reports):
    await upload(reports.report(1, cases=[reports.case(name) for name in "edcba"]))
    page = await matrix(limit=2)
    seen = [item["workload"] for item in page["items"]]
    while page["next"]:
        page = await matrix(limit=2, cursor=page["next"])
        seen += [item["workload"] for item in page["items"]]
    assert seen == list("abcde")


@pytest.mark.parametrize(
    ("asked", "status", "said"),
    [
        ({"project": "nothing"}, 404, "'nothing'"),
        ({"machine": "nothing"}, 404, "No machine 'nothing' has results"),
        ({"branch": "nothing"}, 404, "neither a commit nor a branch"),
        ({"limit": 101}, 422, "query.limit"),
        ({"cursor": "x"}, 422, "Invalid cursor"),
    ],
)
async def test_what_does_not_hold_is_refused(upload, matrix, reports, asked, status, said):
    await upload(reports.report(1))
    assert said in str(await matrix(status=status, **asked))


async def test_more_than_can_be_read_at_once_is_refused(upload, matrix, reports, monkeypatch):
    await upload(reports.report(1, cases=[reports.case("a"), reports.case("b")]))
    monkeypatch.setattr("pullback_service.series.queries.MOST_MATRIX_POINTS", 4)
    assert "ask for fewer with limit=" in (await matrix(status=422))["detail"]
    assert len((await matrix(limit=1))["items"]) == 1


async def test_an_unchanged_matrix_is_not_sent_again(client, upload, reports):
    await upload(reports.report(1))
    tag = (await client.get(f"{URL}?project=demo")).headers["etag"]
    assert (await client.get(f"{URL}?project=demo", headers={"If-None-Match": tag})).status_code == 304
    await upload(reports.report(1))
    assert (await client.get(f"{URL}?project=demo", headers={"If-None-Match": tag})).status_code == 200


@pytest.mark.parametrize(
    ("module", "name"),
    [(series_queries, "MeasuredCell"), (queries, "MatrixRow"), (endpoint, "plain_workload")],
)
async def test_no_step_of_a_matrix_keeps_the_event_loop_busy(upload, matrix, reports, monkeypatch, module, name):
    await upload(reports.report(1))
    made, threads = getattr(module, name), set()

    def noted(*arguments):
        threads.add(threading.current_thread())
        return made(*arguments)

    monkeypatch.setattr(module, name, noted)
    await matrix()
    assert threads
    assert threading.main_thread() not in threads
