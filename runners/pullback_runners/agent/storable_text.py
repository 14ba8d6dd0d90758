"""Text as the service can store it: Postgres has no NUL, and half of a character is no UTF-8."""

import re
from typing import Any, Final

from pullback_runners.agent.errors import JobFailedError

_DEEPEST: Final = 100
_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")


def storable_text(text: str) -> str:
    """The text with U+FFFD for each character that cannot be stored."""
    return _UNSTORABLE.sub("\ufffd", text)


def storable(value: Any, depth: int = 0) -> Any:
    """A value of JSON with texts that can be stored; JobFailedError if it is nested too deeply to be sent."""
    if depth > _DEEPEST:
        raise JobFailedError("workload", f"the report of the job is nested more than {_DEEPEST} levels deep")
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, dict):
        return {storable_text(key): storable(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list):
        return [storable(each, depth + 1) for each in value]
    return value
