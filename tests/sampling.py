"""Parametrized tests of which some cases are for every change, and the others `long`.

`@pytest.mark.sample(every=3)`: of its cases every third, which are the same ones in every run. Where parameters are
multiplied, their places are added up, so that each value of each of them is met.
"""

import pytest


def _place(item):
    """The sum of the places that its parameters have in their lists, the last decorated of which pytest changes slowest."""
    number, place = max(item.callspec.indices.values()), 0
    for mark in reversed([*item.iter_markers("parametrize")]):
        number, here = divmod(number, len(mark.args[1]))
        place += here
    return place


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the others, before those that are not wanted are left out."""
    for item in items:
        sample = item.get_closest_marker("sample")
        if sample is not None and _place(item) % sample.kwargs["every"]:
            item.add_marker(pytest.mark.long)
