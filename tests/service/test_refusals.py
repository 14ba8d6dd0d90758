"""What is refused is told in whole sentences, which read well behind a path, behind other words, and alone."""

import pytest

pytestmark = pytest.mark.anyio

NAME = "A name must be one line, without blanks at its ends and without control characters."
COMMIT = (
    "A commit is named by its full hash, 40 or 64 hexadecimal digits in lower case, as `git rev-parse HEAD` says it."
)
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
            "query.awaits_approval: The value must be true or false.",
        ),
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
        ("project", " demo", f"The report does not hold at $.project: {NAME}"),
        ("sha", "abc", f"The report does not hold at $.commit.sha: {COMMIT}"),
        (
            "title",
            "a\0b",
            "The report does not hold at $.commit.title: A text must not hold the character NUL.",
        ),
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
        "$.results[0] does not hold: A name that is part of addresses must not have . or .. between its slashes."
    )
