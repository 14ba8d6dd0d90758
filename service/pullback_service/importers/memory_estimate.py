"""Estimate of the memory that the values of a JSON text take as objects, by its signs and before any is made.

A megabyte of JSON may become a hundred of objects. What is estimated is what CPython 3.11 to 3.14 need at most: objects and
lists with a few members, strings with their heads, a place of an object for each name.
"""

from typing import Final

import numpy as np

from pullback_service.errors import TooLargeError
from pullback_service.importers.limits import HEAVIEST_BYTES, HEAVIEST_CASE_BYTES, LONGEST_STRING_BYTES

_OF_A_CONTAINER: Final = 64
_OF_A_MEMBER: Final = 130
_OF_A_VALUE: Final = 40
_OF_A_STRING: Final = 50
BLOCK_BYTES: Final = 1024 * 1024
"""Bytes of a text that are searched at once, while no other thread runs."""
_LIGHT_BYTES: Final = 1024 * 1024
"""The size up to which no text needs too much memory: a byte takes a hundred at most."""
# What stands outside of strings, so that a long list of numbers is none.
_OUTSIDE: Final = b"0123456789+-.eE,:[]{} \t\r\ntruefalsnl"


def count(text: bytes, signs: bytes) -> int:
    """The number of these signs in a text, counted a block at a time: other threads wait while bytes are counted, 0.1 s for 64 MB."""
    blocks = range(0, len(text), BLOCK_BYTES)
    return sum(text.count(sign, at, at + BLOCK_BYTES) for sign in signs for at in blocks)


def weight_of(text: bytes) -> int:
    """Bytes that it takes, with what it is read to; what strings hold is counted as signs too."""
    return (
        len(text)
        + count(text, b"{[") * _OF_A_CONTAINER
        + count(text, b":") * _OF_A_MEMBER
        + count(text, b",") * _OF_A_VALUE
        + count(text, b'"') // 2 * _OF_A_STRING
    )


def refuse_heavy(text: bytes | memoryview) -> None:
    """Raise where a text is too heavy to be read as a whole."""
    if _is_heavier(text, HEAVIEST_BYTES):
        raise TooLargeError(
            f"The values of the body would take more than {HEAVIEST_BYTES // 2**20} MiB of memory (HEAVIEST_BYTES): send a part "
            "of it at a time."
        )


def refuse_heavy_case(text: bytes | memoryview) -> None:
    """The same for one case of a report, whose values are validated at once."""
    if _is_heavier(text, HEAVIEST_CASE_BYTES):
        raise TooLargeError(
            f"The values of a case would take more than {HEAVIEST_CASE_BYTES // 2**20} MiB of memory (HEAVIEST_CASE_BYTES): "
            "send fewer slices of it."
        )


def _is_heavier(text: bytes | memoryview, most: int) -> bool:
    return len(text) > _LIGHT_BYTES and weight_of(bytes(text)) > most


def refuse_long_strings(text: bytes) -> None:
    """Raise where a string is longer than any that is kept: one emoji in it makes four bytes of each of its characters."""
    if len(text) <= LONGEST_STRING_BYTES:
        return
    signs = np.frombuffer(text, np.uint8)
    end = 0  # of what was looked at, behind a quote that no backslash stands before
    for at in range(0, len(text), BLOCK_BYTES):
        block = signs[at : at + BLOCK_BYTES]
        quotes = np.flatnonzero(block == ord('"')) + at
        quotes = quotes[signs[np.maximum(quotes - 1, 0)] != ord("\\")]
        if len(quotes) == 0:
            continue
        _refuse_long_string(text, end, int(quotes[0]))  # within a block there is none as long
        end = int(quotes[-1]) + 1
    _refuse_long_string(text, end, len(text))


def _refuse_long_string(text: bytes, begin: int, end: int) -> None:
    if end - begin > LONGEST_STRING_BYTES and any(
        text[at : min(at + BLOCK_BYTES, end)].translate(None, _OUTSIDE) for at in range(begin, end, BLOCK_BYTES)
    ):
        raise TooLargeError(
            f"The body has a string of {end - begin} bytes; the limit is {LONGEST_STRING_BYTES} (LONGEST_STRING_BYTES)."
        )
