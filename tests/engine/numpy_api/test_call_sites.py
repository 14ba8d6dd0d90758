"""What cannot take a traced value is named with its file, line and expression, and with what to write instead."""

import linecache
import math

import numpy as np
import pytest
import scipy.linalg
from scipy.special import logsumexp

import pullback as pb
from pullback.errors import TracingError

RNG = np.random.default_rng(0)


def stored(x):
    y = np.zeros(3)
    y[0] = x[0]
    return np.sum(y)


def stored_row(x):
    y = np.zeros((2, 3))
    y[1] = x
    return np.sum(y)


def filled(x):
    y = np.zeros(3)
    y.fill(x[0])
    return np.sum(y)


def stored_in_line(x):
    y = np.zeros((2, 2))
    y.flat[0] = x[0]
    return np.sum(y)


def filled_in_line(x):
    y = np.zeros((2, 2))
    y.flat = x[0]
    return np.sum(y)


def filled_diagonal(x):
    y = np.eye(3)
    np.fill_diagonal(y, x)
    return np.sum(y)


def put(x):
    y = np.zeros(3)
    y.put([0, 1], x[:2])
    return np.sum(y)


@pytest.mark.parametrize(
    ("function", "expression", "remedy"),
    [
        (lambda x: logsumexp(x), "`logsumexp(x)`", r"call pb\.scipy\.special\.logsumexp$"),
        (lambda x: scipy.linalg.norm(x), "`scipy.linalg.norm(x)`", r"call pb\.scipy\.linalg\.norm$"),
        (lambda x: np.asarray(x)[0], "`np.asarray(x)`", r"call pb\.numpy\.asarray$"),
        (lambda x: np.sum(np.array([x[0], x[1]])), "`np.array([x[0], x[1]])`", r"call pb\.numpy\.array$"),
        (lambda x: math.sin(x[0]), "`math.sin(x[0])`", r"call numpy\.sin$"),
        (lambda x: float(x[0]), "`float(x[0])`", r"leave float\(\) out"),
        (lambda x: x[0].item(), "`x[0].item()`", r"leave \.item\(\) out"),
        (lambda x: sum(x.tolist()), "`x.tolist()`", r"work with the array itself"),
        (lambda x: RNG.normal(x, 1.0)[0], "`RNG.normal(x, 1.0)`", r"loc \+ scale \* rng\.standard_normal\(size\)$"),
        (lambda x: np.vectorize(abs)(x)[0], "`np.vectorize(abs)(x)`", r"pb\.numpy\.vectorize"),
        (lambda x: np.mean([2 * v for v in x]), "`np.mean([2 * v for v in x])`", r"numpy\.stack\(x\) makes an array"),
        (lambda x: np.diag([1.0, x[0]])[1, 1], "`np.diag([1.0, x[0]])`", r"numpy\.stack\(x\) makes an array"),
        (stored, "`y[0]`", r"cannot hold a traced value; make the array with pb\.numpy\.zeros"),
        (stored_row, "`y[1]`", r"cannot hold a traced value; make the array with pb\.numpy\.zeros"),
        (filled, "`y.fill(x[0])`", r"cannot hold a traced value; make the array with pb\.numpy\.zeros"),
        (stored_in_line, "`y.flat[0]`", r"cannot hold a traced value; make the array with pb\.numpy\.zeros"),
        (filled_in_line, "`y.flat`", r"cannot hold a traced value; make the array with pb\.numpy\.zeros"),
        (
            filled_diagonal,
            "`np.fill_diagonal(y, x)`",
            r"cannot hold a traced value; make the array with pb\.numpy\.zeros",
        ),
        (put, "`y.put([0, 1], x[:2])`", r"cannot hold a traced value; make the array with pb\.numpy\.zeros"),
    ],
)
def test_the_error_says_where_what_and_what_instead(function, expression, remedy):
    with pytest.raises(TracingError, match=remedy) as caught:
        pb.grad(function)(np.ones(3))
    message = str(caught.value)
    assert expression in message
    line = int(message.partition(", line ")[2].partition(",")[0])
    assert expression.strip("`") in linecache.getline(__file__, line)
    assert message.startswith(f"test_call_sites.py, line {line}, in {function.__name__}: ")


def test_plans_say_it_too():
    with pytest.raises(TracingError, match="test_call_sites.py, line .*`y\\[0\\]`"):
        pb.compile(pb.grad(stored))(np.ones(3))


def test_code_without_source_is_named_by_file_and_line():
    namespace = {"np": np}
    exec("def f(x):\n    return np.asarray(x)[0]", namespace)  # noqa: S102 - code without a file is the case
    with pytest.raises(TracingError, match="^<string>, line 2, in f: a traced value cannot become a plain array"):
        pb.grad(namespace["f"])(np.ones(3))


def test_other_errors_stay_what_they_are():
    def ragged(x):
        y = np.zeros(3)
        y[0] = [1.0, 2.0]
        return np.sum(x * y)

    with pytest.raises(ValueError, match="setting an array element with a sequence"):
        pb.grad(ragged)(np.ones(3))
