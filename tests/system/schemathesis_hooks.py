"""What schemathesis cannot know from the description.

A cursor is opaque: only one that an answer gave is good, and no pattern makes one. So requests that are meant to be good go
without, except where a link has brought a real one.
"""

from datetime import UTC, datetime

import schemathesis
from hypothesis import strategies as st
from schemathesis.generation import GenerationMode

# Times have a calendar that no schema says: 1970 to 2200.
CALENDAR = st.datetimes(datetime(1970, 1, 2), datetime(2199, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001 - they ask for naive bounds
schemathesis.openapi.format("date-time", CALENDAR.map(lambda time: time.isoformat().replace("+00:00", "Z")))


@schemathesis.hook
def before_call(context, case, _kwargs):
    """Take made-up cursors out of requests that should be accepted."""
    if case.meta is not None and case.meta.generation.mode is GenerationMode.POSITIVE:
        (case.query or {}).pop("cursor", None)
    if isinstance(case.body, dict) and isinstance(case.body.get("wait_s"), (int, float)):
        case.body["wait_s"] = min(case.body["wait_s"], 0.1)  # nothing is queued; nobody has to wait for that
    if case.operation.path.endswith("/log"):
        wait_s = (case.query or {}).get("wait_s", 0)
        if isinstance(wait_s, (int, float)) and 0.1 < wait_s <= 30:
            case.query = {**(case.query or {}), "wait_s": 0.1}
