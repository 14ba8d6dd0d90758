"""Answers a client has already are not sent again, and who may keep them is said."""

import asyncio

import pytest

pytestmark = pytest.mark.anyio

QUESTIONS = ("/api/v1/series", "/api/v1/series/facets?project=demo", "/api/v1/series/1/points?marks=100")


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("url", QUESTIONS)
async def test_an_answer_that_still_holds_is_not_sent_again(client, reports, url):
    await client.post("/api/v1/reports", json=reports.report(1))
    first = await client.get(url)
    tag = first.headers["etag"]
    assert (first.status_code, tag[:3], first.headers["cache-control"]) == (200, 'W/"', "private, no-cache")
    for known in (tag, tag.removeprefix("W/"), f'"other", {tag}', "*"):
        again = await client.get(url, headers={"If-None-Match": known})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
        assert again.headers["vary"] == first.headers["vary"] == "Accept, Authorization, Cookie"
    assert (await client.get(url, headers={"If-None-Match": '"other"'})).status_code == 200
    await client.post("/api/v1/reports", json=reports.report(2, machine="box"))
    await client.post("/api/v1/reports", json=reports.report(2, cases=[reports.case("new")]))
    changed = await client.get(url, headers={"If-None-Match": tag})
    assert changed.status_code == 200
    assert changed.headers["etag"] != tag


async def test_no_order_of_uploads_leaves_an_old_answer_standing(client, reports):
    """Each upload that was acknowledged before a question shows in its answer, whichever ended first."""
    await client.post("/api/v1/reports", json=reports.report(1))
    url, tag = "/api/v1/series/1/points?limit=1000", '"none"'
    acknowledged = 1

    async def upload(number):
        nonlocal acknowledged
        response = await client.post("/api/v1/reports", json=reports.report(number))
        assert response.status_code == 201
        acknowledged += 1

    uploads = [asyncio.create_task(upload(number)) for number in range(2, 14)]
    known = 0
    while True:
        before, over = acknowledged, all(task.done() for task in uploads)
        answer = await client.get(url, headers={"If-None-Match": tag})
        if answer.status_code == 200:
            known, tag = len(answer.json()["items"]), answer.headers["etag"]
        assert known >= before
        if over:
            break
    await asyncio.gather(*uploads)
    assert known == 13


async def test_what_anybody_may_read_may_be_kept_by_anybody(start_service, reports, tmp_path):
    secret = tmp_path / "token"
    secret.write_text("a long secret of the bootstrap token")
    async with start_service(auth="token", token_file=secret) as client:
        admin = {"Authorization": f"Bearer {secret.read_text()}"}
        await client.post("/api/v1/reports", json=reports.report(1), headers=admin)
        assert (await client.get("/api/v1/series")).status_code == 401
        await client.patch("/api/v1/projects/demo", json={"public_read": True}, headers=admin)
        anybody = await client.get("/api/v1/series")
        assert anybody.headers["cache-control"] == "public, no-cache"
        named = await client.get("/api/v1/series", headers=admin)
        assert named.headers["cache-control"] == "private, no-cache"
        await client.patch("/api/v1/projects/demo", json={"public_read": False}, headers=admin)
        # A cache must ask, and is not told "unchanged" of what is not public any more.
        assert (
            await client.get("/api/v1/series", headers={"If-None-Match": anybody.headers["etag"]})
        ).status_code == 401
