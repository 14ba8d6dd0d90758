"""Signals that end `pullback up`."""

import os
import signal
import sys

import pytest

from pullback_cli.supervision.foreground import StopUp, _stop_on_signals


@pytest.fixture(autouse=True)
def _handlers():
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_signal_is_obeyed_once_and_a_second_one_does_not_interrupt_the_stopping():
    obey = _stop_on_signals()
    obey()
    with pytest.raises(StopUp):
        os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGTERM)


def test_a_signal_whose_exception_python_drops_is_obeyed_at_the_next_turn(monkeypatch):
    dropped = []
    monkeypatch.setattr(sys, "unraisablehook", lambda info: dropped.append(info.exc_type))

    class Finalized:
        def __del__(self):
            os.kill(os.getpid(), signal.SIGINT)

    obey = _stop_on_signals()
    Finalized()
    assert dropped == [StopUp]
    with pytest.raises(StopUp):
        obey()
