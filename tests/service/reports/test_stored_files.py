"""One case of a stored file: the same, however the file holds our document."""

import orjson
import pytest

from pullback_service.reports.models import Report
from pullback_service.reports.packing import packed
from pullback_service.reports.queries import case_of
from pullback_service.series.cases import identity

CASES = [
    {"case": {"workload": name, "params": {"n": 1}, "dtype": "f4", "device": "cpu"}, "variants": [{"variant": name}]}
    for name in ("a", "b")
]
DOCUMENT = {"format": "pullback-report", "cases": CASES, "harness": {"suite": "quick"}}


def stored_as(content):
    return packed(orjson.dumps(content))


@pytest.mark.parametrize(
    "stored",
    [
        Report(body=stored_as(DOCUMENT), document=None),
        Report(body=stored_as({"version": "1.0", "pullback": DOCUMENT}), document=None),  # a pyperf file
        Report(body=stored_as({"cases": [{"case": {}}], "pullback": DOCUMENT}), document=None),
        Report(body=stored_as({"another": "tool's"}), document=stored_as(DOCUMENT)),
    ],
)
def test_a_case_is_found_by_what_it_is(stored):
    document, entry = case_of(stored, identity("b", {"n": 1.0}, "f4", "cpu"))
    assert entry == CASES[1]
    assert document["harness"] == {"suite": "quick"}
    assert [each["case"] for each in document["cases"]] == [each["case"] for each in CASES]
    assert case_of(stored, identity("c", {}, None, None)) is None
