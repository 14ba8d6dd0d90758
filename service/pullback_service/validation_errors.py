"""The errors of invalid values in words: what is expected, and what was given.

Pydantic's own words are for who wrote the model. Each of these is a whole sentence, because it is shown behind a path,
behind other words, and alone.
"""

import json
from typing import Any

from pydantic_core import ErrorDetails

from pullback_service.fields import A_TIME, LINE, MAIL_ADDRESS, NAME, SHA, TEXT

_LONGEST_SHOWN = 40

_PATTERNS = {
    TEXT: "Remove the NUL character from the text.",
    LINE: "The value must be one line without control characters.",
    NAME: "A name must be one line without control characters, and without spaces at its ends.",
    SHA: "Give the full hash of the commit, 40 or 64 lower-case hexadecimal digits, as printed by `git rev-parse HEAD`.",
    MAIL_ADDRESS: "Give a mail address like bench@example.org.",
}
# By the type of an error: those to which what was given adds nothing.
_SENTENCES = {
    "missing": "A value is required.",
    "extra_forbidden": "Unknown name: remove it.",
    "datetime_parsing": A_TIME,
    "datetime_from_date_parsing": A_TIME,
    "datetime_type": A_TIME,
    "timezone_aware": "The time needs a time zone, like 2026-01-31T12:00:00Z or 2026-01-31T13:00:00+01:00.",
}
_TRUE_OR_FALSE, _A_WHOLE_NUMBER, _A_NUMBER, _AN_OBJECT = "true or false", "a whole number", "a number", "an object"
_AN_ID = "an id like 0196f3c1-8d5e-7a42-9b0c-2f6e51d7c8a4"
# By the type of an error: what may be given, with what the error itself says of it in braces.
_WANTED = {
    "literal_error": "{expected}",
    "greater_than": "more than {gt}",
    "greater_than_equal": "{ge} or more",
    "less_than": "less than {lt}",
    "less_than_equal": "{le} or less",
    "string_too_short": "{min_length} or more characters",
    "string_too_long": "{max_length} or fewer characters",
    "too_short": "{min_length} or more values",
    "too_long": "{max_length} or fewer values",
    "bool_parsing": _TRUE_OR_FALSE,
    "bool_type": _TRUE_OR_FALSE,
    "int_parsing": _A_WHOLE_NUMBER,
    "int_parsing_size": "a number of fewer digits",
    "int_from_float": _A_WHOLE_NUMBER,
    "int_type": _A_WHOLE_NUMBER,
    "float_parsing": _A_NUMBER,
    "float_type": _A_NUMBER,
    "finite_number": "a finite number",
    "string_type": "a string",
    "list_type": "a list",
    "dict_type": _AN_OBJECT,
    "model_type": _AN_OBJECT,
    "model_attributes_type": _AN_OBJECT,
    "uuid_parsing": _AN_ID,
    "uuid_type": _AN_ID,
}


def message_of(error: ErrorDetails) -> str:
    """The message of an invalid value. The value is quoted where the error holds it: short, and on one line."""
    kind, context = error["type"], error.get("ctx", {})
    if kind in _SENTENCES:
        return _SENTENCES[kind]
    if kind in _WANTED:
        wanted = _WANTED[kind].format_map({name: _in_words(value) for name, value in context.items()})
        return f"Give {wanted}{_instead_of(error, context)}."
    return _PATTERNS.get(context.get("pattern", ""), error["msg"])


def _instead_of(error: ErrorDetails, context: dict[str, Any]) -> str:
    if "input" not in error:
        return ""
    if error["type"].startswith("string_too_"):
        return f" instead of {len(error['input']):,}"
    return (
        f" instead of {_in_words(context['actual_length']) if 'actual_length' in context else _shown(error['input'])}"
    )


def _in_words(value: object) -> str:
    """Pydantic's error of a field in words: bounds are numbers, and 30.0 is 30 to people."""
    if isinstance(value, (int, float)):
        return f"{int(value):,}" if value == int(value) else f"{value:g}"
    return str(value)


def _shown(given: object) -> str:
    if isinstance(given, (dict, list)):
        return "an object" if isinstance(given, dict) else "a list"
    is_text = isinstance(given, str) and not given.removeprefix("-").isdecimal()  # numbers in addresses are texts too
    text = given if isinstance(given, str) else json.dumps(given, default=repr)
    excerpt = text[:_LONGEST_SHOWN]
    return (repr(excerpt) if is_text else excerpt) + ("…" if len(text) > _LONGEST_SHOWN else "")
