"""What schemathesis cannot know from the description.

A cursor is opaque: only one that an answer gave is good, and no pattern makes one. So requests that are meant to be good go
without, except where a link has brought a real one.
"""

import schemathesis
from schemathesis.generation import GenerationMode


@schemathesis.hook
def before_call(context, case, _kwargs):
    """Take made-up cursors out of requests that should be accepted."""
    if case.meta is not None and case.meta.generation.mode is GenerationMode.POSITIVE:
        (case.query or {}).pop("cursor", None)
    if isinstance(case.body, dict) and isinstance(case.body.get("wait_s"), (int, float)):
        case.body["wait_s"] = min(case.body["wait_s"], 0.1)  # nothing is queued; nobody has to wait for that
