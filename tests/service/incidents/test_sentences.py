"""An incident in one sentence."""

import shlex
from math import log

import pytest

from pullback_service.incidents.payload import facts_in
from pullback_service.incidents.sentences import evidence, sentence

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


async def test_how_it_was_measured_names_the_machine_and_the_commit_it_was_compared_with(history, reports):
    measured = history.paired(history.commit(3), log(1.3), "slower")
    await history.upload(history.commit(1), history.commit(2), measured)
    (found,) = await history.incidents()
    assert evidence(found) == "Measured against its parent, taking turns, on `box`."
    assert facts_in(found, is_measured_here=True)["command"] == (
        f"pullback compare --against {reports.sha(2)} --candidate {reports.sha(3)} --suite standard "
        "--case 'lstm[n=100,act=tanh,f4,cpu]' --variant fused"
    )
    assert facts_in(found, is_measured_here=False)["command"] is None


async def test_a_range_a_count_values_alone_and_a_failure_say_what_they_are_known_by(history, reports):
    far = history.paired(history.commit(4, array_bytes=512.0), log(1.3), "slower", reference=reports.sha(1))
    await history.upload(*(history.commit(number, array_bytes=512.0) for number in (1, 2, 3)), far)
    counted = [history.commit(number, array_bytes=1024.0) for number in (5, 6)]
    await history.upload(*counted, history.commit(7, wrong=("dense",)))
    said = {evidence(each) for each in await history.incidents()}
    assert said == {
        f"Measured against {reports.sha(1)[:7]}, taking turns, on `box`.",
        "Counted on `box`.",
        "Run on `box`.",
    }


async def test_names_that_are_hostile_are_quoted_for_the_shell_and_stand_in_code(history):
    documents = [history.commit(1), history.paired(history.commit(2), log(1.3), "slower")]
    for document in documents:
        document["machine"] |= {"name": "box`; rm -rf ~", "fingerprint": "evil"}
        for case in (*document["cases"], *document["comparisons"]):
            case["case"]["params"]["act"] = "$(reboot)'x"
    await history.upload(*documents)
    (found,) = await history.incidents()
    facts = facts_in(found, is_measured_here=True)
    assert facts["evidence"] == "Measured against its parent, taking turns, on `box'; rm -rf ~`."
    assert shlex.split(facts["command"])[9] == found.changes[0].case
