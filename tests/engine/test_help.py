"""`help(pb.<name>)`: every public name says in a line what it is for, and shows an example, which runs.

An example stands indented in a docstring as a session with `>>>`; its output is compared.
"""

import doctest
import inspect

import numpy as np
import pytest

import pullback as pb

#: Modules whose own members are public too.
ROOMS = ("contexts", "debug", "inplace", "nn", "rule", "testing")


def _members():
    for name in pb.__all__:
        thing = getattr(pb, name)
        if inspect.ismodule(thing) or callable(thing):
            yield f"pb.{name}", thing
        if name in ROOMS:
            for member in getattr(thing, "__all__", None) or _defined_in(thing):
                if callable(getattr(thing, member)):
                    yield f"pb.{name}.{member}", getattr(thing, member)


def _defined_in(module):
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]


MEMBERS = dict(_members())


def examples_of(name):
    text = inspect.getdoc(MEMBERS[name]) or ""
    return doctest.DocTestParser().get_doctest(text, {"np": np, "pb": pb}, name, None, 0)


@pytest.mark.parametrize("name", MEMBERS)
def test_help_begins_with_one_line_on_the_purpose(name):
    first, _, rest = (inspect.getdoc(MEMBERS[name]) or "").partition("\n")
    assert 10 < len(first) <= 125, first
    assert first.endswith((".", ":")), first
    assert not rest or rest.startswith("\n")


@pytest.mark.parametrize("name", [name for name in MEMBERS if name.count(".") == 1])
def test_help_has_an_example(name):
    assert examples_of(name).examples


@pytest.mark.parametrize("name", [name for name in MEMBERS if examples_of(name).examples])
def test_the_examples_of_help_run(name):
    complaints = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert runner.run(examples_of(name), out=complaints.append).failed == 0, "".join(complaints)
