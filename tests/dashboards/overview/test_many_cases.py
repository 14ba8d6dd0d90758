"""The overview of many cases: the event loop serves others while it is made."""

import time
from asyncio import Handle

import pytest

pytestmark = pytest.mark.anyio

CASES, UPLOADS = 1_500, 5


def named(part, number):
    return {"workload": f"work{part}", "params": {"n": number}, "dtype": "f4", "device": "cpu"}


async def test_the_event_loop_goes_on_while_the_standing_of_many_cases_is_found(stored_history, reports, monkeypatch):
    client = stored_history.client
    for part in range(UPLOADS):
        cases = [reports.case(f"work{part}") | {"case": named(part, number)} for number in range(CASES // UPLOADS)]
        answer = await client.post("/api/v1/reports", json=reports.report(1, cases=cases))
        assert answer.status_code == 201, answer.text
    assert (await client.get("/overview.json?project=demo")).status_code == 200  # what is made once, is made
    answer = await client.post("/api/v1/reports", json=reports.report(2, cases=cases))
    assert answer.status_code == 201, answer.text
    steps, run = [], Handle._run

    def timed(handle):
        began = time.thread_time()
        run(handle)
        steps.append(time.thread_time() - began)

    monkeypatch.setattr(Handle, "_run", timed)
    view = (await client.get("/overview.json?project=demo")).json()
    monkeypatch.undo()
    assert view["paging"]["cases"] == CASES
    assert max(steps) < 0.03  # on the event loop it takes 0.07 s of processor time
