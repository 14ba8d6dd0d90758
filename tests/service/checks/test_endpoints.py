"""A commit against its merge base, over HTTP."""

import copy

import pytest

pytestmark = pytest.mark.anyio

URL = "/api/v1/checks"
CASE = {"workload": "dense_bias_act", "params": {"n": 100, "act": "tanh"}, "dtype": "f4", "device": "cpu"}
BASE, HEAD = 2, 104
"""main has the commits 1 and 2, and the branch topic branched off at 2."""


@pytest.fixture
def upload(client):
    async def upload(*reports):
        for report in reports:
            response = await client.post("/api/v1/reports", json=report)
            assert response.status_code == 201, response.text

    return upload


@pytest.fixture
def check(client, reports):
    async def check(status=200, **asked):
        asked = {"project": "demo", "head": reports.sha(HEAD), "base": "main"} | asked
        response = await client.get(URL, params={name: value for name, value in asked.items() if value is not None})
        assert response.status_code == status, response.text
        return response.json()

    return check


@pytest.fixture
def head(reports):
    """Make a report at the head of the branch."""

    def head(**changes):
        report = reports.report(4, **changes)
        report["commit"] |= {"sha": reports.sha(HEAD), "branch": "topic", "parents": [reports.sha(BASE)]}
        return report

    return head


@pytest.fixture
def enroll(client):
    """Let an agent appear, and say where commits of the project come from."""

    async def enroll(labels=None, repository="https://git.example/demo"):
        told = {"name": "agent", "labels": labels or {}, "machine": {"fingerprint": "f", "name": "bench"}}
        assert (await client.post("/api/v1/agents/enroll", json=told)).status_code == 201
        changed = await client.patch("/api/v1/projects/demo", json={"repository": repository})
        assert changed.status_code == 200, changed.text

    return enroll


def statement(reports, **said):
    told = {"variant": "fused", "metric": "time", "log_ratio": 0.05, "low": 0.04, "high": 0.06, "n": 20}
    return {
        "case": CASE, "reference": reports.sha(BASE), "candidate": reports.sha(HEAD), "outcome": "slower",
        "claim": 0.01, "margin": 0.01, "margin_is_provisional": False, **told, **said,
    }  # fmt: skip


def kinds(answer):
    return [(each["kind"], each["variant"], each["metric"]) for each in answer["findings"]]


def counted(answer):
    return {name: count for name, count in answer["counts"].items() if count and name not in {"compared", "unchanged"}}


async def test_a_head_is_held_against_its_merge_base_and_not_against_the_newest(upload, check, head, reports):
    later = reports.report(3)
    later["cases"][0]["variants"][1]["metrics"]["array_bytes"]["value"] = 1.0
    await upload(reports.report(1), reports.report(BASE), later, head())
    answer = await check()
    assert (answer["head"]["sha"], answer["base"]["sha"]) == (reports.sha(HEAD), reports.sha(BASE))
    assert (answer["base"]["branch"], answer["against"]) == ("main", "main")
    assert (counted(answer), answer["lacks"], answer["notes"]) == ({}, [], [])
    assert answer["counts"]["unchanged"] == 2
    assert (await check(base=None))["base"] == answer["base"]  # main is what stands for the base
    assert (await check(base=reports.sha(3)))["base"]["sha"] == reports.sha(BASE)


async def test_the_trunk_is_the_usual_base(client, upload, check, head, reports):
    old = reports.report(BASE)
    old["commit"]["branch"] = "develop"
    await upload(old, head())
    assert (await check(base=None))["against"] == "develop"  # the first branch, for there is neither main nor master
    policy = {"branch": "release", "suite": "quick"}
    assert (await client.patch("/api/v1/projects/demo", json={"backfill": policy})).status_code == 200
    assert (await check(404, base=None))["errors"][0]["path"] == "query.base"
    assert (await client.patch("/api/v1/projects/demo", json={"trunk": "develop"})).status_code == 200
    assert (await check(base=None))["against"] == "develop"


async def test_pairs_counts_and_likely_changes_are_findings_with_their_evidence(upload, check, head, reports):
    slower = reports.case("other", log_ratio=-0.2)
    newer = head(cases=[reports.case(), slower], comparisons=[statement(reports)])
    newer["cases"][0]["variants"][1]["metrics"]["array_bytes"]["value"] = 2048.0
    await upload(reports.report(BASE, cases=[reports.case(), reports.case("other")]), newer)
    answer = await check()
    assert kinds(answer) == [
        ("regression", "fused", "array_bytes"),
        ("regression", "fused", "time"),
        ("likely", "fused", "time"),
    ]
    assert counted(answer) == {"regression": 2, "likely": 1}
    memory, time, likely = answer["findings"]
    assert (memory["base"], memory["head"], memory["evidence"]) == (1024, 2048, "exact")
    assert (time["log_ratio"], time["low"], time["high"], time["n"]) == (0.05, 0.04, 0.06, 20)
    assert (likely["outcome"], likely["evidence"], likely["workload"]) == ("likely_slower", "ratios", "other")
    assert answer["counts"]["compared"] == 8


async def test_what_any_line_of_python_changes_is_no_regression(upload, check, head, reports):
    said = statement(reports, metric="python_allocs", log_ratio=0.5, low=None, high=None, n=None, outcome="more")
    await upload(reports.report(BASE), head(comparisons=[said]))
    assert counted(await check()) == {}


async def test_times_beside_the_one_that_decides_fail_nothing(upload, check, head, reports):
    base, newer = reports.report(BASE), head()
    for document, seconds in ((base, 1e-3), (newer, 2e-3)):
        metrics = document["cases"][0]["variants"][1]["metrics"]
        for name in ("device_time", "host_time", "time_cold"):
            metrics[name] = {"unit": "s", "method": "events", "processes": [seconds] * 6}
    await upload(base, newer)
    assert counted(await check()) == {}


@pytest.mark.sample(every=2)
@pytest.mark.parametrize(("driver", "found"), [("570.86.15", {"likely": 1}), ("580.1", {})])
async def test_another_driver_of_a_device_is_another_level_and_no_commit_is_blamed(
    upload, check, head, reports, driver, found
):
    base, newer = (
        reports.report(BASE, cases=[reports.case("other")]),
        head(cases=[reports.case("other", log_ratio=-0.2)]),
    )
    for document, version in ((base, "570.86.15"), (newer, driver)):
        for variant in document["cases"][0]["variants"]:
            variant["metrics"]["time"]["method"] = f"wall, driver {version}, torch 2.7.0"
    await upload(base, newer)
    assert counted(await check()) == found


async def test_better_is_told_and_fails_nothing(upload, check, head, reports):
    newer = head(comparisons=[statement(reports, log_ratio=-0.05, low=-0.06, high=-0.04, outcome="faster")])
    newer["cases"][0]["variants"][1]["metrics"]["array_bytes"]["value"] = 512.0
    await upload(reports.report(BASE), newer)
    assert counted(await check()) == {"better": 2}


async def test_a_variant_that_the_same_suite_did_not_measure_is_missing(upload, check, head, reports):
    await upload(
        reports.report(BASE, cases=[reports.case(), reports.case("gone")]),
        head(cases=[reports.case(variants=[reports.variant("unfused")], paired=[])]),
    )
    answer = await check()
    assert sorted((each["workload"], each["variant"], each["kind"]) for each in answer["findings"]) == [
        ("dense_bias_act", "fused", "missing"),
        ("gone", "fused", "missing"),
        ("gone", "unfused", "missing"),
    ]
    assert {each["reason"] for each in answer["findings"]} == {"The same suite ran on this machine without it."}
    assert answer["counts"]["missing"] == 3


@pytest.mark.sample(every=2)
@pytest.mark.parametrize(
    "other", [{"machine": "another"}, {"harness": {"version": "0.1", "suite": "trial", "quality": "clean"}}]
)
async def test_nothing_is_missing_where_another_suite_or_machine_measured(upload, check, head, reports, other):
    base = reports.report(BASE, cases=[reports.case(), reports.case("gone")], **other)
    await upload(base, reports.report(BASE), head())
    assert counted(await check()) == {}


async def test_what_fails_at_the_head_is_missing_with_its_reason(upload, check, head, reports):
    broken = reports.case(error={"kind": "workload", "message": "broke"}, variants=[], paired=[])
    await upload(
        reports.report(BASE, cases=[reports.case(), reports.case("b")]), head(cases=[broken, reports.case("b")])
    )
    answer = await check()
    assert {(each["kind"], each["reason"]) for each in answer["findings"]} == {("missing", "broke")}
    assert answer["counts"]["missing"] == 2


async def test_a_wrong_gradient_is_found_once_and_also_in_a_new_case(upload, check, head, reports):
    wrong = {"ok": False, "max_rel_error": 0.5, "oracle": "closed form"}
    await upload(
        reports.report(BASE),
        head(cases=[reports.case(gradient=wrong), reports.case("new", gradient=wrong)]),
    )
    answer = await check()
    assert sorted((each["workload"], each["kind"]) for each in answer["findings"]) == [
        ("dense_bias_act", "wrong-gradient"),
        ("new", "wrong-gradient"),
    ]
    assert counted(answer) == {"wrong_gradient": 2}
    assert "closed form" in answer["findings"][0]["reason"]


async def test_a_gradient_that_was_wrong_before_or_at_the_reference_is_not_the_head_s(upload, check, head, reports):
    wrong = {"ok": False, "max_rel_error": 0.5, "oracle": "closed form"}
    failed = {**reports.variant("fused"), "metrics": {}}
    failed["error"] = {"kind": "gradient", "message": "reference: the gradient is wrong"}
    compared = reports.case("b", variants=[reports.variant("unfused"), failed], paired=[])
    await upload(
        reports.report(BASE, cases=[reports.case(gradient=wrong), reports.case("b")]),
        head(cases=[reports.case(gradient=wrong), compared]),
    )
    answer = await check()
    assert counted(answer) == {}


async def test_ambiguous_is_what_was_measured_in_turns_and_stayed_so(upload, check, head, reports):
    said = [statement(reports, log_ratio=0.02, low=-0.01, high=0.05, outcome="ambiguous")]
    await upload(reports.report(BASE), head(comparisons=said))
    answer = await check()
    assert kinds(answer) == [("ambiguous", "fused", "time")]  # and not unfused, of which nobody measured pairs
    assert answer["findings"][0]["reason"]


async def test_equal_code_changes_nothing_whatever_differs(upload, check, head, reports, enroll):
    def of_code(report):
        for variant in report["cases"][0]["variants"]:
            variant["digests"] = {"workload": "w" * 64, "subject": "s" * 64, "code": None}
        return report

    newer = of_code(head())
    newer["cases"][0]["variants"][1]["metrics"]["array_bytes"]["value"] = 2048.0
    newer["cases"][0]["paired"][0] |= {"log_ratio": 0.4, "low": 0.39, "high": 0.41, "outcome": "slower"}
    await upload(of_code(reports.report(BASE)), newer)
    await enroll()
    answer = await check()
    assert (answer["equal_code"], counted(answer), answer["wants_job"]) == (True, {}, False)


async def test_a_base_without_results_is_not_enough_and_no_other_takes_its_place(client, upload, check, head, reports):
    await upload(reports.report(1), head())
    told = [{"sha": reports.sha(BASE), "parents": [reports.sha(1)]}, {"sha": reports.sha(1)}]
    log = {"project": "demo", "branch": "main", "commits": told}
    assert (await client.post("/api/v1/commits", json=log)).status_code == 200
    answer = await check()
    (lack,) = answer["lacks"]
    assert (answer["base"]["sha"], answer["base"]["series"], counted(answer)) == (reports.sha(BASE), 0, {})
    assert reports.sha(BASE) in lack
    assert f"Its nearest ancestor with results is {reports.sha(1)}" in lack


async def test_other_machines_only_are_not_enough(upload, check, head, reports):
    await upload(reports.report(BASE, machine="old"), head(machine="new"))
    (lack,) = (answer := await check())["lacks"]
    assert "(on old)" in lack
    assert "(on new)" in lack
    assert answer["counts"]["compared"] == 0


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(
    ("releases", "lacks", "notes"),
    [
        ("1111", 0, ""),
        (
            "1112",
            0,
            "Not compared: 1 of 4 series of the base, 0 of them not measured at the head, 1 on other machines or",
        ),
        (
            "11",
            0,
            "Not compared: 2 of 4 series of the base, 2 of them not measured at the head, 0 on other machines or",
        ),
        ("1122", 0, "Not compared: 2 of 4 series of the base"),
        ("1222", 1, ""),
    ],
)
async def test_what_does_not_compare_is_counted_and_most_of_it_is_not_enough(
    upload, check, head, reports, releases, lacks, notes
):
    """Another tool measured four series, some of them by another release of it at the head."""

    def measured(releases):
        for number, release in enumerate(releases):
            lib = {**reports.variant("lib"), "kind": "external"}
            lib["metrics"] = {"time": lib["metrics"]["time"] | {"method": f"release {release}"}}
            yield reports.case(f"w{number}", variants=[lib], paired=[])

    part = {"version": "0.1", "suite": "quick", "partial": True}
    await upload(reports.report(BASE, cases=[*measured("1111")]), head(cases=[*measured(releases)], harness=part))
    answer = await check()
    assert (len(answer["lacks"]), " ".join(answer["notes"])[: len(notes) or None]) == (lacks, notes)
    assert all("3 of 4 series that both commits have cannot be compared" in each for each in answer["lacks"])


async def test_what_compares_on_one_machine_is_compared_whatever_others_measured(upload, check, head, reports):
    await upload(
        reports.report(BASE), reports.report(BASE, machine="small"), reports.report(BASE, machine="old"), head()
    )
    answer = await check()
    assert (answer["lacks"], answer["notes"]) == ([], [])


@pytest.mark.long
async def test_machines_that_disagree_are_both_named(upload, check, head, reports):
    one, other = head(comparisons=[statement(reports)]), head(machine="small")
    other["comparisons"] = [statement(reports, log_ratio=0.0, low=-0.005, high=0.005, outcome="same")]
    await upload(reports.report(BASE), reports.report(BASE, machine="small"), one, other)
    (found,) = (await check())["findings"]
    assert (found["kind"], found["machine"]) == ("regression", "box")
    assert found["elsewhere"] == [{"machine": "small", "outcome": "same", "evidence": "paired"}]


async def test_a_commit_of_the_base_is_held_against_its_parent(upload, check, reports):
    await upload(reports.report(1), reports.report(2))
    answer = await check(head=reports.sha(2))
    assert answer["base"]["sha"] == reports.sha(1)
    assert answer["notes"] == [
        f"Commit {reports.sha(2)} is on 'main' already, so it is compared with its first parent."
    ]
    assert "first parent" in (await check(head=reports.sha(1)))["lacks"][0]


async def test_commits_without_a_common_ancestor_are_not_enough(upload, check, head, reports):
    stranger = head()
    stranger["commit"]["parents"] = []
    await upload(reports.report(BASE), stranger)
    answer = await check()
    assert answer["base"] is None
    assert "pullback log" in answer["lacks"][0]


async def test_an_unknown_commit_is_404_with_how_to_tell_it(upload, check, reports):
    await upload(reports.report(BASE))
    problem = await check(404)
    assert [each["path"] for each in problem["errors"]] == ["query.head"]
    assert "pullback log" in problem["detail"]
    assert (await check(404, head="main", base="mian"))["errors"][0]["path"] == "query.base"
    assert "errors" not in await check(404, project="other")


async def test_a_job_is_proposed_where_an_agent_can_measure_and_nobody_asked(
    client, upload, check, head, reports, enroll
):
    await upload(reports.report(BASE), head())
    answer = await check()
    assert (answer["can_measure"], answer["wants_job"], answer["not_in_turns"]) == (False, False, 2)
    await enroll(labels={"device": "cuda"})
    assert not (await check())["can_measure"]
    await enroll()
    answer = await check()
    assert (answer["can_measure"], answer["wants_job"], answer["suite"]) == (True, True, "quick")
    assert (await check(suite="standard"))["suite"] == "standard"
    wanted = {
        "project": "demo", "commit": {"sha": reports.sha(HEAD)}, "reference": {"sha": reports.sha(BASE)},
        "kind": "compare", "suite": "quick",
    }  # fmt: skip
    job = (await client.post("/api/v1/jobs", json=wanted)).json()
    answer = await check()
    assert not answer["wants_job"]
    assert (await check(suite="standard"))["wants_job"]
    assert [(each["id"], each["state"]) for each in answer["jobs"]] == [(job["id"], "queued")]
    await client.post(f"/api/v1/jobs/{job['id']}/cancel")
    assert (await check())["wants_job"]
    await client.post("/api/v1/jobs", json={**wanted, "cases": ["dense*", "lstm*"], "variants": ["fused"]})
    assert (await check())["wants_job"]  # a job of some cases, as incidents have them, measures less than is asked for
    narrowed = await check(case=["lstm*", "dense*"], variant="fused")
    assert (narrowed["wants_job"], narrowed["not_in_turns"]) == (False, 1)
    assert (await check(case="dense*", variant="unfused"))["wants_job"]
    assert (await check(case="lstm*"))["not_in_turns"] == 0
    assert (await check(case="dense_bias_act[n=*"))["not_in_turns"] == 2


def of_device(device, document):
    """The same report, measured on a device."""
    document = copy.deepcopy(document)
    for each in (*document["cases"], *document["comparisons"]):
        each["case"]["device"] = device
    return document


@pytest.mark.long
async def test_each_device_gets_a_job_of_its_own_where_an_agent_has_it(client, upload, check, head, reports, enroll):
    for device in ("cpu", "cuda"):
        await upload(of_device(device, reports.report(BASE)), of_device(device, head()))
    await enroll()
    answer = await check()
    assert (answer["not_in_turns"], answer["wants_job_on"]) == (4, ["cpu"])
    wanted = {
        "project": "demo", "commit": {"sha": reports.sha(HEAD)}, "reference": {"sha": reports.sha(BASE)},
        "kind": "compare", "suite": "quick",
    }  # fmt: skip
    await client.post("/api/v1/jobs", json=wanted)
    answer = await check()
    assert (answer["wants_job"], answer["wants_job_on"]) == (False, [])
    await enroll(labels={"device": "cuda"})
    answer = await check()
    assert (answer["wants_job"], answer["wants_job_on"]) == (True, ["cuda"])
    assert (await check(case="dense_bias_act[n=100,act=tanh,f4,cpu]"))["wants_job_on"] == []
    await client.post("/api/v1/jobs", json={**wanted, "requires": {"device": "cuda"}})
    answer = await check()
    assert (answer["wants_job_on"], {each["device"] for each in answer["jobs"]}) == ([], {"cpu", "cuda"})


async def test_findings_name_the_device_and_what_another_device_measured_is_not_missed(upload, check, head, reports):
    """The GPU's agent measured the base; only the CPU's has measured the head so far."""
    await upload(reports.report(BASE), of_device("cuda", reports.report(BASE)), head())
    assert counted(await check()) == {}
    slower = head(comparisons=[statement(reports)], cases=[reports.case("another")])
    await upload(of_device("cuda", slower))
    answer = await check()
    found = {(each["kind"], each["device"], each["case"]) for each in answer["findings"]}
    case = "dense_bias_act[n=100,act=tanh,f4,cuda]"
    assert found == {("regression", "cuda", case), ("missing", "cuda", case)}


@pytest.mark.long
async def test_no_job_is_proposed_for_what_was_measured_in_turns_or_by_another_tool(
    upload, check, head, reports, enroll
):
    pairs = [
        statement(reports, variant=variant, log_ratio=0.0, low=-0.005, high=0.005, outcome="same")
        for variant in ("fused", "unfused")
    ]
    await upload(reports.report(BASE), reports.report(BASE, machine="ci"), head(comparisons=pairs), head(machine="ci"))
    await enroll()
    assert ((await check())["not_in_turns"], (await check())["wants_job"]) == (0, False)  # on another machine is enough
    external = {**reports.variant("lib"), "kind": "external"}
    case = reports.case("theirs", variants=[external], paired=[])
    await upload(reports.report(BASE, cases=[case]), head(cases=[case]))
    assert ((await check())["not_in_turns"], (await check())["wants_job"]) == (0, False)
