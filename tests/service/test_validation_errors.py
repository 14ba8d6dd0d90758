"""What is refused is told in whole sentences, which read well behind a path, behind other words, and alone."""

import re

import pytest

pytestmark = pytest.mark.anyio

NAME = "A name must be one line without control characters, and without spaces at its ends."
COMMIT = "Give the full hash of the commit, 40 or 64 lower-case hexadecimal digits, as printed by `git rev-parse HEAD`."
AN_ID = "an id like 0196f3c1-8d5e-7a42-9b0c-2f6e51d7c8a4"
CHART = "/api/v1/boards/00000000-0000-0000-0000-000000000000/charts"


@pytest.mark.parametrize(
    ("method", "address", "content", "said"),
    [
        ("GET", "/api/v1/series?project=%20demo", None, f"query.project: {NAME}"),
        ("GET", "/api/v1/jobs?commit=abc", None, f"query.commit: {COMMIT}"),
        (
            "GET",
            "/api/v1/jobs?awaits_approval=perhaps",
            None,
            "query.awaits_approval: Give true or false instead of 'perhaps'.",
        ),
        ("GET", "/api/v1/jobs?limit=0", None, "query.limit: Give 1 or more instead of 0."),
        ("GET", "/api/v1/jobs?limit=99999", None, "query.limit: Give 1,000 or less instead of 99999."),
        ("GET", "/api/v1/jobs?limit=1.5", None, "query.limit: Give a whole number instead of '1.5'."),
        ("GET", "/api/v1/jobs?kind=log", None, "query.kind: Give 'run' or 'compare' instead of 'log'."),
        ("GET", "/api/v1/jobs?suite=", None, "query.suite: Give 1 or more characters instead of 0."),
        ("GET", "/api/v1/commits", None, "query.project: A value is required."),
        ("GET", "/api/v1/reports/last", None, f"path.report_id: Give {AN_ID} instead of 'last'."),
        (
            "GET",
            f"/api/v1/jobs?kind=%E2%80%8B{'x' * 100}",
            None,
            f"query.kind: Give 'run' or 'compare' instead of '\\u200b{'x' * 39}'….",
        ),
        ("POST", "/api/v1/projects", {"name": "x" * 1001}, "$.name: Give 200 or fewer characters instead of 1,001."),
        ("POST", "/api/v1/projects", {"name": None}, "$.name: Give a string instead of null."),
        ("POST", "/api/v1/projects", [], "$: Give an object instead of a list."),
        (
            "POST",
            "/api/v1/projects",
            {"name": "x", "colour": "red"},
            "$.colour: Unknown name: remove it.",
        ),
        (
            "POST",
            "/api/v1/tokens",
            {"name": "x", "scopes": ["read"], "expires_in_days": 0},
            "$.expires_in_days: Give more than 0 instead of 0.",
        ),
        ("POST", "/api/v1/tokens", {"name": "x", "scopes": []}, "$.scopes: Give 1 or more values instead of 0."),
        ("POST", "/api/v1/projects", {"name": "a\nb"}, f"$.name: {NAME}"),
        (
            "POST",
            CHART,
            {"project": "demo", "kind": "workload"},
            "$: The member `workload` is needed where `kind` is workload, and means nothing elsewhere.",
        ),
    ],
)
async def test_behind_a_path(client, method, address, content, said):
    answer = await client.request(method, address, json=content)
    assert (answer.status_code, answer.json()["detail"]) == (422, said)
    assert said.endswith(answer.json()["errors"][0]["message"])


@pytest.mark.parametrize(
    ("part", "value", "said"),
    [
        ("project", " demo", f"The report is not valid at $.project: {NAME}"),
        ("sha", "abc", f"The report is not valid at $.commit.sha: {COMMIT}"),
        (
            "title",
            "a\0b",
            "The report is not valid at $.commit.title: Remove the NUL character from the text.",
        ),
        ("harness", 7, "The report is not valid at $.harness: Give an object instead of 7."),
        ("parents", None, "The report is not valid at $.commit.parents: Give a list instead of null."),
    ],
)
async def test_behind_what_is_said_of_a_report(client, report, part, value, said):
    (report if part in report else report["commit"])[part] = value
    answer = await client.post("/api/v1/reports", json=report)
    assert (answer.status_code, answer.json()["detail"]) == (422, said)


async def test_behind_what_is_said_of_a_file(client, reports):
    file = {"results": [{"command": "a/../b", "times": [1.0, 2.0]}]}
    said = {"project": "demo", "commit": reports.sha(1), "machine": "ci"}
    answer = await client.post("/api/v1/reports", json=file, params=said)
    assert answer.status_code == 422
    assert answer.json()["detail"] == (
        "$.results[0] is not valid: A name that is part of addresses must not have . or .. between its slashes."
    )


async def test_where_a_body_stops_being_json_is_said(client):
    answer = await client.post(
        "/api/v1/projects", content='{"name": demo}', headers={"content-type": "application/json"}
    )
    assert (answer.status_code, answer.json()["detail"]) == (
        400,
        "The body is not JSON: Expecting value at character 9.",
    )
    assert answer.json()["errors"][0]["path"] == "$"


@pytest.mark.long
async def test_nothing_of_an_address_is_refused_in_the_words_of_a_library(client):
    description = (await client.get("/api/v1/openapi.json")).json()
    refused = []
    for place, operations in description["paths"].items():
        for parameter in operations.get("get", {}).get("parameters", ()):
            address = re.sub(r"{\w+}", "1", place)
            for wrong in ("", "-1", "a\x01", "x" * 30_000):
                if parameter["in"] == "query":
                    answer = await client.get(address, params={parameter["name"]: wrong})
                    if answer.status_code == 422:
                        refused += [(parameter["name"], error["message"]) for error in answer.json()["errors"]]
    assert len(refused) > 100
    assert not [each for each in refused if re.match(r"(Input|String|List|Value) |.*\bvalid\b|.*pattern", each[1])]
