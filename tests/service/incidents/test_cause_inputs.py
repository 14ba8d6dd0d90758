"""From uploads without a baseline and without an agent to what is told of them: the machine, a tier, or a commit."""

import random

import pytest
from tests.service.incidents.conftest import SIX, SLOWER_AT, another_number_of_values

pytestmark = pytest.mark.anyio

API = "/api/v1"
TWENTY = [f"workload_{number}" for number in range(20)]


async def told_of(history):
    """The state and cause of every incident, and the events that were told."""
    details = await history.incidents()
    return {(each.incident.state, each.incident.cause) for each in details}, {
        event for _, event in await history.told()
    }


@pytest.mark.parametrize("seed", [None, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))])
async def test_a_machine_that_is_slower_accuses_no_commit(history, seed):
    documents = [*history.all_values(slower=["ci"]), *history.all_values(machine="other")]
    if seed is not None:
        random.Random(seed).shuffle(documents)
    await history.upload(*documents, look=seed is not None)
    assert await told_of(history) == ({("unconfirmed", "machine")}, set())
    for each in (await history.client.get(f"{API}/incidents")).json()["items"]:
        assert each["cause"] == "machine"
        assert each["sentence"].endswith(
            "; unrelated cases on `ci` moved alike: the machine, or something that all of them use "
            "(measure both commits in turns to tell)."
        )
        events = (await history.client.get(each["url"])).json()["events"]
        assert any("moved alike" in event["details"].get("because", "") for event in events)


async def test_the_machine_is_told_where_each_report_has_another_number_of_values(history):
    documents = [*history.all_values(slower=["ci"]), *history.all_values(machine="other")]
    await history.upload(*(another_number_of_values(each, number) for number, each in enumerate(documents)))
    assert await told_of(history) == ({("unconfirmed", "machine")}, set())


async def test_a_commit_that_slows_two_machines_is_likely(history):
    slower = ["ci", "other"]
    await history.upload(*history.all_values(slower=slower), *history.all_values(machine="other", slower=slower))
    assert await told_of(history) == ({("likely", None)}, {"likely"})


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("seed", [None, 1])
async def test_a_commit_that_slows_two_cases_is_likely_where_one_of_two_machines_slowed_wholly(history, seed):
    documents = [*history.all_values(slower=["ci"]), *history.all_values(machine="other", slower=SIX[:2])]
    if seed is not None:
        random.Random(seed).shuffle(documents)
    await history.upload(*documents)
    states, told = await told_of(history)
    assert ("likely", None) in states
    assert told == {"likely"}
    (likely,) = [each for each in await history.incidents() if each.incident.state == "likely"]
    assert {each.machine for each in likely.changes} == {"ci", "other"}


async def test_one_variant_across_workloads_is_told_as_that(history):
    await history.upload(*history.all_values(variants=("plain", "native"), slower=["native"]))
    assert await told_of(history) == ({("likely", "tier")}, {"likely"})
    said = (await history.client.get(f"{API}/incidents")).json()["items"][0]["sentence"]
    assert said.startswith("`native` of 6 workloads takes ")
    assert "; other variants of these cases did not move (seen in later uploads" in said


@pytest.mark.long
async def test_three_of_twenty_cases_are_told_as_ever(history):
    await history.upload(*history.all_values(workloads=TWENTY, slower=TWENTY[:3]))
    assert await told_of(history) == ({("likely", None)}, {"likely"})


@pytest.mark.long
async def test_cases_that_are_uploaded_later_and_stood_still_tell_that_it_was_a_commit(history):
    await history.upload(*history.all_values(slower=SIX))
    assert await told_of(history) == ({("unconfirmed", "machine")}, set())
    await history.upload(*history.all_values(workloads=TWENTY[6:]), look=True)
    assert await told_of(history) == ({("likely", None)}, {"likely"})


@pytest.mark.long
async def test_a_pair_confirms_what_moved_everywhere(history):
    documents = history.all_values(slower=["ci"])
    at = documents[SLOWER_AT - 1]
    at["comparisons"] = [
        {
            "case": case["case"],
            "variant": "plain",
            "metric": "time",
            "reference": at["commit"]["parents"][0],
            "candidate": at["commit"]["sha"],
            "log_ratio": 0.18,
            "low": 0.17,
            "high": 0.19,
            "n": 20,
            "outcome": "slower",
        }
        for case in at["cases"]
    ]
    await history.upload(*documents)
    assert await told_of(history) == ({("confirmed", None)}, {"confirmed"})


@pytest.mark.long
async def test_a_baseline_that_moved_is_told_as_that(history, reports):
    def report(number):
        noise = random.Random(number)
        own = {"unfused": 1.2 if number >= SLOWER_AT else 1.0, "fused": 0.5}
        timed = [
            reports.variant(name, seconds=[level * noise.gauss(1, 0.01) for _ in range(3)])
            for name, level in own.items()
        ]
        ratio = -0.693 - (0.182 if number >= SLOWER_AT else 0.0) + noise.gauss(0, 0.002)
        return reports.report(number, cases=[reports.case("lstm", variants=timed, log_ratio=ratio)])

    await history.upload(*map(report, range(1, SLOWER_AT + 5)))
    states, _ = await told_of(history)
    assert ("likely", "baseline") in states
    sentences = [each["sentence"] for each in (await history.client.get(f"{API}/incidents")).json()["items"]]
    assert any(
        "; the ratios of these cases moved together, and their baseline the other way" in each for each in sentences
    )


@pytest.mark.long
async def test_what_was_told_is_withdrawn_where_all_others_turn_out_to_have_moved(history):
    await history.upload(*history.all_values(workloads=SIX[:3], slower=["ci"]))
    assert await told_of(history) == ({("likely", None)}, {"likely"})
    await history.upload(*history.all_values(workloads=SIX[3:], slower=["ci"]))
    assert await told_of(history) == ({("unconfirmed", "machine")}, {"likely", "withdrawn"})
