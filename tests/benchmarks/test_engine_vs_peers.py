"""The table against peers: its statistics, its page, what is kept, and one small row measured from outside."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", autouse=True)
def at_the_root():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        yield


def part(name):
    return importlib.import_module(f"benchmarks.engine_vs_peers.{name}")


def entry(seconds, **more):
    return {"seconds": seconds, "version": "1", **more}


def record(**participants):
    counts = {
        "array_bytes": 0,
        "native_bytes": 0,
        "python_blocks_kept": 1,
        "python_blocks_calls": 100,
        "python_garbage": 0,
    }
    return {"tier": "native", "participants": participants, "absent": {}, "counts": counts}


FACTS = {
    "cpu": "a CPU",
    "cpus": 2,
    "python": "CPython 3.11",
    "numpy": "2",
    "blas": "some",
    "llvmlite": "1",
    "peers": {"jax": "0.10"},
}


# --- statistics ---------------------------------------------------------------------------------------------------------


def test_the_interval_of_a_median_holds_it_and_narrows_with_more_numbers():
    ratios = part("ratios")
    rng = np.random.default_rng(1)
    widths = []
    for count in (10, 100, 1000):
        interval = ratios.median_interval(rng.lognormal(0.0, 0.1, count))
        assert interval.low <= interval.middle <= interval.high
        widths.append(interval.high - interval.low)
    assert widths[0] > widths[1] > widths[2]


def test_the_interval_holds_the_true_median_in_about_95_of_100_samples():
    ratios = part("ratios")
    rng = np.random.default_rng(2)
    held = [
        interval.low <= 2.0 <= interval.high
        for interval in (ratios.median_interval(2.0 + rng.standard_normal(25)) for _ in range(100))
    ]
    assert 0.89 <= np.mean(held) <= 0.99


def test_few_numbers_give_their_range_and_none_are_refused():
    ratios = part("ratios")
    assert ratios.median_interval([3.0, 1.0, 2.0]) == ratios.Interval(2.0, 1.0, 3.0)
    with pytest.raises(ValueError, match="at least one number"):
        ratios.median_interval([])


def test_the_same_numbers_give_the_same_interval():
    ratios = part("ratios")
    sample = list(np.random.default_rng(3).uniform(1, 2, 40))
    assert ratios.median_interval(sample) == ratios.median_interval(sample)


def test_what_slows_a_whole_round_leaves_the_ratio_alone():
    ratios = part("ratios")
    noise = np.random.default_rng(4).uniform(1, 5, 30)
    assert ratios.paired_ratio(list(3.0 * noise), list(noise)) == pytest.approx(ratios.Interval(3.0, 3.0, 3.0))
    with pytest.raises(ValueError, match="zip"):
        ratios.paired_ratio([1.0], [1.0, 2.0])


# --- figures and page ---------------------------------------------------------------------------------------------------


def dense_row():
    return next(row for row in part("rows").ROWS if row.name == "dense n=512 f4")


def figures(**participants):
    return part("results").figures_of(dense_row(), record(**participants))


def test_the_best_of_several_peers_is_asked_about_and_guests_are_paired_with_the_rounds_they_had():
    found = figures(
        pullback=entry([2e-3] * 8),
        jax=entry([6e-3] * 8),
        torch=entry([3e-3] * 8),
        autograd=entry([8e-3] * 2),
        **{"fma f4": entry([1e-3] * 8, amount=6 * 512**3)},
    )
    (answer,) = found.answered
    assert (answer.against, answer.found.middle, answer.met) == ("torch", pytest.approx(1.5), True)
    assert found.peers["autograd"][1].middle == pytest.approx(4.0)
    assert found.of_limit.middle == pytest.approx(0.5)
    assert set(found.peers) == {"jax", "torch", "autograd"}


def test_what_is_asked_beyond_the_limit_of_the_machine_is_said_to_be_out_of_reach():
    limit = {"fma f4": entry([1e-3] * 8, amount=6 * 512**3)}
    near = figures(pullback=entry([1.25e-3] * 8), jax=entry([0.9e-3] * 8), **limit)
    far = figures(pullback=entry([1.25e-3] * 8), jax=entry([1.1e-3] * 8), **limit)
    assert [figure.answered[0].at_limit for figure in (near, far)] == pytest.approx([0.9, 1.1])
    text = part("page").tables([near, far], FACTS)
    assert "against jax (out of reach here: 0.9 at the limit of the machine); dense n=512 f4 against jax." in text


def test_a_row_without_our_times_has_no_figures_and_the_page_says_why():
    results = part("results")
    assert figures(jax=entry([1.0])) is None
    assert results.figures_of(dense_row(), None) is None
    wrong = {**record(jax=entry([1.0])), "absent": {"pullback": "w is off"}}
    without = {"a": results.why_none(wrong), "b": results.why_none(None)}
    text = part("page").tables([], FACTS, without)
    assert "- No figures: a, our engine failed: w is off." in text
    assert "- No figures: b, not measured." in text


def test_the_page_says_plainly_what_is_met_missed_and_not_compared():
    page = part("page")
    ahead = figures(pullback=entry([2e-3] * 8), numpy=entry([1e-3] * 8))
    alone = figures(pullback=entry([2e-3] * 8))
    faster = figures(pullback=entry([2e-3] * 8), jax=entry([3e-3] * 8))
    text = page.tables([ahead, alone, faster], FACTS)
    assert "| dense n=512 f4 | 2000 | numpy | 0.5 [0.5, 0.5] | ≥ 1 | **missed** |  | 0 |" in text
    assert "| jax or torch or numpy | not here | ≥ 1 |  |" in text
    assert "| jax | 1.5 [1.5, 1.5] | ≥ 1 | met |" in text
    assert "- Met: 1 of 3." in text
    assert "- Missed: dense n=512 f4 against numpy." in text
    assert "- Not compared: dense n=512 f4 against jax or torch or numpy." in text
    assert "A peer is ahead on: dense n=512 f4 (numpy 2x)." in text
    assert "jax 0.10" in text
    assert "tier `native`" in text


def test_bytes_are_zero_only_if_every_layer_was_seen_and_says_so():
    shown = part("page")._bytes
    counts = record()["counts"]
    assert shown(counts) == "0"
    assert shown({**counts, "array_bytes": 80}) == "80 B arrays"
    assert shown({**counts, "native_bytes": None}) == "native not seen"
    assert shown({**counts, "python_blocks_kept": 300}) == "300 Python blocks kept by 100 calls"
    assert shown({**counts, "python_garbage": 5}) == "garbage in cycles"
    assert shown(None) == "not counted"


def test_tables_go_between_the_markers_and_nowhere_else():
    page = part("page")
    begin, end = "<!-- made by benchmarks.any: begin -->", "<!-- made by benchmarks.any: end -->"
    text = f"before\n{begin}\nold\n{end}\nafter\n"
    once = page.put_into(text, r"| \1 |", "benchmarks.any")
    assert once == f"before\n{begin}\n\n| \\1 |\n\n{end}\nafter\n"
    assert page.put_into(once, "new", "benchmarks.any") == page.put_into(text, "new", "benchmarks.any")
    with pytest.raises(page.PageError, match="needs the line"):
        page.put_into(text, "new")


@pytest.mark.parametrize("maker", ["benchmarks.engine_vs_peers", "benchmarks.programs"])
def test_the_page_of_the_documents_has_the_markers(maker):
    page = part("page")
    assert page.put_into((ROOT / "docs" / "performance.md").read_text(), "", maker)


# --- what is kept -------------------------------------------------------------------------------------------------------


def test_results_grow_row_by_row_and_those_of_other_facts_are_refused(tmp_path):
    results = part("results")
    path = tmp_path / "table.json"
    kept = results.load(path, FACTS)
    kept["rows"]["a"] = record()
    results.save(path, kept)
    assert results.load(path, FACTS)["rows"].keys() == {"a"}
    with pytest.raises(results.ResultsError, match="other numpy"):
        results.load(path, {**FACTS, "numpy": "3"})
    path.write_text("{}")
    with pytest.raises(results.ResultsError, match="no results of this benchmark"):
        results.load(path, FACTS)
    path.write_text("nothing")
    with pytest.raises(results.ResultsError, match="no JSON"):
        results.load(path, FACTS)


# --- rows and limits ----------------------------------------------------------------------------------------------------


def test_every_row_can_be_measured_and_is_asked_about_someone_who_takes_part():
    rows = part("rows")
    workloads = importlib.import_module("pullback_runners.workloads")
    peers = importlib.import_module("pullback_runners.peers")
    assert len({row.name for row in rows.ROWS}) == len(rows.ROWS)
    for row in rows.ROWS:
        workload = workloads.find_workload(row.case.workload)
        assert all(name in row.peers or name in row.own_others for ask in row.asks for name in ask.against)
        assert all(peers.find_peer(peer).offers(workload) for peer in row.peers), row.name


def test_a_limit_is_a_loop_that_runs_and_says_how_much_it_did():
    limits = part("roofline")
    for resource in ("fma f4", "fma f8"):
        limit = limits.open_limit(resource)
        limit.call()
        assert limit.amount >= 2 * 2 * 12 * limits.FMA_ROUNDS


def test_times_of_results_that_are_dropped_and_kept():
    worker = part("worker")
    made = []

    def call():
        made.append(None)
        return object()

    assert worker.time_dropped(call, 3) > 0
    assert worker.time_kept(call, 3) > 0
    assert len(made) == 2 * (1 + 3)
    assert worker.time_dropped(call, 1) > 0
    assert len(made) == 2 * (1 + 3) + 1


def test_results_that_are_kept_are_held_sixty_four_at_a_time():
    worker = part("worker")
    alive = []

    class Result:
        def __init__(self):
            alive.append(1)

        def __del__(self):
            alive.pop()

    most = 0

    def call():
        nonlocal most
        result = Result()
        most = max(most, len(alive))
        return result

    assert worker.time_kept(call, 100) > 0
    assert (most, alive) == (64, [])


# --- from outside -------------------------------------------------------------------------------------------------------


def run(*arguments):
    command = [sys.executable, "-m", "benchmarks.engine_vs_peers", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_row_is_measured_checked_counted_and_kept(tmp_path):
    path = tmp_path / "table.json"
    ran = run("--only", "mul_restore", "--rounds", "2", "--peers", "numpy", "--tier", "stateful", "--json", str(path))
    assert ran.returncode == 1, ran.stderr  # Numba was not asked to take part: not all that is asked is met
    (row,) = json.loads(path.read_text())["rows"].values()
    assert set(row["participants"]) == {"pullback", "pullback into a new array", "numpy", "fma f8"}
    assert all(len(member["seconds"]) == 2 for member in row["participants"].values())
    assert row["participants"]["pullback"]["error"] < 1e-10
    assert row["counts"]["array_bytes"] == 0
    assert "| mul_restore 16x32x8 |" in ran.stdout
    assert "numba | not here" in ran.stdout


@pytest.mark.long
def test_rows_are_listed_and_what_is_unknown_is_refused():
    assert "touch index n=1e7" in run("--list").stdout
    refused = run("--only", "no such row")
    assert refused.returncode == 2
    assert "--list shows the names" in refused.stderr
    refused = run("--peers", "jaxx")
    assert refused.returncode == 2
    assert "'jaxx'" in refused.stderr
