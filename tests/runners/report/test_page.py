"""The page, the Markdown and the charts of a report made by hand."""

import json
import math
import re

import pytest

from pullback_runners.errors import UsageError
from pullback_runners.report.figures import memory_figure, process_figure, ratio_figure
from pullback_runners.report.markdown import markdown_of
from pullback_runners.report.page import page_of, write_page
from pullback_runners.report.summary import lede, left_out


def variant(name, time_s, array_bytes, error=None):
    if error:
        return {"variant": name, "kind": "tier", "error": error, "metrics": {}}
    counts = {
        f"{layer}_{what}": {"value": array_bytes} for layer in ("array", "native") for what in ("bytes", "allocs")
    }
    time = {"processes": [time_s, time_s * 1.1]}
    return {"variant": name, "error": None, "metrics": {"time": time, **counts}, "gradient": {"max_rel_error": 1e-9}}


def time_row(name, log_ratio, outcome):
    row = {"variant": name, "baseline": "unfused", "metric": "time", "log_ratio": log_ratio, "outcome": outcome}
    return {**row, "low": log_ratio - 0.1, "high": log_ratio + 0.1, "n": 20, "margin": 0.01}


@pytest.fixture
def report():
    case = {
        "case": {"workload": "poly9", "params": {"n": 1000}, "dtype": "f8", "device": "cpu"},
        "error": None,
        "variants": [
            variant("unfused", 1e-4, 4000),
            variant("native", 1e-5, 0),
            variant("fused", 0, 0, {"kind": "gradient", "message": "off by <0.1> | much"}),
        ],
        "paired": [time_row("native", -2.3, "faster")],
    }
    return {
        "project": "mine",
        "commit": {"sha": "a" * 40, "title": "Mend </script> & |", "dirty": False},
        "started_at": "2025-01-01T10:00:00+00:00",
        "duration_s": 12.3,
        "machine": {"name": "here", "facts": {"cpu": "a CPU", "python": "CPython 3.12", "numpy": "2.4"}},
        "harness": {
            "suite": "standard",
            "quality": "contaminated",
            "contamination": ["busy"],
            "complete": True,
            "preflight": {"load_1min": 3.0},
            "budget": {"groups": 20},
        },
        "cases": [case],
    }


def test_the_sentence_says_who_is_how_much_faster_and_what_failed(report):
    assert lede(report) == "Against unfused, over 1 case by geometric mean: native 9.97× faster. 1 variant failed."


def test_the_time_chart_has_a_mark_and_an_interval_for_each_ratio(report):
    figure = ratio_figure(report)
    (trace,) = figure["data"]
    assert trace["name"] == "native"
    assert trace["x"] == [pytest.approx(0.1, rel=0.01)]
    assert trace["error_x"]["array"][0] > 0
    assert trace["error_x"]["arrayminus"][0] > 0
    assert figure["layout"]["yaxis"]["ticktext"] == ["poly9[n=1000,f8,cpu]"]
    json.dumps(figure, allow_nan=False)


def test_nothing_has_a_place_on_the_memory_chart(report):
    figure = memory_figure(report)
    placed = {trace["name"]: trace["x"][0] for trace in figure["data"]}
    assert placed["unfused"] == 4000
    assert placed["native"] < 4000
    assert figure["layout"]["xaxis"]["ticktext"][0] == "none"
    assert figure["layout"]["xaxis"]["tickvals"][0] == placed["native"]


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (4000, 4000, ["2 KiB", "4 KiB"]),
        (8, 8, ["8 B", "16 B"]),
        (200, 3_000, ["128 B", "256 B", "512 B", "1 KiB", "2 KiB"]),
        (3_000, 500_000, ["1 KiB", "4 KiB", "16 KiB", "64 KiB", "256 KiB"]),
        (8, 40 * 2**20, ["1 B", "32 B", "1 KiB", "32 KiB", "1 MiB", "32 MiB"]),
    ],
)
def test_ticks_of_memory_are_powers_of_two_around_what_was_counted(report, low, high, words):
    for each, value in zip(report["cases"][0]["variants"], (low, high), strict=False):
        each["metrics"]["array_bytes"]["value"] = value
    axis = memory_figure(report)["layout"]["xaxis"]
    assert axis["ticktext"] == ["none", *words]
    assert axis["tickvals"][0] < axis["tickvals"][1] <= low <= high <= 10 ** axis["range"][1]
    assert all(math.log2(tick).is_integer() for tick in axis["tickvals"][1:])


def test_a_case_shows_every_process(report):
    figure = process_figure(report["cases"][0])
    assert [len(trace["y"]) for trace in figure["data"]] == [2, 2]


def test_a_report_without_cases_makes_figures_and_a_page(report):
    report["cases"] = []
    assert ratio_figure(report)["data"] == memory_figure(report)["data"] == []
    assert "Nothing was measured" in page_of(report, "")


def test_the_page_is_one_file_and_takes_no_text_for_markup(report):
    page = page_of(report, "/* plotly */")
    assert "<script>/* plotly */</script>" in page
    assert not re.search(r"(src|href)=", page)
    assert "Mend &lt;/script&gt; &amp; |" in page
    assert "off by &lt;0.1&gt; | much" in page
    assert "Busy machine: busy." in page
    figures = re.search(r'id="figures">(.*?)</script>', page).group(1)
    assert set(json.loads(figures)) == {"ratios", "memory", "case-0"}


def test_markdown_has_a_table_a_case_and_no_cell_ends_early(report):
    text = markdown_of(report)
    assert "## Gradients at `aaaaaaaaaa` Mend &lt;/script> & \\|" in text
    assert "| native | 10.5 µs | 9.97x faster (9.03-11.0) | 0 B in 0 | 0 B in 0 | 1e-09 |" in text
    assert "gradient: off by &lt;0.1> \\| much" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {7}


def test_a_page_that_cannot_be_written_is_named(report, tmp_path):
    pytest.importorskip("plotly")
    with pytest.raises(UsageError, match="give another file to --html"):
        write_page(report, tmp_path / "nowhere" / "page.html")


def test_what_was_not_measured_is_on_the_page_and_in_markdown(report):
    assert "Not measured" not in page_of(report, "") + markdown_of(report)
    report["harness"] |= {
        "refused": ["no case matches <'nope'>"],
        "absent": ["numpy takes part in no case: none | written"],
    }
    assert left_out(report) == ["no case matches <'nope'>", "numpy takes part in no case: none | written"]
    page = page_of(report, "")
    assert "<h2>Not measured</h2>" in page
    assert "<li>no case matches &lt;&#x27;nope&#x27;&gt;</li>" in page
    text = markdown_of(report)
    assert "- Not measured: no case matches &lt;'nope'>." in text
    assert "none \\| written." in text
