"""Parametrized tests of which some cases are for every change, and the others `long`.

`@pytest.mark.sample(every=3)`: of its cases every third, which are the same ones in every run. Where parameters are
multiplied, their places are added up, so that each value of each of them is met.
"""

import re

import pytest


def _place(item):
    """The sum of the places that its parameters have in their lists; those that are given together count once."""
    names = (mark.args[0] for mark in item.iter_markers("parametrize"))
    firsts = [re.split(r"\W+", each)[0] if isinstance(each, str) else each[0] for each in names]
    return sum(item.callspec.indices[name] for name in firsts)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the others, before those that are not wanted are left out."""
    for item in items:
        sample = item.get_closest_marker("sample")
        if sample is not None and _place(item) % sample.kwargs["every"]:
            item.add_marker(pytest.mark.long)
