"""An incident in one sentence."""

from math import log

import pytest

pytestmark = pytest.mark.anyio


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
