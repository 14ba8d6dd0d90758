"""Two commits over HTTP."""

import csv
import io
from dataclasses import replace
from uuid import uuid4

import numpy as np
import pytest
from sqlalchemy import select

from pullback_runners.report.document import counts_document
from pullback_service import statements
from pullback_service.comparisons import compared_commits, queries
from pullback_service.comparisons.columns import numbers_given, readings_at_two
from pullback_service.comparisons.vectorized_judging import OUTCOMES
from pullback_service.ids import ProjectId
from pullback_service.models.commits import Commit
from pullback_service.series.filters import SeriesChoice

pytestmark = pytest.mark.anyio

URL = "/api/v1/comparisons"
CASE = {"workload": "dense_bias_act", "params": {"n": 100, "act": "tanh"}, "dtype": "f4", "device": "cpu"}


def counted(value, *calls):
    """A count, with the least and the most of its calls where they differ."""
    differs = {"differs": True, "range": list(calls)} if calls else {}
    return {"unit": "B", "value": value, "method": "nep49", **differs}


@pytest.fixture
def upload(client):
    async def upload(*reports):
        for report in reports:
            response = await client.post("/api/v1/reports", json=report)
            assert response.status_code == 201, response.text

    return upload


@pytest.fixture
def compare(client):
    async def compare(status=200, **asked):
        response = await client.get(URL, params={"project": "demo", **asked})
        assert response.status_code == status, response.text
        return response.json()

    return compare


def statement(reports, *, reference=1, candidate=2, **said):
    said = {"variant": "fused", "metric": "time", "log_ratio": 0.05, "low": 0.04, "high": 0.06, "n": 20} | said
    return {
        "case": CASE,
        "reference": reports.sha(reference),
        "candidate": reports.sha(candidate),
        "outcome": "slower",
        "claim": 0.01,
        "margin": 0.01,
        "margin_is_provisional": False,
    } | said


def rows(answer):
    return {(row["variant"], row["metric"]): row for row in answer["items"]}


async def test_pairs_are_believed_counts_compared_and_the_rest_is_ambiguous(upload, compare, reports):
    newer = reports.report(2, cases=[reports.case()], comparisons=[statement(reports)])
    newer["cases"][0]["variants"][1]["metrics"]["array_bytes"]["value"] = 2048.0
    await upload(reports.report(1), newer)
    answer = await compare(base=reports.sha(1), head=reports.sha(2))
    assert (answer["reference"]["sha"], answer["candidate"]["sha"]) == (reports.sha(1), reports.sha(2))
    assert (answer["reference"]["series"], answer["candidate"]["series"]) == (4, 4)
    found = rows(answer)
    paired = found["fused", "time"]
    assert (paired["kind"], paired["outcome"], paired["log_ratio"], paired["n"]) == ("paired", "slower", 0.05, 20)
    assert (paired["threshold"], paired["significance"]) == (pytest.approx(0.01), pytest.approx(5))
    assert (paired["reference"]["value"], paired["candidate"]["spread"]["n"]) == (0.6, 3)
    counted = found["fused", "array_bytes"]
    assert (counted["kind"], counted["outcome"], counted["threshold"]) == ("exact", "more", None)
    assert (counted["reference"]["value"], counted["candidate"]["value"]) == (1024, 2048)
    assert found["unfused", "array_bytes"]["outcome"] == "equal"
    apart = found["unfused", "time"]
    assert (apart["kind"], apart["outcome"], apart["log_ratio"]) == ("unpaired", "ambiguous", 0.0)
    assert apart["low"] < 0 < apart["high"]
    assert "different times" in apart["reason"]
    # A doubled count is worse than 5 % of time.
    assert [row["outcome"] for row in answer["items"]] == ["more", "slower", "ambiguous", "equal"]
    summary = answer["summary"]
    assert (summary["series"], summary["worse"], summary["unchanged"], summary["ambiguous"]) == (4, 2, 1, 1)
    time = next(metric for metric in summary["metrics"] if metric["metric"] == "time")
    assert time["worse"] == {"count": 1, "mean": 0.05, "smallest": 0.05, "largest": 0.05}
    assert time["outcomes"] == {"slower": 1, "ambiguous": 1}
    assert answer["notes"] == []


async def test_the_other_way_round_turns_what_was_paired(upload, compare, reports):
    await upload(reports.report(1), reports.report(2, comparisons=[statement(reports)]))
    paired = rows(await compare(base=reports.sha(2), head=reports.sha(1)))["fused", "time"]
    assert (paired["outcome"], paired["log_ratio"], paired["low"], paired["high"]) == ("faster", -0.05, -0.06, -0.04)


async def test_an_upload_alone_is_compared_though_the_reference_was_never_uploaded(upload, compare, reports):
    said = [statement(reports), statement(reports, variant="native", outcome="failed", log_ratio=None, n=0)]
    await upload(reports.report(2, comparisons=said))
    found = rows(await compare(base=reports.sha(1), head=reports.sha(2)))
    assert (found["fused", "time"]["outcome"], found["fused", "time"]["reference"]) == ("slower", None)
    failed = found["native", "time"]
    assert (failed["outcome"], failed["series_id"], failed["unit"]) == ("failed", None, None)


async def test_failures_come_first_and_what_is_missing_last(upload, compare, reports):
    broken = reports.case("a", error={"kind": "workload", "message": "broke"}, variants=[], paired=[])
    await upload(
        reports.report(1, cases=[reports.case("a"), reports.case("gone")]),
        reports.report(2, cases=[broken, reports.case("new")]),
    )
    answer = await compare(base=reports.sha(1), head=reports.sha(2), variant="fused", metric="time")
    assert [(row["case"]["workload"], row["outcome"], row["reason"]) for row in answer["items"]] == [
        ("a", "failed", "broke"),
        ("gone", "not_comparable", "Not measured at the candidate."),
        ("new", "not_comparable", "Not measured at the reference."),
    ]
    assert (answer["summary"]["failed"], answer["summary"]["worse"], answer["summary"]["not_comparable"]) == (1, 1, 2)


async def test_machines_are_never_compared_with_each_other(upload, compare, reports):
    await upload(reports.report(1, machine="big"), reports.report(2, machine="small"), reports.report(2, machine="big"))
    answer = await compare(base=reports.sha(1), head=reports.sha(2), metric="array_bytes")
    assert {(row["machine"], row["outcome"]) for row in answer["items"]} == {
        ("big", "equal"),
        ("small", "not_comparable"),
    }
    assert len((await compare(base=reports.sha(1), head=reports.sha(2), machine="big"))["items"]) == 4


async def test_commits_are_named_by_branch_or_beginning_and_the_parent_is_the_default(upload, compare, reports):
    older, newer = reports.report(1), reports.report(2)
    older["commit"] |= {"sha": "abcdef1" + "0" * 33}
    newer["commit"] |= {"parents": [older["commit"]["sha"]]}
    await upload(older, newer)
    by_default = await compare(head="main")
    assert (by_default["reference"]["sha"], by_default["candidate"]["branch"]) == (older["commit"]["sha"], "main")
    assert (await compare(base="abcdef1", head="main"))["reference"]["sha"] == older["commit"]["sha"]


async def test_without_a_measured_parent_a_commit_is_held_against_what_was_measured_before(
    client, upload, compare, reports
):
    await upload(reports.report(1), reports.report(4))
    (note,) = (answer := await compare(head="main"))["notes"]
    assert answer["reference"]["sha"] == reports.sha(1)
    assert note.startswith(f"The ancestry of {reports.sha(4)} is not known: {reports.sha(1)} is")
    commits = [
        reports.report(number)["commit"] | {"branch": None, "dirty": None, "title": None} for number in (4, 3, 2)
    ]
    told = [{name: value for name, value in commit.items() if value is not None} for commit in commits]
    log = {"project": "demo", "branch": "main", "commits": told}
    assert (await client.post("/api/v1/commits", json=log)).status_code == 200
    (note,) = (answer := await compare(head=reports.sha(4)))["notes"]
    assert (answer["reference"]["sha"], answer["summary"]["unchanged"]) == (reports.sha(1), 2)
    assert note.endswith(f"has no results: {reports.sha(1)} is its nearest ancestor with results.")


async def test_a_branch_is_held_against_its_merge_base(client, upload, compare, reports):
    topic = reports.report(4)
    topic["commit"] |= {"sha": reports.sha(104), "branch": "topic", "parents": [reports.sha(2)]}
    await upload(*(reports.report(number) for number in (1, 2, 3)), topic)
    apart = await compare(base="main", head="topic")
    assert apart["reference"]["sha"] == reports.sha(3)
    parted = await compare(base="main", head="topic", merge_base=True)
    assert (parted["reference"]["sha"], parted["reference"]["branch"]) == (reports.sha(2), "main")
    assert parted["notes"] == []
    log = {
        "project": "demo",
        "branch": "main",
        "commits": [
            {
                "sha": reports.sha(number),
                "parents": [reports.sha(number - 1)],
                "authored_at": f"2026-03-0{number}T00:00:00Z",
            }
            for number in (6, 5)
        ]
        + [{"sha": reports.sha(4), "parents": [reports.sha(3)]}],
    }
    assert (await client.post("/api/v1/commits", json=log)).status_code == 200
    ahead = await compare(base="main", head="topic")
    assert ahead["reference"]["sha"] == reports.sha(3)
    assert ahead["notes"] == [
        f"{reports.sha(3)} is the newest commit of branch 'main' with results, not its newest one."
    ]
    unmeasured = await compare(base=reports.sha(5), head="topic")
    assert unmeasured["reference"]["series"] == 0
    assert f"name {reports.sha(3)}, its nearest ancestor with results" in unmeasured["notes"][0]
    assert unmeasured["summary"]["not_comparable"] == 4


async def test_pages_follow_each_other_and_outcomes_can_be_chosen(upload, compare, reports):
    cases = [reports.case(f"workload {number}") for number in range(5)]
    newer = reports.report(2, cases=[reports.case(f"workload {number}") for number in range(5)])
    for number, measured in enumerate(newer["cases"]):
        measured["variants"][0]["metrics"]["array_bytes"]["value"] = 4096.0 + number - 2
    await upload(reports.report(1, cases=cases), newer)
    asked = {"base": reports.sha(1), "head": reports.sha(2), "metric": "array_bytes", "variant": "unfused"}
    page = await compare(**asked, limit=2)
    seen = [row["candidate"]["value"] for row in page["items"]]
    while page["next"]:
        page = await compare(**asked, limit=2, cursor=page["next"])
        seen += [row["candidate"]["value"] for row in page["items"]]
    assert seen == [4098, 4097, 4094, 4095, 4096]
    chosen = await compare(**asked, outcome=["less", "equal"])
    assert [row["outcome"] for row in chosen["items"]] == ["less", "less", "equal"]
    assert chosen["summary"]["series"] == 5


async def test_several_reports_of_a_commit_are_pooled_and_must_count_alike(upload, compare, reports):
    other = reports.report(2)
    other["cases"][0]["variants"][1]["metrics"]["array_bytes"]["value"] = 999.0
    await upload(reports.report(1), reports.report(2), other)
    found = rows(await compare(base=reports.sha(1), head=reports.sha(2)))
    assert found["unfused", "array_bytes"]["outcome"] == "equal"
    assert found["fused", "array_bytes"]["outcome"] == "ambiguous"
    assert "Counts differ between reports" in found["fused", "array_bytes"]["reason"]
    assert len(found["fused", "time"]["candidate"]["report_ids"]) == 2
    assert found["fused", "time"]["candidate"]["spread"]["n"] == 6


async def test_processes_that_count_differently_make_no_count(upload, compare, reports):
    older, newer = reports.report(1), reports.report(2)
    for report, processes in ((older, [10, 20, 30]), (newer, [20, 20, 20])):
        report["cases"][0]["variants"][0]["metrics"]["array_bytes"] = {"unit": "B", "processes": processes}
    await upload(older, newer)
    found = rows(await compare(base=reports.sha(1), head=reports.sha(2)))["unfused", "array_bytes"]
    assert (found["outcome"], found["reason"]) == ("ambiguous", "Counts differ between reports of the reference.")


VARYING = [
    (counted(9), counted(10)),
    (counted(9, 8, 10), counted(10)),
    (counted(9, 8, 10), counted(9)),
    (counted(9, 8, 9), counted(12, 10, 12)),
    (counted(20, 13, 20), counted(12, 10, 12)),
    (counted(12, 10, 12), counted(14, 12, 14)),
]


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(("older", "newer"), VARYING)
async def test_counts_that_differ_from_call_to_call_are_judged_as_in_the_terminal(
    upload, compare, reports, older, newer
):
    measured = [reports.report(1), reports.report(2)]
    for report, count in zip(measured, (older, newer), strict=True):
        report["cases"][0]["variants"][0]["metrics"]["array_bytes"] = count
    await upload(*measured)
    found = rows(await compare(base=reports.sha(1), head=reports.sha(2)))["unfused", "array_bytes"]
    assert found["outcome"] == counts_document(newer, older)["outcome"]
    assert (found["reason"] is None) == (found["outcome"] != "ambiguous")


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
async def test_counts_made_with_another_numpy_are_not_blamed_on_the_commit(upload, compare, reports, order):
    def measured(commit, numpy, machine="box"):
        told = reports.report(commit, machine=machine)
        told["machine"]["facts"] |= {"numpy": numpy, "kernel": f"6.{commit}"}
        if commit == 2:
            told["cases"][0]["variants"][1]["metrics"]["array_bytes"]["value"] = 2048.0
        return told

    numpy_at = {1: "1.26.4", 2: "2.4.0"}
    for commit in order:  # late results are as good as any
        await upload(measured(commit, numpy_at[commit]), measured(commit, "2.4.0", "another"))
    answer = await compare(base=reports.sha(1), head=reports.sha(2), metric="array_bytes")
    found = {(row["machine"], row["variant"]): row for row in answer["items"]}
    row = found["box", "fused"]
    assert row["outcome"] == "ambiguous"
    assert row["reason"].startswith("Counted with different software (numpy 1.26.4, then 2.4.0):")
    assert found["box", "unfused"]["outcome"] == "equal"
    assert found["another", "fused"]["outcome"] == "more"  # its kernel is another, which makes no arrays
    assert [answer["summary"][name] for name in ("worse", "ambiguous", "unchanged")] == [1, 1, 2]
    await upload(measured(2, "1.26.4") | {"id": str(uuid4())})  # the newest report of a commit is what counts
    answer = await compare(base=reports.sha(1), head=reports.sha(2), metric="array_bytes", machine="box")
    assert rows(answer)["fused", "array_bytes"]["outcome"] == "more"


async def test_counts_of_a_peer_are_not_blamed_on_the_commit_where_the_peer_is_another(upload, compare, reports):
    def measured(commit, autograd):
        variants = [reports.variant("unfused"), reports.variant("fused"), reports.variant("autograd")]
        for variant in variants[1:]:
            variant["metrics"]["array_bytes"]["value"] = 1000.0 * commit
        told = reports.report(commit, cases=[reports.case(variants=variants)])
        told["machine"]["facts"] |= {"autograd": autograd}
        return told

    await upload(measured(1, "1.6"), measured(2, "1.7"))
    found = rows(await compare(base=reports.sha(1), head=reports.sha(2), metric="array_bytes"))
    assert found["autograd", "array_bytes"]["outcome"] == "ambiguous"
    assert found["autograd", "array_bytes"]["reason"].startswith(
        "Counted with different software (autograd 1.6, then 1.7):"
    )
    assert found["fused", "array_bytes"]["outcome"] == "more"


async def test_counts_of_two_machines_with_different_software_are_not_blamed_on_either(upload, compare, reports):
    def measured(commit, machine, numpy, counted):
        told = reports.report(commit, machine=machine)
        told["machine"]["facts"] |= {"numpy": numpy}
        told["cases"][0]["variants"][1]["metrics"]["array_bytes"]["value"] = counted
        return told

    await upload(
        measured(1, "old", "2.1", 1024.0), measured(1, "new", "2.3", 2048.0), measured(1, "same", "2.1", 2048.0)
    )
    await upload(measured(2, "old", "2.3", 1024.0))  # it was told later, and is of another commit
    asked = {"head": reports.sha(1), "base_machine": "old", "metric": "array_bytes"}
    found = rows(await compare(**asked, head_machine="new"))
    row = found["fused", "array_bytes"]
    assert (row["outcome"], row["kind"]) == ("ambiguous", "exact")
    assert row["reason"].startswith("Counted with different software (numpy 2.1 and 2.3):")
    assert found["unfused", "array_bytes"]["outcome"] == "equal"
    assert rows(await compare(**asked, head_machine="same"))["fused", "array_bytes"]["outcome"] == "more"


async def test_every_count_is_told_with_the_software_of_its_own_report(upload, compare, reports):
    def measured(commit, numpy, *workloads, counted=1024.0):
        variants = [reports.variant("unfused"), reports.variant("fused", array_bytes=counted)]
        told = reports.report(commit, cases=[reports.case(name, variants=variants) for name in workloads])
        told["machine"]["facts"] |= {"numpy": numpy}
        return told

    await upload(
        measured(1, "1.26.4", "early", "late"),
        measured(1, "2.4.0", "late"),  # one of the cases again, with the NumPy of the next commit
        measured(2, "2.4.0", "early", "late", counted=2048.0),
    )
    answer = await compare(base=reports.sha(1), head=reports.sha(2), metric="array_bytes", variant="fused")
    assert {row["case"]["workload"]: row["outcome"] for row in answer["items"]} == {
        "early": "ambiguous",
        "late": "more",
    }


async def test_a_wrong_gradient_in_another_report_leaves_no_claim(upload, compare, reports):
    wrong = {"ok": False, "max_rel_error": 3.0, "oracle": "closed form"}
    await upload(
        reports.report(1),
        reports.report(2, comparisons=[statement(reports)]),
        reports.report(2, cases=[reports.case(gradient=wrong)]),
    )
    for ends in ({"base": reports.sha(1), "head": reports.sha(2)}, {"base": reports.sha(2), "head": reports.sha(1)}):
        found = rows(await compare(**ends))
        assert {row["outcome"] for row in found.values()} == {"ambiguous"}
        assert all("The gradient was wrong against closed form" in row["reason"] for row in found.values())


async def test_a_time_that_nobody_measured_is_no_count(upload, compare, reports):
    said = statement(reports, outcome="less", log_ratio=-0.1, low=None, high=None)
    await upload(reports.report(1, cases=[]), reports.report(2, cases=[], comparisons=[said]))
    (row,) = (await compare(base=reports.sha(1), head=reports.sha(2)))["items"]
    assert (row["outcome"], row["reason"]) == (
        "ambiguous",
        "The upload states less for a value that was measured, not counted.",
    )


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(
    ("asked", "status", "said"),
    [
        ({"head": "nowhere"}, 404, "neither a commit nor a branch"),
        ({"head": "main", "base": "main"}, 422, "there is nothing to compare"),
        ({"head": "main", "merge_base": True}, 422, "give `base` too"),
        ({"head": "main", "project": "nothing"}, 404, "'nothing'"),
        ({"base": "main"}, 422, "query.head"),
        ({"head": "main", "base": f"{1:040x}", "outcome": "slow"}, 422, "query.outcome"),
        ({"head": "main", "base": f"{1:040x}", "cursor": "x"}, 422, "Invalid cursor"),
        ({"head": f"{1:040x}"}, 404, "Nothing was measured before commit"),
    ],
)
async def test_what_does_not_hold_is_refused(upload, compare, reports, asked, status, said):
    await upload(reports.report(1), reports.report(2))
    assert said in str(await compare(status=status, **asked))


async def test_a_project_is_needed(client):
    response = await client.get(URL, params={"head": "main"})
    assert (response.status_code, response.json()["errors"][0]["path"]) == (422, "query.project")


async def test_commits_without_a_common_ancestor_are_not_held_against_one(upload, compare, reports):
    alone = reports.report(4)
    alone["commit"] |= {"sha": reports.sha(104), "branch": "topic", "parents": []}
    older = reports.report(1)
    older["commit"] |= {"parents": []}
    await upload(older, alone)
    assert "No common ancestor" in (await compare(status=422, base="main", head="topic", merge_base=True))["detail"]


async def test_too_many_results_are_refused(upload, compare, reports, monkeypatch):
    monkeypatch.setattr("pullback_service.comparisons.columns.MOST_COMPARED_READINGS", 7)
    await upload(reports.report(1), reports.report(2))
    problem = await compare(status=422, base=reports.sha(1), head=reports.sha(2))
    assert "narrow the comparison" in problem["detail"]
    assert len((await compare(base=reports.sha(1), head=reports.sha(2), metric="time"))["items"]) == 2


async def test_of_too_many_results_none_is_read(upload, session, reports, monkeypatch):
    monkeypatch.setattr("pullback_service.comparisons.columns.MOST_COMPARED_READINGS", 7)
    await upload(reports.report(1), reports.report(2))
    ids = await session.scalars(select(Commit.id))
    given = readings_at_two(*ids, [])
    async with statements.together(session, **given) as ask:
        number, readings = ask(replace(given["number"].given_as("number"), read=list)), ask(numbers_given(given["few"]))
    assert (number.value, readings.value) == ([(8,)], {})


async def test_an_unchanged_comparison_is_not_sent_again(client, upload, reports):
    await upload(reports.report(1), reports.report(2))
    url = f"{URL}?project=demo&base={reports.sha(1)}&head={reports.sha(2)}"
    tag = (await client.get(url)).headers["etag"]
    assert (await client.get(url, headers={"If-None-Match": tag})).status_code == 304
    await upload(reports.report(3, comparisons=[statement(reports)]))
    assert (await client.get(url, headers={"If-None-Match": tag})).status_code == 200


async def test_all_at_once_and_one_by_one_are_the_same(upload, session, reports, monkeypatch):
    older, newer, again = reports.report(1), reports.report(2), reports.report(2, quality="busy")
    older["cases"] = [reports.case(name) for name in ("a", "counts", "gone", "method", "several", "stated")]
    newer["cases"] = [reports.case(name) for name in ("a", "counts", "method", "new", "several", "stated")]
    wrong = {"ok": False, "max_rel_error": 3.0, "oracle": "closed form"}
    again["cases"] = [reports.case("several", log_ratio=-0.4), reports.case("counts", gradient=wrong)]
    broken = reports.report(2)
    broken["cases"] = [reports.case("gone", error={"kind": "workload", "message": "broke"}, variants=[], paired=[])]
    newer["cases"][1]["variants"][1]["metrics"]["array_bytes"]["value"] = 2048.0
    newer["cases"][2]["variants"][0]["metrics"]["array_bytes"]["method"] = "another"
    newer["cases"][0]["variants"][0]["metrics"]["array_bytes"] = {"unit": "B", "processes": [1.0, 2.0, 3.0]}
    newer["comparisons"] = [{**statement(reports), "case": newer["cases"][5]["case"]}]
    await upload(older, newer, again, broken)
    pair = await compared_commits.find_compared_commits(
        session, ProjectId(1), reports.sha(1), reports.sha(2), merge_base=False
    )
    asked = (session, pair.reference.commit, pair.candidate.commit, SeriesChoice(project="demo"))
    quick = (await queries.compare(*asked)).outcomes
    unusual, few = queries._unusual, []

    def all_one_by_one(judged, by_numbers):
        few.append(len(unusual(judged, by_numbers)))
        return np.arange(len(judged.outcomes))

    monkeypatch.setattr(queries, "_unusual", all_one_by_one)
    slow = (await queries.compare(*asked)).outcomes
    # With a wrong gradient, failed: four series each; by another method, stated, counted unlike: one.
    assert (len(quick), few) == (28, [11])
    for column in ("series_id", "shape", "outcome", "evidence", "log_ratio", "has_reference", "has_candidate", "tie"):
        np.testing.assert_array_equal(getattr(quick, column), getattr(slow, column))
    shown = await queries.show(session, await queries.compare(*asked), quick)
    assert [each.compared.judgement.outcome for each in shown] == [OUTCOMES[code] for code in quick.outcome]


async def test_a_comparison_takes_a_fixed_number_of_statements(client, upload, session, count_statements, reports):
    cases = [reports.case(f"workload {index}") for index in range(10)]
    await upload(reports.report(1, cases=cases), reports.report(2, cases=cases))
    async with count_statements() as statements:
        pair = await compared_commits.find_compared_commits(
            session, ProjectId(1), reports.sha(1), reports.sha(2), merge_base=False
        )
        commits = pair.reference.commit, pair.candidate.commit
        judged = await queries.compare(session, *commits, SeriesChoice(project="demo"))
        shown = await queries.show(session, judged, judged.outcomes[:5])
    assert (len(judged.outcomes), len(shown)) == (40, 5)
    # Both commits by name; the project; everything that judges them; the page in full.
    assert len(statements) == 4


async def test_two_machines_are_held_against_each_other_at_one_commit(client, upload, compare, reports):
    new = reports.report(1, machine="new")
    new["cases"][0]["variants"][1]["metrics"]["array_bytes"]["value"] = 2048.0
    await upload(reports.report(1, machine="old"), new, reports.report(1, machine="third"))
    answer = await compare(head="main", base_machine="old", head_machine="new")
    sides = answer["reference"], answer["candidate"]
    assert [side["sha"] for side in sides] == [reports.sha(1)] * 2
    assert [(side["machine"], side["machine_fingerprint"], side["series"]) for side in sides] == [
        ("old", "fingerprint of old", 4),
        ("new", "fingerprint of new", 4),
    ]
    found = rows(answer)
    assert {row["machine"] for row in answer["items"]} == {"new"}
    counted, apart = found["fused", "array_bytes"], found["fused", "time"]
    assert (counted["outcome"], counted["reference"]["value"], counted["candidate"]["value"]) == ("more", 1024, 2048)
    assert apart["outcome"] == "ambiguous"
    assert "two machines" in apart["reason"]
    assert answer["summary"]["series"] == 4
    narrowed = await compare(head="main", base_machine="old", head_machine="new", metric="array_bytes", outcome="more")
    assert [row["variant"] for row in narrowed["items"]] == ["fused"]
    by_print = await compare(head="main", base_machine="fingerprint of old", head_machine="fingerprint of new")
    assert by_print["items"] == answer["items"]


async def test_two_machines_are_compared_as_a_file_too(client, upload, compare, reports):
    await upload(reports.report(1, machine="old"), reports.report(1, machine="new"))
    asked = {"project": "demo", "head": "main", "base_machine": "old", "head_machine": "new", "format": "csv"}
    table = [*csv.DictReader(io.StringIO((await client.get(URL, params=asked)).text))]
    assert {(row["reference_machine"], row["machine"]) for row in table} == {("old", "new")}
    assert {row["reference_machine_fingerprint"] for row in table} == {"fingerprint of old"}
    await upload(reports.report(2, machine="new"))
    two_commits = {"project": "demo", "head": reports.sha(2), "head_machine": "new", "format": "csv"}
    table = [*csv.DictReader(io.StringIO((await client.get(URL, params=two_commits)).text))]
    assert {(row["reference_machine"], row["machine"]) for row in table} == {("new", "new")}


async def test_one_machine_alone_chooses_its_series(upload, compare, reports):
    await upload(*(reports.report(commit, machine=machine) for commit in (1, 2) for machine in ("old", "new")))
    for asked in ({"head_machine": "new"}, {"head_machine": "new", "base_machine": "new"}):
        answer = await compare(head=reports.sha(2), **asked)
        assert (answer["reference"]["sha"], answer["reference"]["machine"]) == (reports.sha(1), None)
        assert {row["machine"] for row in answer["items"]} == {"new"}


async def test_machines_that_cannot_be_compared_are_told_so(upload, compare, reports):
    other = reports.report(1, machine="old")
    other["machine"]["fingerprint"] = "another"
    await upload(reports.report(1, machine="old"), other, reports.report(1, machine="new"))
    alone = await compare(422, head="main", base_machine="old")
    assert (alone["errors"][0]["path"], "give head_machine too" in alone["detail"]) == (
        "query.head_machine",
        True,
    )
    both = await compare(422, head="main", base_machine="old", head_machine="new")
    assert both["detail"] == "2 machines are called 'old': give the host or the class of one."
    unknown = await compare(404, head="main", base_machine="nowhere", head_machine="new")
    assert "No machine 'nowhere' has results in this project" in unknown["detail"]
