"""A commit with several reports says one thing, on whichever page: what its reports say, pooled.

Over the real application; no browser is needed for that.
"""

import csv
import io
import math
import time
import uuid
from statistics import median
from urllib.parse import quote

import httpx
import pytest
from tests.dashboards.browser.conftest import CASES, SHAS, fresh_database, made_report, serving
from tests.dashboards.browser.test_formats import text_of

CASE = "dense_bias_act[n=100,act=tanh,f4,cpu]"
OTHER_SOFTWARE = (
    "Counted with different software (numpy 2.3.4, then 2.4.0): count both commits in one installation to know."
)


@pytest.fixture(scope="module")
def address(postgres_server, migrated_template):
    """A service of its own."""
    with serving(fresh_database(postgres_server, migrated_template)) as address:
        yield address


@pytest.fixture
def upload(address):
    """Uploads a report of `fused` at a commit, of a project of this test's own, whose name it has."""

    def upload(
        place, *, quality="clean", numpy="2.3.4", ratio=0.5, doubt=0.001, groups=20, processes=None, array_bytes=600, baseline=1000,
        variants=("unfused", "fused"), counts=True, case=CASES[0], machine=None,
    ):  # fmt: skip
        report = made_report(place, project=upload.project, cases=[case])
        if machine is not None:
            report["machine"] |= {"name": machine, "fingerprint": f"sha256:{machine}"}
        report["id"] = str(
            uuid.UUID(int=time.time_ns() << 64 | uuid.uuid4().int & (1 << 64) - 1)
        )  # the later one is higher
        report["harness"]["quality"] = quality
        report["machine"]["facts"]["numpy"] = numpy
        (case,) = report["cases"]
        case["variants"] = [variant for variant in case["variants"] if variant["variant"] in variants]
        case["paired"] = []
        for variant in case["variants"]:
            variant["program_hash"] = None  # of equal programs nothing is likely
            counted = baseline if variant["variant"] == "unfused" else array_bytes
            seconds = [
                100e-6 * (1 if variant["variant"] == "unfused" else ratio or 0.5) * (1 + n / 1000) for n in range(9)
            ]
            timed = variant["metrics"]["time"] | {"processes": processes or seconds, "slices": None}
            variant["metrics"] = {
                "time": {name: value for name, value in timed.items() if value is not None},
                **({"array_bytes": {"unit": "B", "value": counted, "method": "nep49"}} if counts else {}),
            }
        if ratio is not None and "fused" in variants:
            log = math.log(ratio)
            case["paired"] = [
                {
                    "variant": "fused", "baseline": "unfused", "metric": "time", "log_ratio": log, "low": log - doubt,
                    "high": log + doubt, "n": groups, "outcome": "faster" if ratio < 1 else "slower",
                }
            ]  # fmt: skip
        httpx.post(f"{address}/api/v1/reports", json=report).raise_for_status()
        return report["id"]

    upload.project = f"several-{uuid.uuid4().hex[:8]}"
    return upload


@pytest.fixture
def ask(address, upload):
    """Asks for an address of the project; `{project}` stands for its name."""

    def ask(path, **asked):
        answer = httpx.get(address + path.format(project=upload.project), params=asked)
        answer.raise_for_status()
        return answer

    return ask


def rows_of(answer):
    return list(csv.DictReader(io.StringIO(answer.text)))


def overview(ask, upload, metric):
    """The cells of the overview, by variant."""
    return {row["variant"]: row for row in rows_of(ask("/overview.csv", project=upload.project, metric=metric))}


def news(ask, upload):
    return ask("/overview.json", project=upload.project).json()["news"]


def test_every_page_says_what_the_clean_reports_say_whichever_came_last(upload, ask):
    upload(1, ratio=0.4, groups=20, processes=[1.0, 5.0], array_bytes=300)
    upload(1, ratio=0.6, groups=5, processes=[2.0, 3.0, 9.0], array_bytes=200)
    upload(1, ratio=2.0, groups=40, processes=[80.0], array_bytes=9000, baseline=10, quality="busy")
    timed, counted = overview(ask, upload, "time"), overview(ask, upload, "array_bytes")
    assert float(timed["unfused"]["value"]) == float(timed["fused"]["value"]) == median([1.0, 2.0, 3.0, 5.0, 9.0])
    assert (float(timed["fused"]["factor"]), timed["fused"]["outcome"]) == (pytest.approx(0.4), "faster")
    assert (float(counted["unfused"]["value"]), float(counted["fused"]["value"])) == (1000, 200)
    assert (float(counted["fused"]["factor"]), counted["fused"]["outcome"]) == (pytest.approx(0.2), "less")
    workload = rows_of(ask("/projects/{project}/workloads/dense_bias_act.csv", case=CASE))
    explored = rows_of(ask("/projects/{project}/explore.csv"))
    for told in (workload, explored):
        for row in told:
            cell = (timed if row["metric"] == "time" else counted)[row["variant"]]
            assert float(row["value"]) == float(cell["value"])
            if row["factor"]:
                assert (row["factor"], row["outcome"]) == (cell["factor"], cell["outcome"])


@pytest.mark.parametrize(
    "newest",
    [{"quality": "busy", "ratio": 3.0}, {"ratio": None}, {"ratio": 3.0, "groups": 5}],
    ids=["busy", "without a ratio", "of fewer groups"],
)
def test_a_spark_line_tells_the_ratio_that_stands_for_all(upload, ask, newest):
    upload(1, ratio=0.5)
    upload(1, **newest)
    upload(2, ratio=0.5)
    heat = ask("/overview.json", project=upload.project, metric="time").json()["heat"]
    (cell,) = [
        cell for group in heat["groups"] for row in group["rows"] for cell in row["cells"] if cell["variant"] == "fused"
    ]
    assert [tick["log_ratio"] for tick in cell["ticks"]] == pytest.approx([math.log(0.5)] * 2)


@pytest.mark.parametrize(
    "between",
    [{"quality": "busy", "ratio": 0.55, "doubt": 0.12}, {"ratio": None}],
    ids=["busy", "without a ratio"],
)
def test_a_step_is_news_whatever_was_measured_beside_it(upload, ask, between):
    upload(1, ratio=0.5)
    upload(1, **between)
    upload(2, ratio=0.6)
    assert [item["text"] for item in news(ask, upload)] == ["likely 20 % slower: time against unfused 0.50× → 0.60×"]
    rows = rows_of(ask("/overview.csv", project=upload.project, changed="1"))
    assert {row["variant"] for row in rows} == {"unfused", "fused"}


def since_of(ask):
    """What the table of the workload and its events tell of the newest commit."""
    answer = ask("/projects/{project}/workloads/dense_bias_act.json", case=CASE).json()
    (mark,) = [row["marks"]["fused array_bytes"] for row in answer["view"]["rows"] if row["place"] == 1]
    (event,) = answer["view"]["events"]
    return (mark["since_tone"], mark["since_reason"]), (event["tone"], event["sentences"])


def test_a_busy_report_of_other_software_excuses_no_count(upload, ask):
    upload(1, array_bytes=50)
    upload(2, array_bytes=60)
    upload(2, array_bytes=60, numpy="2.4.0", quality="busy")
    (item,) = news(ask, upload)
    assert (item["tone"], item["note"]) == ("worse", "")
    mark, (tone, sentences) = since_of(ask)
    assert mark == ("worse", "")
    assert (tone, len(sentences)) == ("worse", 1)


def test_a_busy_report_of_the_same_software_blames_no_commit(upload, ask):
    upload(1, array_bytes=50)
    counted = upload(2, array_bytes=60, numpy="2.4.0")
    upload(2, array_bytes=60, quality="busy")
    (item,) = news(ask, upload)
    assert (item["tone"], item["note"]) == ("unsure", OTHER_SOFTWARE)
    mark, (tone, sentences) = since_of(ask)
    assert mark == ("unsure", OTHER_SOFTWARE)
    assert (tone, sentences[0]) == ("unsure", OTHER_SOFTWARE)
    marks = ask("/projects/{project}/workloads/dense_bias_act.json", case=CASE).json()["view"]["rows"][0]["marks"]
    assert {mark["report_href"] for mark in marks.values()} == {f"/reports/{counted}"}


def test_a_count_of_an_older_commit_stands_against_the_baseline_of_that_commit(upload, ask):
    """As its line and its workload's page say, though the baseline was counted since."""
    upload(1, array_bytes=300, baseline=600)
    upload(2, baseline=900, variants=("unfused",))
    counted = overview(ask, upload, "array_bytes")
    assert [counted[variant]["commit"] for variant in ("unfused", "fused")] == [SHAS[2], SHAS[1]]
    assert (counted["fused"]["outcome"], float(counted["fused"]["factor"])) == ("less", pytest.approx(0.5))
    assert counted["fused"]["doubt"] == "from an older commit"


def test_the_page_of_a_case_shows_the_clean_report_though_a_busy_one_came_last(upload, ask):
    upload(1, array_bytes=50)
    clean = upload(2, array_bytes=60)
    upload(2, array_bytes=90, quality="busy")
    page = f"/projects/{{project}}/commits/{SHAS[2]}/cases/{quote(CASE)}"
    assert ask(page + ".json").json()["report_href"] == f"/reports/{clean}"
    assert "busy machine" not in text_of(ask(page).text)


def test_a_newer_report_of_one_variant_hides_nothing_of_a_fuller_one(upload, ask):
    full = upload(1, array_bytes=50)
    partial = upload(1, variants=("fused",), ratio=None, array_bytes=50)
    page = f"/projects/{{project}}/commits/{SHAS[1]}"
    shown = ask(page + ".json").json()["fullest"]
    assert shown["id"] == full
    assert {row["variant"] for block in shown["cases"] for row in block["variants"]} == {"unfused", "fused"}
    case = ask(f"{page}/cases/{quote(CASE)}.json").json()
    assert case["report_href"] == f"/reports/{full}"
    assert partial not in text_of(ask(f"{page}/cases/{quote(CASE)}").text)
    newer = upload(1, array_bytes=50)
    assert ask(page + ".json").json()["fullest"]["id"] == newer


def times_on_pages(ask, place):
    """Time and ratio of each variant on the page of the commit, and on that of the case."""
    page = f"/projects/{{project}}/commits/{SHAS[place]}"
    (block,) = ask(page + ".json").json()["fullest"]["cases"]
    case = ask(f"{page}/cases/{quote(CASE)}.json").json()
    return [{row["variant"]: (row["time"], row["factor"]) for row in rows["variants"]} for rows in (block, case)]


def test_pages_of_commit_and_case_show_the_ratio_of_the_most_groups_with_its_change(upload, ask):
    upload(1, ratio=0.25)
    upload(2, ratio=0.29, groups=5)
    # Of fewer metrics, so that the other one is the most complete.
    upload(2, ratio=0.3, groups=20, counts=False)
    of_commit, of_case = times_on_pages(ask, 2)
    assert of_commit["fused"][1] == of_case["fused"][1] == "0.3000×"
    case = ask(f"/projects/{{project}}/commits/{SHAS[2]}/cases/{quote(CASE)}.json").json()
    (said,) = case["sentences"]
    assert said["text"] == "time against unfused +20.0 %, now 0.3000×"


def test_reports_of_other_variants_hide_nothing_of_each_other(upload, ask):
    upload(1, variants=("unfused",), ratio=None)
    upload(1, variants=("fused",), ratio=None)
    for shown in times_on_pages(ask, 1):
        assert {variant: bool(time) for variant, (time, _) in shown.items()} == {"unfused": True, "fused": True}


def test_reports_of_other_cases_hide_nothing_of_each_other(upload, ask):
    upload(1)
    upload(1, case=CASES[2])
    shown = ask(f"/projects/{{project}}/commits/{SHAS[1]}.json").json()["fullest"]["cases"]
    assert len({block["case"] for block in shown}) == len(shown) == 2


def test_the_page_of_a_commit_shows_the_clean_report_of_two_that_say_as_much(upload, ask):
    clean = upload(1, ratio=0.5)
    upload(1, ratio=0.9, quality="busy")
    page = f"/projects/{{project}}/commits/{SHAS[1]}"
    assert ask(page + ".json").json()["fullest"]["id"] == clean
    of_commit, of_case = times_on_pages(ask, 1)
    assert of_commit == of_case
    assert of_commit["fused"][1] == "0.5000×"


def test_the_results_on_the_page_of_a_commit_are_those_of_the_machine_that_was_asked_for(upload, ask):
    one = upload(1, machine="first")
    other = upload(1, machine="second")
    page = f"/projects/{{project}}/commits/{SHAS[1]}.json"
    assert [ask(page, machine=name).json()["fullest"]["id"] for name in ("first", "second")] == [one, other]
