import csv
import io
import json
import re
from pathlib import Path

import pytest
from fastapi import Request
from markupsafe import Markup

import pullback_dashboards
from pullback_dashboards import links
from pullback_dashboards.address_errors import ErrorView
from pullback_dashboards.charts.sparkline import Tick
from pullback_dashboards.charts.static_chart import CurvePoint
from pullback_dashboards.charts.strip import Groups
from pullback_dashboards.choices import EmptyPage
from pullback_dashboards.overview.view import Tally
from pullback_dashboards.rendering import _templates, _whole_words, csv_response, json_response, page
from pullback_service.ratio import Ratio


def request():
    """Somebody asks for the front page."""
    scope = {
        "type": "http", "method": "GET", "path": "/", "raw_path": b"/", "query_string": b"", "headers": [],
        "server": ("pages", 80), "scheme": "http",
    }  # fmt: skip
    return Request(scope)


def test_csv_keeps_numbers_and_tames_formulas():
    answer = csv_response(
        "a/b c", [{"name": '=HYPERLINK("x")', "delta": -1.5}, {"name": "plain, with comma"}], ("name", "delta")
    )
    rows = list(csv.DictReader(io.StringIO(answer.made().decode())))
    assert rows[0] == {"name": '\'=HYPERLINK("x")', "delta": "-1.5"}
    assert rows[1] == {"name": "plain, with comma", "delta": ""}
    assert re.search(r'filename="a-b-c.csv"', answer.headers["content-disposition"])


def test_a_view_is_json_with_its_instants_in_utc(build):
    said = json.loads(json_response(build.commits(1)[0]).made())
    assert said["authored_at"] == "2026-03-01T12:00:00Z"


def test_parts_of_charts_are_json_by_their_names():
    parts = [Tick(Ratio(0.1, 0.0, 0.2)), CurvePoint(3, 1.5, (1.0, 2.0)), Groups((0.1, 0.3), Ratio(0.2, 0.1, 0.3))]
    assert json.loads(json_response(parts).made()) == [
        {"log_ratio": 0.1, "low": 0.0, "high": 0.2, "failed": False, "nothing": False},
        {"place": 3, "height": 1.5, "low": 1.0, "high": 2.0, "hollow": False},
        {"log_ratios": [0.1, 0.3], "low": 0.1, "high": 0.3},
    ]


def test_addresses_survive_any_name():
    address = links.workload("org/repo", "a?b#c/d", case="x[n=1,f4]")
    assert address == "/projects/org%2Frepo/workloads/a%3Fb%23c%2Fd?case=x%5Bn%3D1%2Cf4%5D"


def test_the_twin_of_a_page_has_the_same_state():
    assert links.in_format("/", "project=p", "json") == "/overview.json?project=p"
    assert links.in_format("/jobs", "", "csv") == "/jobs.csv"


def test_words_of_a_command_stay_whole_and_its_text_the_same():
    command = "pullback run --suite 'quick:a<b*'\n  --no-fetch x-y & z"
    drawn = _whole_words(command)
    assert re.findall("<span>(.*?)</span>", drawn) == ["--suite", "--no-fetch", "x-y"]
    assert drawn.striptags() == " ".join(command.split())
    assert _whole_words(Markup("a --b &lt;c")) == "a <span>--b</span> &lt;c"


TEMPLATES = sorted(Path(pullback_dashboards.__file__).with_name("templates").glob("*.html"))


def test_templates_are_indented_and_pages_are_not():
    assert any(line.startswith("  ") for line in TEMPLATES[0].read_text(encoding="utf-8").splitlines())
    body = page(request(), "error.html", title="A", view=ErrorView(404, "No", "Nothing is here.")).made().decode()
    assert "Nothing is here." in body
    assert [line for line in body.splitlines() if line.startswith((" ", "\t"))] == []


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_a_template_can_be_read_line_by_line(template):
    lines = template.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if len(line) > 140] == []


def test_a_page_has_the_theme_that_the_reader_chose_and_no_other():
    def shown(cookie):
        asked = request()
        asked.scope["headers"] = [(b"cookie", cookie)]
        nothing = EmptyPage("Nothing is measured yet", (), None)
        return page(asked, "nothing.html", title="A <title>", nothing=nothing).made().decode()

    assert '<html lang="en" data-theme="dark">' in shown(b"pullback_theme=dark")
    assert '<html lang="en">' in shown(b'pullback_theme="><script>')
    assert "A &lt;title&gt;" in shown(b"theme=dark")


def test_the_overviews_first_sentence_has_spaces_where_a_sentence_has_them():
    source = TEMPLATES[0].with_name("overview.html").read_text(encoding="utf-8")
    macro = re.search(r"{% macro lede\(heat\) %}.*?{% endmacro %}", source, re.DOTALL).group()
    mean = {"variant": "fused", "value": "0.5×", "words": "2× faster", "cases": 1}
    moved = Tally("fused", worse=2, likely_better=1)
    for busy, end in ((0, ""), (1, " On a busy machine in 1 of 1 case.")):
        heat = {
            "has_means": True,
            "means": [{**mean, "busy": busy}],
            "averaged": "time, one case",
            "recent": 10,
            "moved": lambda _: moved,
        }
        shown = _templates().from_string(macro + "{{ lede(heat) }}").render(heat=heat)
        text = " ".join(re.sub("<[^>]*>", "", shown).split())
        assert text == f"fused 0.5× 2× faster ▲ 2 worse ▽ 1 likely better in 10 commits Time, one case.{end}"
