"""Names as other tools write them, made fit for tables and labels: one line, bounded, no control characters.

Two different names stay different: one that is too long keeps its beginning and gets a digest of the whole.
"""

import hashlib
import re
from collections.abc import Mapping
from math import isfinite
from typing import Any

import orjson

from pullback_service.fields import LARGEST_ID
from pullback_service.importers.json_paths import refuse
from pullback_service.importers.limits import LONGEST_MESSAGE, LONGEST_NAME, LONGEST_PARAMETER, MOST_PARAMETERS

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_DIGEST_LENGTH = 12

Scalar = str | int | float | bool | None


def name(text: str, path: str) -> str:
    """A name for a workload, a variant, a metric or a machine."""
    plain = " ".join("".join(character if character.isprintable() else " " for character in text).split())
    if not plain:
        refuse(path, "is an empty name")
    return _shortened(plain, LONGEST_NAME)


def message(text: str) -> str:
    """The message of a failure as a tool states it."""
    plain = _UNSTORABLE.sub("", text).strip()
    return plain[:LONGEST_MESSAGE] or "The tool gave no reason."


def parameters(given: Mapping[str, Any], path: str) -> dict[str, Scalar]:
    """Parameters as plain values: anything structured becomes its JSON."""
    if len(given) > MOST_PARAMETERS:
        refuse(path, f"has {len(given)} parameters; the limit is {MOST_PARAMETERS} (MOST_PARAMETERS)")
    return {name(key, path): parameter(value) for key, value in given.items()}


def parameter(value: Any) -> Scalar:
    """One parameter."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) <= LARGEST_ID else _shortened(hex(value), LONGEST_PARAMETER)
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if isinstance(value, str):
        return _shortened(_UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", value), LONGEST_PARAMETER)
    try:
        return _shortened(orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode(), LONGEST_PARAMETER)
    except orjson.JSONEncodeError:
        return _shortened(repr(value).encode("ascii", "backslashreplace").decode(), LONGEST_PARAMETER)


def literal(text: str) -> Scalar:
    """A parameter that came as text: `8` is a number, `'a'` the text a, everything else itself."""
    stripped = text.strip()
    if re.fullmatch(r"[+-]?\d{1,18}", stripped):
        return int(stripped)
    if re.fullmatch(r"[+-]?(\d+\.\d*|\.\d+|\d+(?=e))(e[+-]?\d{1,3})?", stripped, re.IGNORECASE) and len(stripped) < 40:
        return parameter(float(stripped))
    if stripped in {"True", "False"}:
        return stripped == "True"
    if len(stripped) >= 2 and stripped[0] == stripped[-1] and stripped[0] in "'\"":
        return parameter(stripped[1:-1])
    return parameter(text)


def _shortened(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH]
    return f"{text[: longest - _DIGEST_LENGTH - 1].rstrip()}…{digest}"
