"""Steps that the noise of their own series hides are not called likely, in any view; those beyond it are, at once."""

import random

import pytest

pytestmark = pytest.mark.anyio

NOISY, STEP = 24, 26
"""The commits of which one is by chance 8 % slower than the one before, and of which one is slower by what it changed."""
CASE = "lstm[n=100,act=tanh,f4,cpu]"


def ratio_at(number):
    """Ratios that scatter by 3 %, each of them with an interval of 1 %."""
    if number >= STEP:
        return 0.3 + random.Random(number).gauss(0, 0.03)
    return {NOISY - 1: -0.54, NOISY: -0.46}.get(number, -0.5 + random.Random(number).gauss(0, 0.03))


def measured(stored_history, number, **parts):
    return stored_history.commit(number, ratio=ratio_at(number), **parts)


async def compared(stored_history, number, project="demo"):
    """The times of the variant at a commit against those at its parent."""
    asked = {
        "project": project,
        "head": stored_history.reports.sha(number),
        "workload": "lstm",
        "variant": "fused",
        "metric": "time",
    }
    (only,) = (await stored_history.client.get("/api/v1/comparisons", params=asked)).json()["items"]
    return only


async def read(stored_history, address):
    answer = await stored_history.client.get(address)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def in_views(stored_history, reports, number):
    """The texts by which the pages of a commit, of the case there and of the newest commits say that it is likely slower."""
    page = f"/projects/demo/commits/{reports.sha(number)}"
    news = (await read(stored_history, "/overview.json?project=demo"))["news"]
    commit = await stored_history.client.get(f"{page}.md")
    (block,) = [
        each
        for each in (await read(stored_history, f"{page}/cases/{CASE}.json"))["variants"]
        if each["variant"] == "fused"
    ]
    return "likely" in str(news), "likely" in commit.text, block["since_tone"]


@pytest.mark.long
async def test_a_step_that_is_noise_by_its_own_series_is_likely_in_no_view(stored_history, reports):
    await stored_history.upload(*(measured(stored_history, number) for number in range(1, NOISY)))
    await stored_history.upload(measured(stored_history, NOISY))
    said = await compared(stored_history, NOISY)
    assert said["log_ratio"] == pytest.approx(0.08, abs=0.005)
    assert (said["outcome"], said["evidence"], said["provisional"]) == ("ambiguous", "ratios", True)
    assert said["reason"].startswith("Measured at different times; changes below ")
    assert said["threshold"] > 0.08
    summary = (await read(stored_history, f"/api/v1/comparisons?project=demo&head={reports.sha(NOISY)}"))["summary"]
    assert (summary["likely_worse"], summary["likely_better"]) == (0, 0)
    assert await in_views(stored_history, reports, NOISY) == (False, False, "")


async def test_a_step_beyond_the_noise_of_its_series_is_likely_at_once(stored_history, reports):
    await stored_history.upload(*(measured(stored_history, number) for number in range(1, STEP)))
    answer = await stored_history.client.post("/api/v1/reports", json=measured(stored_history, STEP))
    assert answer.status_code == 201, answer.text
    assert (await compared(stored_history, STEP))["outcome"] == "likely_slower"
    assert await in_views(stored_history, reports, STEP) == (True, True, "likely-worse")
    await stored_history.look()
    assert (await compared(stored_history, STEP))["outcome"] == "likely_slower"


@pytest.mark.long
async def test_the_order_of_uploads_decides_nothing(stored_history):
    order = list(range(1, STEP + 2))
    for project in ("demo", "other"):
        for number in order:
            await stored_history.upload(measured(stored_history, number, project=project))
        random.Random(1).shuffle(order)
        order = [*(each for each in order if each != STEP + 1), STEP + 1]
    known = [
        [(await compared(stored_history, number, project))["outcome"] for number in range(2, STEP + 2)]
        for project in ("demo", "other")
    ]
    assert known[0] == known[1]
    assert set(known[0]) == {"ambiguous", "likely_slower"}
