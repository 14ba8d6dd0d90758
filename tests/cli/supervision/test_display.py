"""What `up` says while it measures, where there is no terminal to draw on."""

import io
from types import SimpleNamespace

from rich.console import Console

from pullback_cli.supervision.display import Display
from pullback_cli.supervision.first_jobs import FollowedJob

COMMIT = {"sha": "a" * 40, "title": "Sum in one loop"}


def job(state, done=0, message=None):
    progress = {"done": done, "total": 42, "message": message} if message else None
    told = SimpleNamespace(state=state, failure_message=None, history=[SimpleNamespace(progress=progress)])
    return FollowedJob(COMMIT, told, new=True)


def test_a_log_gets_a_line_for_each_case_that_begins():
    written = io.StringIO()
    with Display(Console(file=written, width=200)) as display:
        for each in (
            job("queued"),
            job("running"),
            job("running", 0, "looking at the machine"),
            job("running", 0, "lse[n=8,f4,cpu]: checking the gradient, counting memory"),
            job("running", 1, "lse[n=8,f4,cpu]: group 1 of 6"),
            job("running", 2, "lse[n=8,f4,cpu]: group 2 of 6"),
            job("running", 9, "poly9[n=1,f8,cpu]: group 1 of 6"),
            job("done"),
        ):
            display.show([each])
    assert written.getvalue().splitlines() == [
        "aaaaaaaaaa Sum in one loop: running",
        "aaaaaaaaaa [0/42] looking at the machine",
        "aaaaaaaaaa [0/42] lse[n=8,f4,cpu]: checking the gradient, counting memory",
        "aaaaaaaaaa [9/42] poly9[n=1,f8,cpu]: group 1 of 6",
        "aaaaaaaaaa Sum in one loop: done",
    ]


def test_a_terminal_shows_how_far_it_is_and_keeps_no_line_of_it():
    written = io.StringIO()
    with Display(Console(file=written, width=120, force_terminal=True)) as display:
        display.show([job("running", 9, "poly9[n=1,f8,cpu]: group 1 of 6")])
        assert "9/42" in written.getvalue()
        assert "poly9[n=1,f8,cpu]: group 1 of 6" in written.getvalue()
        assert "[9/42]" not in written.getvalue()
