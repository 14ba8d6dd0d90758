"""No query tells a token of one project anything of another: not in rows, counts, files or errors."""

import pytest

pytestmark = pytest.mark.anyio


@pytest.fixture
async def of_demo(admin, make_token, reports):
    """Headers of a token that reads the project demo, beside which there is another."""
    for project, machine in (("demo", "box"), ("secret", "hidden")):
        for number in (1, 2):
            upload = reports.report(number, project=project, machine=machine, cases=[reports.case(f"of {project}")])
            assert (await admin.post("/api/v1/reports", json=upload)).status_code == 201
    return await make_token("read", project="demo")


ANSWERED = (
    "/api/v1/series?limit=1000",
    "/api/v1/series/facets?",
    "/api/v1/points?project=demo",
    "/api/v1/matrix?project=demo",
    f"/api/v1/comparisons?project=demo&base={1:040x}&head={2:040x}",
)
REFUSED = (
    "/api/v1/series?project=secret&branch=main",
    "/api/v1/series/5/points",
    "/api/v1/points?project=secret",
    "/api/v1/points?project=secret&format=csv",
    "/api/v1/matrix?project=secret",
    "/api/v1/matrix?project=demo&machine=hidden",
    f"/api/v1/comparisons?project=secret&base={1:040x}&head={2:040x}",
)


async def test_answers_are_of_the_tokens_project_alone(guarded, of_demo):
    for url in ANSWERED:
        for form in ("", "&format=csv", "&format=json"):
            answer = await guarded.get(url + form, headers=of_demo)
            assert answer.status_code == 200, answer.text
            assert "of demo" in answer.text
            assert "secret" not in answer.text, url
            assert "hidden" not in answer.text, url


async def test_what_is_anothers_is_not_there(guarded, of_demo):
    for url in REFUSED:
        answer = await guarded.get(url, headers=of_demo)
        assert answer.status_code in {403, 404}, (url, answer.text)


async def test_nothing_is_read_without_a_token(guarded, of_demo):
    for url in ANSWERED:
        assert (await guarded.get(url)).status_code == 401
