"""Pages of a project whose baseline is a variant of its own: by its name, and nothing of `unfused`."""

import httpx
import pytest
from tests.service.conftest import make_case, make_report, make_variant, sha_of

from pullback_cli.app import create_app
from pullback_service.addresses import API
from pullback_service.settings import Settings

pytestmark = pytest.mark.anyio

CASE = "dense_bias_act[n=100,act=tanh,f4,cpu]"


def reports(count):
    for number in range(1, count + 1):
        case = make_case()
        case["variants"] = [make_variant("by-hand"), make_variant("jax", seconds=(0.6, 0.7, 0.5), array_bytes=1024.0)]
        case["paired"] = [pair | {"variant": "jax", "baseline": "by-hand"} for pair in case["paired"]]
        yield make_report(number, cases=[case])


@pytest.fixture
async def client(database_url):
    app = create_app(Settings(DATABASE_URL=database_url))
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as one,
    ):
        for document in reports(2):
            receipt = await one.post(f"{API}/reports", json=document)
            assert receipt.status_code == 201, receipt.text
            assert receipt.json()["notes"] == []
        yield one, receipt.json()["id"]


async def test_pages_hold_variants_against_the_baseline_that_the_project_chose(client):
    client, report = client
    params = {"project": "demo", "case": CASE}
    workload = "/projects/demo/workloads/dense_bias_act"
    pages = {
        "/": (params, "Speed against by-hand"),
        "/overview.md": ({**params, "metric": "array_bytes"}, "75 % less than by-hand"),
        workload: (params, "time, variant ÷ by-hand"),
        f"{workload}.md": ({**params, "y": "absolute"}, "1.6× faster than by-hand"),
        f"{workload}.svg": (params, "variant ÷ by-hand"),
        f"/projects/demo/commits/{sha_of(2)}": ({}, "÷ by-hand"),
        f"/projects/demo/commits/{sha_of(2)}/cases/{CASE}": ({}, "Speed against by-hand"),
        f"/reports/{report}": ({}, "÷ by-hand"),
    }
    for address, (query, said) in pages.items():
        answer = await client.get(address, params=query, follow_redirects=True)
        assert answer.status_code == 200, (address, answer.text)
        assert said in answer.text, address
        assert "unfused" not in answer.text, address


async def test_the_variant_that_ratios_are_against_is_called_the_baseline(client):
    client, _ = client
    overview = (await client.get("/overview.json", params={"project": "demo"})).json()
    row = overview["heat"]["groups"][0]["rows"][0]
    by_hand, jax = row["cells"]
    assert (by_hand["variant"], by_hand["doubt"], by_hand["log_ratio"]) == ("by-hand", "baseline", None)
    assert (jax["variant"], jax["outcome"], jax["words"]) == ("jax", "faster", "1.6× faster than by-hand")


async def test_commits_are_judged_by_ratios_to_the_projects_own_baseline(client):
    client, _ = client
    asked = {"project": "demo", "base": sha_of(1), "head": sha_of(2)}
    items = (await client.get(f"{API}/comparisons", params=asked)).json()["items"]
    evidence = {(item["variant"], item["metric"]): item["evidence"] for item in items}
    assert evidence["jax", "time"] == "ratios"
