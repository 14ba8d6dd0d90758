import csv
import io
import json
import re

from markupsafe import Markup

from pullback_dashboards import links
from pullback_dashboards.rendering import _whole_words, csv_twin, json_twin


def test_csv_keeps_numbers_and_tames_formulas():
    answer = csv_twin(
        "a/b c", [{"name": '=HYPERLINK("x")', "delta": -1.5}, {"name": "plain, with comma"}], ("name", "delta")
    )
    rows = list(csv.DictReader(io.StringIO(answer.body.decode())))
    assert rows[0] == {"name": '\'=HYPERLINK("x")', "delta": "-1.5"}
    assert rows[1] == {"name": "plain, with comma", "delta": ""}
    assert re.search(r'filename="a-b-c.csv"', answer.headers["content-disposition"])


def test_a_view_is_json_with_its_instants_in_utc(build):
    said = json.loads(json_twin(build.commits(1)[0]).body)
    assert said["authored_at"] == "2026-03-01T12:00:00Z"


def test_addresses_survive_any_name():
    address = links.workload("org/repo", "a?b#c/d", case="x[n=1,f4]")
    assert address == "/projects/org%2Frepo/workloads/a%3Fb%23c%2Fd?case=x%5Bn%3D1%2Cf4%5D"


def test_the_twin_of_a_page_has_the_same_state():
    assert links.twin("/", "project=p", "json") == "/overview.json?project=p"
    assert links.twin("/jobs", "", "csv") == "/jobs.csv"


def test_words_of_a_command_stay_whole_and_its_text_the_same():
    command = "pullback run --suite 'quick:a<b*'\n  --no-fetch x-y & z"
    drawn = _whole_words(command)
    assert re.findall("<span>(.*?)</span>", drawn) == ["--suite", "--no-fetch", "x-y"]
    assert drawn.striptags() == " ".join(command.split())
    assert _whole_words(Markup("a --b &lt;c")) == "a <span>--b</span> &lt;c"
