"""An incident in one sentence."""

from math import log

import pytest

from pullback_service.incidents.sentences import sentence

pytestmark = pytest.mark.anyio


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(
    ("factor", "half_width", "text"),
    [
        (1.119, 0.001, "takes 11.9 % more time (11.8 to 12.0, 20 groups)"),
        (1.3, 0.0001, "takes 30.00 % more time (29.99 to 30.01, 20 groups)"),
        (1.3, 0.01, "takes 30 % more time (29 to 31, 20 groups)"),
        (1.05, 0.01, "takes 5.0 % more time (4.0 to 6.1, 20 groups)"),
        (1.119, 0.0, "takes 11.90 % more time (11.90 to 11.90, 20 groups)"),
    ],
)
async def test_the_ends_of_an_interval_are_told_apart(history, factor, half_width, text):
    slower = history.paired(history.commit(2), log(factor), "slower")
    slower["comparisons"][-1] |= {"low": log(factor) - half_width, "high": log(factor) + half_width}
    await history.upload(history.commit(1), slower)
    answer = await history.client.get("/api/v1/incidents")
    assert text in answer.json()["items"][0]["sentence"]


async def test_values_of_a_change_measured_in_the_same_groups_agree_with_it(history):
    await history.upload(history.commit(1), history.paired(history.commit(2), log(1.3), "slower"))
    (found,) = await history.incidents()
    (change,) = (each.change for each in found.changes)
    assert change.after / change.before == pytest.approx(1.3)


async def test_the_largest_change_of_bytes_leads_and_a_likely_time_is_told(history):
    documents = history.commit(1), history.commit(2, ratio=0.5, array_bytes=2048.0)
    for document, peak_bytes in zip(documents, (1000, 1040), strict=True):
        fused = document["cases"][1]["variants"][1]
        fused["metrics"]["peak_bytes"] = {"unit": "B", "value": peak_bytes, "method": "nep49"}
    await history.upload(*documents)
    (found,) = await history.incidents()
    assert {each.metric for each in found.changes} == {"array_bytes", "peak_bytes"}
    said = sentence(found)
    assert said.startswith("`fused` of `lstm` uses 2× the memory (array bytes: 1 KiB, then 2 KiB) since 0000000")
    assert "; likely 2.71× the time; 4.0 % more `peak_bytes`" in said
