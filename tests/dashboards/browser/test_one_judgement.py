"""Workload, case and commit say of a step what the comparison of both commits says, over the real application.

Mixed reports of two branches: counted alike or not, by other methods and software, disturbed, in part, failed, twice.
"""

import csv
import io
import math
import random
import re
import uuid
from html import unescape
from urllib.parse import quote

import httpx
import pytest
from rich.console import Console
from tests.dashboards.browser.conftest import CASES, SHAS, fresh_database, made_report, serving

from pullback_cli.receipt_text import changes_in_words
from pullback_runners.measurement.outcomes import exact_log_ratio, exact_outcome, margins, noisy_outcome
from pullback_runners.measurement.statistics import RatioEstimate
from pullback_runners.report.comparison_table import comparison_table
from pullback_service.client import Client

CASE = "dense_bias_act[n=100,act=tanh,f4,cpu]"
PARENTS = {0: None, 1: 0, 2: 0, 3: 1, 4: 2, 5: 3, 6: 5, 7: 4}
"""Two branches part at the first commit, and their commits lie between each other."""
OF_OUTCOMES = {"more": "worse", "less": "better", "ambiguous": "unsure", "not_comparable": "unsure"}


@pytest.fixture(scope="module")
def client(postgres_server, migrated_template):
    with (
        serving(fresh_database(postgres_server, migrated_template)) as address,
        httpx.Client(base_url=address, timeout=30) as client,
    ):
        yield client


def report_at(place, project, chance=None, **counts):
    """A report in which `fused` counts so; with `chance`, anything may be odd about it."""
    report = made_report(place, project=project, cases=CASES[:1])
    report["id"] = str(uuid.uuid4())
    parent = PARENTS[place]
    report["commit"]["parents"] = [] if parent is None else [SHAS[parent]]
    report["harness"]["quality"] = "clean"
    (case,) = report["cases"]
    case["variants"] = [variant for variant in case["variants"] if variant["variant"] in {"unfused", "fused"}]
    case["paired"] = [pair for pair in case["paired"] if pair["variant"] == "fused"]
    for variant in case["variants"]:
        del variant["metrics"]["array_allocs"]
        counted = variant["metrics"]["array_bytes"]
        counted["value"] = counts.get(variant["variant"], 1000)
        if chance is not None:
            counted["value"] = chance.choice([600, 600, 700])
            counted["method"] = chance.choice(["nep49", "nep49", "nep49", "tracemalloc"])
    if chance is not None:
        report["machine"]["facts"]["numpy"] = chance.choice(["2.3.4", "2.3.4", "2.4.0"])
        report["harness"]["quality"] = chance.choice(["clean", "clean", "busy"])
        odd = chance.random()
        if odd < 0.15:
            case["variants"].pop()
            case["paired"] = []
        elif odd < 0.3:
            case |= {"error": {"kind": "crash", "message": "broke"}, "variants": [], "paired": []}
    return report


def send(client, *reports):
    for report in reports:
        answer = client.post("/api/v1/reports", json=report)
        assert answer.is_success, answer.text


def ancestors(place):
    while (place := PARENTS[place]) is not None:
        yield place


def compared_report(chance, project):
    """What `pullback compare` writes of two commits: outcomes by the runner's own rule, on a quiet or a busy machine."""
    report = made_report(1, project=project, cases=CASES)
    report |= {"id": str(uuid.uuid4()), "reference": made_report(0, project=project, cases=())["commit"]}
    report["harness"] |= {"quality": chance.choice(["clean", "busy"]), "complete": True, "contamination": []}
    floor, suite_says_same = chance.choice([None, 0.002, 0.03]), chance.random() < 0.5
    groups = chance.choice([2, 5, 20])
    is_busy = report["harness"]["quality"] != "clean"
    limits = margins(floor, busy_groups=groups if is_busy else None)
    for case in report["cases"]:
        counts = {
            v["variant"]: v["metrics"]["array_bytes"]["value"]
            for v in case["variants"]
            if "array_bytes" in v["metrics"]
        }
        case |= {"variants": [], "paired": []}
        for variant, count in counts.items():
            row = {"case": case["case"], "variant": variant, "reference": SHAS[0], "candidate": SHAS[1]}
            ratio, doubt = chance.gauss(0, 0.04), chance.choice([0.003, 0.02, 0.2])
            before = chance.choice([count, count, count // 2])
            estimate = RatioEstimate(ratio, ratio - doubt, ratio + doubt, groups)
            report["comparisons"] += [
                row | {
                    "metric": "time", "log_ratio": ratio, "low": estimate.low, "high": estimate.high, "n": groups,
                    "outcome": noisy_outcome(estimate, limits, may_say_same=suite_says_same),
                    "claim": limits.claim, "margin": limits.same, "margin_is_provisional": limits.is_provisional,
                },
                row | {
                    "metric": "array_bytes", "log_ratio": exact_log_ratio(count, before), "low": None, "high": None, "n": None,
                    "values": [before, count], "outcome": exact_outcome(count, before),
                },
            ]  # fmt: skip
    return report


def measured_report(place, compared):
    """What a run of one of two compared commits writes: the same series, with the same counts."""
    report = made_report(place, project=compared["project"])
    report["harness"]["quality"] = "clean"
    counts = {
        (name_of(row["case"]), row["variant"]): row["values"][place]
        for row in compared["comparisons"]
        if row["metric"] == "array_bytes"
    }
    for case in report["cases"]:
        case["variants"] = [
            v for v in case["variants"] if (name_of(case["case"]), v["variant"]) in counts and v["metrics"]
        ]
        for variant in case["variants"]:
            metrics = variant["metrics"]
            metrics["array_bytes"]["value"] = counts[name_of(case["case"]), variant["variant"]]
            variant["metrics"] = {"time": metrics["time"], "array_bytes": metrics["array_bytes"]}
        present = {variant["variant"] for variant in case["variants"]}
        case["paired"] = [pair for pair in case["paired"] if pair["variant"] in present]
    return report


def in_the_terminal(report):
    """The outcome of every series that the table of `pullback compare` shows."""
    console = Console(width=300, file=io.StringIO(), color_system=None)
    console.print(comparison_table(report))
    found = {}
    for line in console.file.getvalue().splitlines()[1:]:
        case, variant, time, *memory = re.split(r" {2,}", line.strip())
        words = re.sub(r"[0-9.]+x |within .*|\(.*", "", time).strip()
        found[case, variant, "time"] = words.replace(" ", "_")
        before, after = (memory[0] != "equal" and re.findall(r"[0-9.]+ [KM]?i?B", memory[0])) or (None, None)
        found[case, variant, "array_bytes"] = "equal" if before is None else "more" if "(2" in memory[0] else "less"
        assert before != after or before is None
    return found


def name_of(case):
    params = ",".join(f"{name}={value}" for name, value in case["params"].items())
    return f"{case['workload']}[{params},{case['dtype']},{case['device']}]"


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("seed", range(6))
def test_terminal_api_page_csv_and_markdown_say_the_same_of_a_comparison(client, seed):
    chance, project = random.Random(seed), f"compared-{seed}"
    report = compared_report(chance, project)
    terminal = in_the_terminal(report)
    assert len(terminal) == len(report["comparisons"])
    send(client, *chance.sample([report, measured_report(0, report), measured_report(1, report)], 3))
    asked = {"base": SHAS[0], "head": SHAS[1]}
    items = client.get("/api/v1/comparisons", params={"project": project, **asked}).raise_for_status().json()["items"]
    assert {(name_of(row["case"]), row["variant"], row["metric"]): row["outcome"] for row in items} == terminal
    path = f"/projects/{project}/compare"
    rows = csv.DictReader(io.StringIO(client.get(f"{path}.csv", params={**asked, "show": "all"}).text))
    assert {(row["case"], row["variant"], row["metric"]): row["outcome"] for row in rows} == terminal
    view = client.get(f"{path}.json", params={**asked, "show": "all"}).raise_for_status().json()
    marks = {(row["case"], row["variant"], row["metric"]): row["mark"] for row in view["rows"]}
    shown = {(row["case"], row["variant"], row["metric"]): row["outcome"] for row in view["rows"]}
    assert shown == terminal
    page = client.get(path, params={**asked, "show": "all"}, headers={"accept": "text/html"}).text
    spoken = [
        re.sub(r"<.*", "", unescape(cell)).split(",")[0].strip()
        for cell in re.findall(r'<td class="why">(.*?)</td>', page, re.DOTALL)
    ]
    assert sorted(spoken) == sorted(outcome.replace("_", " ") for outcome in terminal.values())
    lines = client.get(f"{path}.md", params={**asked, "show": "all"}).text.splitlines()
    table = [line.split(" | ") for line in lines if line.startswith("| ") and "[" in line]
    assert len(table) == len(terminal)
    assert sorted(line[0].removeprefix("|").strip() for line in table) == sorted(mark for mark in marks.values())
    news = client.get("/overview.json", params={"project": project}).json()["news"]
    told = {(item["mark"], variant) for item in news for variant in item["variant"].split(", ")}
    said = {(marks[key], key[1]) for key, outcome in terminal.items() if outcome not in {"ambiguous", "same", "equal"}}
    assert told == said


def expected(client, project, place):
    """By variant, what compare says of the bytes of a commit against the nearest ancestor that counted them, where they differ."""
    found = {}
    for before in ancestors(place):
        answer = client.get(
            "/api/v1/comparisons",
            params={"project": project, "base": SHAS[before], "head": SHAS[place], "metric": "array_bytes"},
        )
        for row in answer.raise_for_status().json()["items"]:
            if row["reference"] is not None and row["candidate"] is not None:
                differ = row["reference"]["value"] != row["candidate"]["value"]
                found.setdefault(row["variant"], OF_OUTCOMES[row["outcome"]] if differ else None)
    return {variant: tone for variant, tone in found.items() if tone is not None}


def on_the_workload(client, project):
    """Tones by commit and variant: of the column, and of the lane."""
    path = f"/projects/{project}/workloads/dense_bias_act.json"
    view = client.get(path, params={"memory": "array_bytes"}).raise_for_status().json()["view"]
    plot = next(plot for plot in view["plots"] if plot["metric"]["name"] == "array_bytes")
    marks = {
        (mark["sha"], track["variant"]): mark["since_tone"]
        for track in plot["tracks"]
        for mark in track["marks"]
        if mark["since_tone"]
    }
    shas = [commit["sha"] for commit in view["commits"]]
    lane = {
        (shas[event["place"]], sentence.partition(":")[0]): tone
        for event in view["events"]
        if event["lane"] == "counts"
        for sentence, tone in zip(event["sentences"], event["tones"], strict=True)
        if ": array bytes" in sentence
    }
    return marks, lane


def on_the_case(client, project, place):
    view = client.get(f"/projects/{project}/commits/{SHAS[place]}/cases/{quote(CASE)}.json").raise_for_status().json()
    return {
        block["variant"]: amount["tone"]
        for block in view["variants"]
        for layer in block["layers"]
        for amount in layer["amounts"]
        if amount["tone"]
    }


def at_the_commit(client, project, place):
    view = client.get(f"/projects/{project}/commits/{SHAS[place]}.json").raise_for_status().json()
    return {
        variant: item["tone"]
        for item in (view["changes"] or {"told": {"news": []}})["told"]["news"]
        if "array bytes" in item["text"]
        for variant in item["variant"].split(", ")
    }


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("seed", range(3))
def test_whatever_the_reports_every_page_says_of_a_step_what_compare_says(client, seed):
    chance, project = random.Random(seed), f"mixed-{seed}"
    places = [*PARENTS, *chance.choices(list(PARENTS), k=5)]
    send(client, *(report_at(place, project, chance) for place in chance.sample(places, len(places))))
    marks, lane = on_the_workload(client, project)
    assert marks
    told = {}
    for place in PARENTS:
        judged = expected(client, project, place)
        told |= {(SHAS[place], variant): tone for variant, tone in judged.items()}
        assert at_the_commit(client, project, place) == judged
        # The page compares with the nearest commit at which any variant of the case was measured.
        assert on_the_case(client, project, place).items() <= judged.items()
    assert marks == told
    assert lane == told


def timed(case, **seconds):
    """Give the variants of a case such times, within a hundredth, and ratios to `unfused` where that is among them."""
    case["paired"] = []
    for variant in case["variants"]:
        middle = seconds[variant["variant"]]
        processes = [middle * (1 + 0.001 * place) for place in range(-5, 6)]
        variant["metrics"]["time"] |= {"processes": processes, "slices": []}
        if "unfused" in seconds and variant["variant"] != "unfused":
            ratio = math.log(middle / seconds["unfused"])
            case["paired"].append(
                {
                    "variant": variant["variant"], "baseline": "unfused", "metric": "time", "log_ratio": ratio,
                    "low": ratio - 0.01, "high": ratio + 0.01, "n": 20, "outcome": "slower" if ratio > 0 else "faster",
                }
            )  # fmt: skip


def told_everywhere(client, project, place):
    """What changed at the newest commit, by variant and tone, as every reader has it: held to be the same."""
    asked = {"project": project, "base": SHAS[place - 1], "head": SHAS[place], "metric": "time"}
    marks = {"likely_slower": "△", "likely_faster": "▽"}
    items = client.get("/api/v1/comparisons", params=asked).raise_for_status().json()["items"]
    said = sorted((marks[row["outcome"]], row["variant"]) for row in items if row["outcome"] in marks)
    sha = SHAS[place]
    overview = client.get("/overview.json", params={"project": project}).json()["news"]
    commit = client.get(f"/projects/{project}/commits/{sha}.json").json()["changes"]["told"]["news"]
    (listed,) = (row for row in client.get("/projects.json").json()["rows"] if row["name"] == project)
    markdown = [
        client.get(path, params={"project": project}).text
        for path in ("/overview.md", f"/projects/{project}/commits/{sha}.md")
    ]
    texts = [f"{item['mark']} {item['variant']}: {item['text']}" for item in overview if item["sha"] == sha]
    assert texts == [f"{item['mark']} {item['variant']}: {item['text']}" for item in commit]
    assert [item["text"] for item in listed["changes"]] == [item["text"] for item in overview][:2]
    for page in markdown:
        plain = page.replace("*", "")
        assert all(text.partition(": ")[2] in plain for text in texts)
        assert page.count("likely") >= len(texts)
        assert ("likely" in page) == bool(texts)
    assert sorted((text[0], text[2:].partition(":")[0]) for text in texts) == said
    case = client.get(f"/projects/{project}/commits/{sha}/cases/{quote(CASE)}.json").json()
    tones = {"likely-worse": "△", "likely-better": "▽"}
    assert sorted((tones[row["tone"]], row["variant"]) for row in case["sentences"]) == said
    view = client.get(f"/projects/{project}/workloads/dense_bias_act.json").json()["view"]
    seen = sorted(
        (tones[mark["since_tone"]], track["variant"])
        for plot in view["plots"]
        for track in plot["tracks"]
        for mark in track["marks"]
        if mark["sha"] == sha and mark["since_tone"]
    )
    assert seen == said
    compared = client.get(f"/projects/{project}/compare.md", params=asked | {"show": "all"}).raise_for_status().text
    rows = [[cell.strip() for cell in line.split("|")] for line in compared.splitlines() if "n=100" in line]
    assert len(rows) == len(items)
    assert sorted((row[1], row[3]) for row in rows if row[1] in marks.values()) == said
    with Client(str(client.base_url)) as reader:
        receipt = changes_in_words(reader, project, sha)
    worse = sum(mark == "△" for mark, _ in said)
    assert (f"{worse} likely worse" in receipt) == bool(worse)
    assert ("likely better" in receipt) == any(mark == "▽" for mark, _ in said)
    return texts


@pytest.mark.sample(every=4)
@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        ((100, 25), (138, 25), ["△ unfused: likely 38 % slower: 100\u202fµs → 138\u202fµs"]),
        ((138, 25), (100, 25), ["▽ unfused: likely 28 % faster: 138\u202fµs → 100\u202fµs"]),
        ((100, 25), (100, 34), ["△ fused: likely 36 % slower: time against unfused 0.25× → 0.34×"]),
        ((100, 25), (138, 34.5), ["△ unfused: likely 38 % slower: 100\u202fµs → 138\u202fµs"]),
        (
            (100, 25),
            (138, 20),
            [
                "△ unfused: likely 38 % slower: 100\u202fµs → 138\u202fµs",
                "▽ fused: likely 20 % faster: 25\u202fµs → 20\u202fµs",
            ],
        ),
        ((100, 25), (104, 25), []),
        ((240, 25), (100, 22), ["▽ unfused: likely 2.4× faster: 240\u202fµs → 100\u202fµs"]),
        ((100, 25), (200, 40), ["△ unfused: likely 2.0× slower: 100\u202fµs → 200\u202fµs"]),
    ],
)
def test_a_baseline_that_moved_is_told_once_and_of_no_other_variant(client, before, now, told):
    project = f"base-{'-'.join(map(str, (*before, *now)))}"
    for place, (base, fused) in enumerate((before, now)):
        report = report_at(place, project)
        timed(report["cases"][0], unfused=base * 1e-6, fused=fused * 1e-6)
        for variant in report["cases"][0]["variants"]:
            variant["program_hash"] = None
        send(client, report)
    assert told_everywhere(client, project, 1) == told


@pytest.mark.parametrize("is_subject", [True, False])
def test_variants_of_any_engine_are_told_of_unless_they_are_peers_of_the_projects_own(client, is_subject):
    """The digest of the files that were measured tells them apart: an engine's peers run none of them."""
    project = f"subject-{is_subject}"
    for place, seconds in enumerate((100e-6, 142e-6)):
        report = report_at(place, project)
        (case,) = report["cases"]
        case["variants"].pop()
        (variant,) = case["variants"]
        subject = f"{place:064x}" if is_subject else None
        variant |= {
            "variant": "jax", "kind": "peer", "program_hash": None, "plan": None,
            "digests": {"workload": "a" * 64, "subject": subject, "code": None},
        }  # fmt: skip
        timed(case, jax=seconds)
        send(client, report)
    if is_subject:
        assert told_everywhere(client, project, 1) == ["△ jax: likely 42 % slower: 100\u202fµs → 142\u202fµs"]
    else:
        assert client.get("/overview.json", params={"project": project}).json()["news"] == []
        case = client.get(f"/projects/{project}/commits/{SHAS[1]}/cases/{quote(CASE)}.json").json()
        assert case["sentences"] == []
    page = client.get("/", params={"project": project}, headers={"accept": "text/html"}).text
    assert "unfused" not in page


@pytest.mark.parametrize("programs", [("p", "p"), ("p", "q"), (None, None)], ids=["same", "other", "unknown"])
def test_a_ratio_that_moved_is_news_where_compare_calls_it_likely(client, programs):
    project = f"moved-{programs[1]}"
    for place, (program, ratio) in enumerate(zip(programs, (0.3, 0.5), strict=True)):
        report = report_at(place, project)
        (case,) = report["cases"]
        timed(case, unfused=100e-6, fused=100e-6 * math.exp(ratio))
        case["variants"][1]["program_hash"] = program
        send(client, report)
    asked = {"project": project, "base": SHAS[0], "head": SHAS[1], "metric": "time", "variant": "fused"}
    (row,) = client.get("/api/v1/comparisons", params=asked).json()["items"]
    assert row["outcome"] == ("ambiguous" if programs == ("p", "p") else "likely_slower")
    news = client.get("/overview.json", params={"project": project}).json()["news"]
    assert [item["text"] for item in news] == (
        ["likely 22 % slower: time against unfused 1.35× → 1.65×"] if row["outcome"] == "likely_slower" else []
    )
    view = client.get(f"/projects/{project}/workloads/dense_bias_act.json").raise_for_status().json()["view"]
    tones = {mark["since_tone"] for plot in view["plots"] for track in plot["tracks"] for mark in track["marks"]}
    assert tones - {""} == ({"likely-worse"} if news else set())
    case = client.get(f"/projects/{project}/commits/{SHAS[1]}/cases/{quote(CASE)}.json").json()
    assert {block["since_tone"] for block in case["variants"]} - {""} == ({"likely-worse"} if news else set())


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("seed", range(3))
def test_commits_that_nobody_dated_lead_nobody_in_circles(client, seed):
    """Known from a statement alone or imported without a date, a parent stands behind its children."""
    chance, project = random.Random(seed), f"undated-{seed}"
    for place in chance.sample(list(PARENTS), len(PARENTS)):
        report = report_at(place, project, chance)
        if chance.random() < 0.5:
            report["commit"]["authored_at"] = None
        for before in list(ancestors(place))[:1] if chance.random() < 0.5 else ():
            ends = (SHAS[before], SHAS[place]) if chance.random() < 0.5 else (SHAS[place], SHAS[before])
            report["comparisons"] = [
                {
                    "case": report["cases"][0]["case"], "variant": "fused", "metric": "time", "reference": ends[0],
                    "candidate": ends[1], "log_ratio": 0.2, "low": 0.19, "high": 0.21, "n": 20, "outcome": "slower",
                    "claim": 0.01, "margin": 0.01,
                }
            ]  # fmt: skip
        send(client, report)
    paths = [f"/?project={project}", f"/projects/{project}/feed.atom", f"/projects/{project}/workloads/dense_bias_act"]
    paths += [f"/projects/{project}/commits/{sha}" for sha in SHAS[: len(PARENTS)]]
    for path in paths:
        answer = client.get(path, headers={"accept": "text/html"})
        assert (path, answer.status_code) == (path, 200)
        assert "Unexpected" not in answer.text


def test_a_statement_says_as_much_of_the_later_commit_whichever_it_judges(client):
    later = report_at(1, "turned")
    later["comparisons"] = [
        {
            "case": later["cases"][0]["case"], "variant": "fused", "metric": "time", "reference": SHAS[1],
            "candidate": SHAS[0], "log_ratio": -0.2, "low": -0.21, "high": -0.19, "n": 20, "outcome": "faster",
            "claim": 0.01, "margin": 0.01,
        }
    ]  # fmt: skip
    send(client, report_at(0, "turned"), later)
    (item,) = client.get("/overview.json", params={"project": "turned"}).json()["news"]
    assert (item["sha"], item["mark"]) == (SHAS[1], "▲")
    assert item["text"].startswith(f"22.1 % more time than {SHAS[0][:9]}")
    view = client.get(f"/projects/turned/commits/{SHAS[1]}/cases/{quote(CASE)}.json").json()
    assert [(said["variant"], said["tone"]) for said in view["sentences"]] == [("fused", "worse")]


def test_what_only_counts_tells_of_its_failures_too(client):
    counting, failed = report_at(0, "counting"), report_at(1, "counting")
    for variant in counting["cases"][0]["variants"]:
        del variant["metrics"]["time"]
    counting["cases"][0]["paired"] = []
    failed["cases"][0] |= {"error": {"kind": "crash", "message": "broke"}, "variants": [], "paired": []}
    send(client, counting, failed)
    (item,) = client.get("/overview.json", params={"project": "counting"}).json()["news"]
    assert (item["mark"], item["variant"], item["text"], item["note"]) == (
        "✕", "unfused, fused", "fails since this commit", "broke"
    )  # fmt: skip


def test_a_receipt_counts_a_variant_that_failed_once(client):
    failed = report_at(1, "receipt")
    failed["cases"][0] |= {"error": {"kind": "crash", "message": "broke"}, "variants": [], "paired": []}
    send(client, report_at(0, "receipt"), failed)
    with Client(str(client.base_url)) as reader:
        receipt = changes_in_words(reader, "receipt", SHAS[1])
    assert re.fullmatch(rf"against {SHAS[0][:10]}: 2 failed of \d+ series \(.* (un)?fused: failed\)", receipt)


def test_what_another_report_of_the_commit_counted_is_told_of_the_case(client):
    first, second = report_at(1, "twice", fused=1500), report_at(1, "twice")
    first["cases"][0]["variants"].pop(0)
    del first["cases"][0]["variants"][0]["metrics"]["time"]
    second["cases"][0]["variants"].pop()  # says more, but nothing of that variant
    first["cases"][0]["paired"] = second["cases"][0]["paired"] = []
    send(client, report_at(0, "twice"), first, second)
    view = client.get(f"/projects/twice/commits/{SHAS[1]}/cases/{quote(CASE)}.json").json()
    (said,) = view["sentences"]
    assert (said["variant"], said["tone"]) == ("fused", "worse")
    assert said["text"] == "array bytes +500\u202fB, now 1.46\u202fKiB"


def test_a_way_that_ends_before_the_window_leads_to_no_other_branch(client):
    """The main branch measures the case in turn with another one; a topic branch lies between."""
    other = CASES[2:3]

    def of_another_case(place, parent):
        report = made_report(place, project="farther", cases=other)
        report["id"] = str(uuid.uuid4())
        report["commit"]["parents"] = [] if parent is None else [SHAS[parent]]
        report["harness"]["quality"] = "clean"
        return report

    newest = report_at(7, "farther", fused=600)
    newest["commit"] |= {"sha": SHAS[8], "parents": [SHAS[2]], "authored_at": "2026-03-20T00:00:00Z"}
    send(
        client,
        report_at(0, "farther", fused=600),
        report_at(1, "farther", fused=9000),
        of_another_case(2, 0),
        *(of_another_case(place, 1) for place in (3, 4, 5, 6, 7)),
        newest,
    )
    news = client.get("/overview.json", params={"project": "farther"}).json()["news"]
    assert not [item for item in news if item["sha"] == SHAS[8] and "array bytes" in item["text"]]


def test_what_another_branch_did_is_not_the_doing_of_the_commit_after_it(client):
    """A pull request counts ten times as much, measured between two commits of the main branch that count alike."""
    send(client, *(report_at(place, "parted", fused=6000 if place == 2 else 600) for place in (0, 1, 2, 3)))
    overview = client.get("/overview.json", params={"project": "parted"}).json()
    assert {item["sha"] for item in overview["news"]} == {SHAS[2]}
    _, lane = on_the_workload(client, "parted")
    assert lane == {(SHAS[2], "fused"): "worse"}
    assert on_the_case(client, "parted", 3) == at_the_commit(client, "parted", 3) == {}
    assert client.get(f"/projects/parted/commits/{SHAS[3]}.json").json()["changes"]["before"]["sha"] == SHAS[1]


def test_a_wrong_gradient_stands_before_what_another_report_measured(client):
    wrong = report_at(1, "wrong")
    wrong["cases"][0]["gradient"] = {"ok": False, "max_rel_error": 3.0, "oracle": "closed form"}
    send(client, report_at(0, "wrong"), report_at(1, "wrong", fused=2000), wrong, report_at(1, "wrong", fused=3000))
    overview = client.get("/overview.json", params={"project": "wrong"}).json()
    cells = {
        cell["variant"]: cell for group in overview["heat"]["groups"] for row in group["rows"] for cell in row["cells"]
    }
    assert cells["fused"]["outcome"] == "failed"
    (item,) = overview["news"]
    assert (item["mark"], item["variant"]) == ("✕", "unfused, fused")
    view = client.get(f"/projects/wrong/commits/{SHAS[1]}/cases/{quote(CASE)}.json").json()
    assert view["gradient"].startswith("wrong")


def test_a_case_that_failed_once_more_speaks_by_the_report_that_measured_it(client):
    failed = report_at(1, "again")
    failed["cases"][0] |= {"error": {"kind": "crash", "message": "broke"}, "variants": [], "paired": []}
    send(client, report_at(0, "again"), report_at(1, "again", fused=1500), failed)
    view = client.get(f"/projects/again/commits/{SHAS[1]}/cases/{quote(CASE)}.json").json()
    assert view["failure"] is None
    assert on_the_case(client, "again", 1) == {"fused": "worse"}


def pytest_benchmark_file(sha, place, seconds):
    """What pytest-benchmark writes of two tests, of which the second takes 50 µs."""
    day = f"2026-11-{1 + place:02}T09:00:00+00:00"
    times = {"test_gradient": seconds, "test_step": 50e-6}
    return {
        "machine_info": {"node": "ci", "cpu": {"brand_raw": "EPYC", "count": 4}, "python_version": "3.12.1"},
        "commit_info": {"id": sha, "time": day, "author_time": day, "dirty": False, "branch": "main"},
        "benchmarks": [
            {
                "group": None, "name": name, "fullname": f"test_bench.py::{name}", "params": None, "param": None,
                "extra_info": {}, "options": {}, "stats": {"median": median, "rounds": 20, "data": [median] * 20},
            }
            for name, median in times.items()
        ],
        "datetime": day,
        "version": "4.0.0",
    }  # fmt: skip


def test_a_test_that_became_slower_is_told_of_a_ci_that_uploads_times_alone(client):
    """Eight commits that are alike within some percent, then one that takes 71 % more."""
    chance = random.Random(8)
    for place, sha in enumerate(SHAS[:9]):
        seconds = 406e-6 * (1.71 if place == 8 else chance.uniform(0.97, 1.03))
        asked = {"project": "solver", "commit": sha, "branch": "main", "machine": "ci"}
        body = pytest_benchmark_file(sha, place, seconds)
        client.post("/api/v1/reports", params=asked, json=body).raise_for_status()
    overview = client.get("/overview.json", params={"project": "solver"}).json()
    (item,) = overview["news"]
    assert item["sha"] == SHAS[8]
    assert re.fullmatch(r"likely 1\.[78]× slower: [34]\d\d\u202fµs → 694\u202fµs", item["text"])
    assert item["command"] == ""
    assert "run its benchmarks and those of" in item["remedy"]
    asked = {"project": "solver", "base": SHAS[7], "head": SHAS[8]}
    outcomes = {row["outcome"] for row in client.get("/api/v1/comparisons", params=asked).json()["items"]}
    assert outcomes == {"likely_slower", "ambiguous"}
    case = quote("test_bench.py::test_gradient", safe="")
    pages = {
        "overview": "/?project=solver", "commit": f"/projects/solver/commits/{SHAS[8]}", "projects": "/projects",
        "case": f"/projects/solver/commits/{SHAS[8]}/cases/{case}", "workload": f"/projects/solver/workloads/{case}",
        "compare": f"/projects/solver/compare?base={SHAS[7]}&head={SHAS[8]}",
    }  # fmt: skip
    for name, path in pages.items():
        text = client.get(path, headers={"accept": "text/html"}).raise_for_status().text
        assert (name, "likely" in text) == (name, True)
        if name != "projects":  # which lists others that have a baseline
            assert (name, "unfused" in text) == (name, False)
    assert "pullback agent" not in client.get(pages["overview"], headers={"accept": "text/html"}).text
