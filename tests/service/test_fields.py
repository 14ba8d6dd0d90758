"""Values that come in, and what the description says of them."""

import jsonschema
import pytest
from pydantic import TypeAdapter, ValidationError

from pullback_service.fields import LARGEST_LABEL, LARGEST_PARAMS_BYTES, LONGEST_LABEL, MOST_LABELS, CaseParams, Labels

LABELS = TypeAdapter(Labels)
GOOD = [
    {},
    {"gpu": "h200", "big": True, "cores": 16, "share": 0.5, "none": None, "site": ["here", 2, False]},
    {f"label {number}": "" for number in range(MOST_LABELS)},
    {"x" * LONGEST_LABEL: "é" * LONGEST_LABEL},
    {"low": -LARGEST_LABEL, "high": LARGEST_LABEL, "many": ["x"] * MOST_LABELS},
]
BAD = {
    "one label too many": ({f"label {number}": "" for number in range(MOST_LABELS + 1)}, "There may be 32 labels"),
    "a long name": ({"x" * (LONGEST_LABEL + 1): ""}, "names of up to 200 characters"),
    "a long word": ({"gpu": "x" * (LONGEST_LABEL + 1)}, "The label gpu is longer than 200 characters: shorten it."),
    "a long word among others": ({"gpu": ["", "x" * (LONGEST_LABEL + 1)]}, "The label gpu is longer"),
    "an object": (
        {"gpu": {"name": "h200"}},
        "The label gpu must be a word, a number, true, false or null, or up to 32",
    ),
    "a list in a list": ({"gpu": [["h200"]]}, "The label gpu must be a word"),
    "too many words": ({"gpu": ["x"] * (MOST_LABELS + 1)}, "or up to 32 of them"),
    "NUL in a word": ({"gpu": "a\x00"}, "NUL"),
    "NUL in a name": ({"g\x00": "a"}, "NUL"),
    "a number of 65 bits": ({"n": 2**64}, "64 bits"),
    "a large number": ({"n": 1e19}, "The number of the label n must be 2^53 in size at most."),
    "a whole number of 54 bits": ({"n": 2**53 + 1}, "2^53 in size at most"),
}


@pytest.mark.parametrize("labels", GOOD)
def test_labels_are_words_and_numbers_and_described_as_such(labels):
    assert LABELS.validate_python(labels) == labels
    jsonschema.validate(labels, LABELS.json_schema())


@pytest.mark.parametrize("wrong", BAD)
def test_what_is_no_label_is_refused_in_words_and_by_the_description(wrong):
    labels, words = BAD[wrong]
    with pytest.raises(ValidationError) as refused:
        LABELS.validate_python(labels)
    assert words in refused.value.errors()[0]["msg"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(labels, LABELS.json_schema())


def test_parameters_of_a_case_which_are_in_its_label_are_short():
    params = TypeAdapter(CaseParams)
    longest = {"text": "x" * (LARGEST_PARAMS_BYTES - len('{"text":""}'))}
    assert params.validate_python(longest) == longest
    with pytest.raises(
        ValidationError, match="take 4097 bytes of JSON, and may take 4096: shorten them, or use a name for long values"
    ):
        params.validate_python({"text": longest["text"] + "x"})
