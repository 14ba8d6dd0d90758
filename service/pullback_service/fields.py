"""Types of values that come in: bounded, finite, and fit for Postgres (no NUL, no time outside its calendar)."""

import re
from datetime import UTC, datetime
from math import isfinite
from typing import Annotated, Any

import orjson
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BeforeValidator,
    Field,
    JsonValue,
    StringConstraints,
    TypeAdapter,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

LARGEST_JSON_BYTES = 256 * 1024
LARGEST_PARAMS_BYTES = 4 * 1024  # they are in the label of a case, and so in every list of cases
DEEPEST_JSON = 32
MOST_LABELS = 32
MOST_CASES = 20_000
MOST_METRICS = 64
MOST_PROCESSES = 10_000
LONGEST_LABEL = 200
LARGEST_LABEL = 2**53  # up to there every reader of JSON has the same numbers (RFC 8259, 6)
LARGEST_ID = 2**63 - 1
LARGEST_COUNT = 2**31 - 1
# Ratios and means of values between these stay finite; nothing that is measured comes near them.
SMALLEST_VALUE, LARGEST_VALUE = 1e-100, 1e100
LARGEST_LOG_RATIO = 200.0
HIGHEST_PRIORITY = 1000
LONGEST_TIMEOUT_S = 7 * 24 * 3600
LONGEST_RUN_S = 1_000_000_000  # thirty years
EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)

# A word for tables, labels and addresses: one line, no control characters, no blanks at its ends.
NAME = r"^[^\s\x00-\x1f\x7f]([^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f])?$"
LONGEST_NAME = 200
Name = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_NAME, pattern=NAME)]


def _no_step(value: str) -> str:
    if not {".", ".."}.isdisjoint(value.split("/")):
        raise PydanticCustomError("step", "A name that is part of addresses must not have . or .. between its slashes.")
    return value


# What pages have in their address: browsers would take these steps instead of asking for them.
PlaceName = Annotated[Name, AfterValidator(_no_step)]
LINE = r"^[^\x00-\x1f\x7f]*$"
TEXT = r"^[^\x00]*$"
Text = Annotated[str, StringConstraints(max_length=20_000, pattern=TEXT)]
SHA = r"^([0-9a-f]{40}|[0-9a-f]{64})$"
MAIL_ADDRESS = r"^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,250}[A-Za-z0-9])?$"
"""A mail address as browsers define it (https://html.spec.whatwg.org/#valid-e-mail-address): no blank, no comma, no quotes."""
Sha = Annotated[str, StringConstraints(pattern=SHA)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
RunSeconds = Annotated[Number, Field(ge=0, le=LONGEST_RUN_S)]
LogRatio = Annotated[Number, Field(ge=-LARGEST_LOG_RATIO, le=LARGEST_LOG_RATIO)]


def _whole(value: object) -> object:
    # To JSON 1.0 is as whole as 1, and to JSON Schema an integer.
    return int(value) if isinstance(value, float) and value.is_integer() else value


AS_WHOLE = BeforeValidator(_whole)
"""Validation of whole numbers of a body, after their bounds: before them it would keep them out of the description."""
Count = Annotated[int, Field(strict=True, ge=0, le=LARGEST_COUNT), AS_WHOLE]
Size = Annotated[int, Field(strict=True, ge=0, le=LARGEST_ID), AS_WHOLE]
Priority = Annotated[
    int,
    Field(
        strict=True,
        ge=-1000,
        le=HIGHEST_PRIORITY,
        description="Higher ones are given out first, among equals older ones; above 0 only before jobs of the same project.",
    ),
    AS_WHOLE,
]
Timeout = Annotated[
    Number, Field(gt=0, le=LONGEST_TIMEOUT_S, description="Time limit in seconds, after which the work is ended.")
]
Flag = Annotated[bool, Field(strict=True)]
KnownId = Annotated[int, Field(ge=1, le=LARGEST_ID)]


A_TIME = "The time must be a string like 2026-01-31T12:00:00Z."


def _within_calendar(value: datetime) -> datetime:
    if not EARLIEST <= value <= LATEST:
        raise PydanticCustomError("calendar", "The time must lie between 1970 and 2200.")
    return value.astimezone(UTC)


def _countable(value: float) -> float:
    if value != 0 and not SMALLEST_VALUE <= abs(value) <= LARGEST_VALUE:
        raise PydanticCustomError("magnitude", "A measured value must be zero or between 1e-100 and 1e100 in size.")
    return value


MeasuredNumber = Annotated[Number, AfterValidator(_countable)]
_EACH_MEASURED = TypeAdapter(list[MeasuredNumber])


def _all_countable(values: list[float]) -> list[float]:
    if not values or (min(values) >= SMALLEST_VALUE and max(values) <= LARGEST_VALUE):  # nearly all are times
        return values
    sizes = [size for size in map(abs, values) if size]
    if not sizes or (min(sizes) >= SMALLEST_VALUE and max(sizes) <= LARGEST_VALUE):
        return values
    return _EACH_MEASURED.validate_python(values)  # which says which of them it is


MeasuredList = Annotated[list[Number], AfterValidator(_all_countable)]
"""Many of them, looked at together: a call for each took a quarter of the time of reading a report."""


_A_NUMBER = re.compile(r"\s*[+-]?[\d_.]+([eE][+-]?\d+)?\s*")


def _text_only(value: object) -> object:
    # Pydantic would read a number, also one in an address, as seconds since 1970, and as milliseconds when it is large.
    if isinstance(value, (int, float)) or (isinstance(value, str) and _A_NUMBER.fullmatch(value)):
        raise PydanticCustomError("iso_time", A_TIME)
    return value


Time = Annotated[AwareDatetime, BeforeValidator(_text_only), AfterValidator(_within_calendar)]


def storable(value: JsonValue, depth: int = 0) -> JsonValue:
    """A JSON value that jsonb can hold: no NUL and no half of a character in any string, not too deep."""
    if depth > DEEPEST_JSON:
        raise PydanticCustomError("too_deep", "The value is nested too deeply.")
    if isinstance(value, dict):
        for key, item in value.items():
            _refuse_unstorable(key)
            storable(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            storable(item, depth + 1)
    else:
        _refuse_unstorable(value)
    return value


def _refuse_unstorable(value: str | float | None) -> None:
    if isinstance(value, str):
        if "\x00" in value:
            raise PydanticCustomError("nul", "A string must not contain the character NUL.")
        if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
            raise PydanticCustomError("surrogate", "A string must not contain half of a surrogate pair.")
    elif isinstance(value, int):
        if abs(value) > LARGEST_ID:
            raise PydanticCustomError("too_many_digits", "A whole number must fit into 64 bits.")
    elif isinstance(value, float) and not isfinite(value):
        raise PydanticCustomError("not_finite", "A number must be finite.")


def _storable_object(value: dict[str, Any]) -> dict[str, Any]:
    storable(value)
    if len(orjson.dumps(value)) > LARGEST_JSON_BYTES:
        raise PydanticCustomError("too_large", "The object is too large.")
    return value


JsonObject = Annotated[dict[str, JsonValue], AfterValidator(_storable_object)]


def _short_params(value: dict[str, Any]) -> dict[str, Any]:
    size = len(orjson.dumps(value))
    if size > LARGEST_PARAMS_BYTES:
        raise PydanticCustomError(
            "long_params",
            "The parameters of a case take {size} bytes of JSON, and may take {most}: shorten them, or use a name for long values.",
            {"size": size, "most": LARGEST_PARAMS_BYTES},
        )
    return value


CaseParams = Annotated[JsonObject, AfterValidator(_short_params)]


def _check_labels(value: dict[str, Any]) -> dict[str, Any]:
    if len(value) > MOST_LABELS or any(len(name) > LONGEST_LABEL for name in value):
        raise PydanticCustomError(
            "labels", f"There may be {MOST_LABELS} labels, with names of up to {LONGEST_LABEL} characters."
        )
    for name, said in value.items():
        words = said if isinstance(said, list) else [said]
        if len(words) > MOST_LABELS or any(isinstance(word, (list, dict)) for word in words):
            raise PydanticCustomError(
                "label",
                f"The label {_shown(name)} must be a word, a number, true, false or null, or up to {MOST_LABELS} of them.",
            )
        if any(isinstance(word, str) and len(word) > LONGEST_LABEL for word in words):
            raise PydanticCustomError(
                "label", f"The label {_shown(name)} is longer than {LONGEST_LABEL} characters: shorten it."
            )
        if any(isinstance(word, (int, float)) and abs(word) > LARGEST_LABEL for word in words):
            raise PydanticCustomError("label", f"The number of the label {_shown(name)} must be 2^53 in size at most.")
    return value


def _shown(name: str) -> str:
    return ascii(name)[1:-1]


_WORD: dict[str, Any] = {"type": "string", "maxLength": LONGEST_LABEL, "pattern": TEXT}
_SAID = [
    _WORD,
    {"type": "number", "minimum": -LARGEST_LABEL, "maximum": LARGEST_LABEL},
    {"type": "boolean"},
    {"type": "null"},
]

# They are compared by every claim and stand in every list of jobs and agents.
Labels = Annotated[
    JsonObject,
    AfterValidator(_check_labels),
    WithJsonSchema(
        {
            "type": "object",
            "maxProperties": MOST_LABELS,
            "propertyNames": _WORD,
            "additionalProperties": {
                "anyOf": [*_SAID, {"type": "array", "maxItems": MOST_LABELS, "items": {"anyOf": _SAID}}]
            },
        }
    ),
]
