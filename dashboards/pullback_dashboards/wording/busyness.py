"""Words for a report that was measured on a busy machine."""

from collections.abc import Mapping
from typing import Any

BUSY = "busy machine"


def busy_words(harness: Mapping[str, Any]) -> str | None:
    """A sentence on what else was at work while a report was measured; None of a quiet machine.

    The report gives its reasons with the limits that were passed.
    """
    if harness.get("quality", "clean") == "clean":
        return None
    reasons = [str(reason) for reason in harness.get("contamination") or ()]
    return f"{BUSY}: {'; '.join(reasons) or 'other processes ran while it was timed'}"
