"""Retries of a call to the service: without end, after the pause that the service asks for, or else a growing one."""

import random
from collections.abc import Iterable

import stamina
from stamina import Attempt

from pullback_runners.agent.errors import TransientError

SHORTEST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 60.0
"""After an outage an agent is back within a minute; a request a minute from each agent is no load."""


def retries(*, first_pause_s: float = 0.1) -> Iterable[Attempt]:
    """Attempts of a call until it succeeds or fails for good; each is a context manager that catches a TransientError."""
    return stamina.retry_context(
        on=pause_after, attempts=None, timeout=None, wait_initial=first_pause_s, wait_max=LONGEST_PAUSE_S
    )


def pause_after(error: Exception) -> bool | float:
    """The pause before the next attempt: up to half more than the service asks for, so that agents spread; True if it names none."""
    if not isinstance(error, TransientError):
        return False
    if error.retry_after_s is None:
        return True
    return min(max(error.retry_after_s, SHORTEST_PAUSE_S), LONGEST_PAUSE_S) * random.uniform(1, 1.5)  # noqa: S311 - no secret
