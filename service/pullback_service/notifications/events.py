"""Events of notifications, and the facts of one. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, get_args

from pullback_service.notifications.plain_text import one_line

Event: TypeAlias = Literal[
    "confirmed", "culprit", "grown", "resolved", "withdrawn", "likely", "wrong_gradient", "missing"
]
"""The events that a channel can choose."""
EVENTS: Final[tuple[Event, ...]] = get_args(Event)
USUAL: Final[Sequence[Event]] = tuple(event for event in EVENTS if event != "likely")
"""The events of a channel that chose none; `likely` too where a rule names it, and while no agent can measure the project, since nothing can be
confirmed there."""
TEST: Final = "test"
CHANNEL_OFF: Final = "channel_off"
"""A channel was switched off: told on all others."""
DIGEST: Final = "digest"
"""Stands for the event of a message with several notifications."""

Facts: TypeAlias = Mapping[str, Any]
"""The facts of an event, as JSON. `title` and `sentence` are text for people; `url` is a page, by its path on this service or
whole; `evidence` (how it was measured) and `details` are more lines, `command` repeats it. `project`, `commit`, `severity`, and whatever else there is, are for programs; messages with one
`thread` belong together. Any text may be a stranger's."""

LONGEST_TITLE: Final = 200
LONGEST_SENTENCE: Final = 2_000
MOST_DETAILS: Final = 20


def tidied(facts: Facts) -> dict[str, Any]:
    """Facts whose texts for people are single lines of bounded length."""
    lines = {name: one_line(str(facts[name]), LONGEST_SENTENCE) for name in ("evidence", "command") if facts.get(name)}
    details = [one_line(str(line), LONGEST_SENTENCE) for line in facts.get("details", ())][:MOST_DETAILS]
    return {
        **facts,
        "title": one_line(str(facts["title"]), LONGEST_TITLE),
        "sentence": one_line(str(facts["sentence"]), LONGEST_SENTENCE),
        **lines,
        **({"details": details} if details else {}),
    }
