"""Limits of addresses: valid names, and their lengths.

A page repeats its own address in every link that keeps what was chosen, sixty times and more. A text that Postgres cannot
hold is refused here, with the name of its parameter.
"""

from collections.abc import Mapping
from typing import Final

from fastapi import Request

from pullback_service.errors import refuse
from pullback_service.series.filters import PARAM

LONGEST_TEXT: Final = 200
"""Letters of a text: as many as a name may have."""
LONGEST_NAME: Final = len(PARAM) + LONGEST_TEXT
LONGEST_OF: Final[Mapping[str, int]] = {"split": LONGEST_NAME, "case": 4_000, "chart": 8_000, "next": 8_000}
"""A split is another name, a case's label holds all its parameters, and the others are addresses of pages."""
LONGEST_ADDRESS: Final = 16_000
"""Letters of all names and values together."""


async def bounded(request: Request) -> None:
    """Refuse an address that says more, whatever it means."""
    together = 0
    for name, value in request.query_params.multi_items():
        most = LONGEST_OF.get(name, LONGEST_TEXT)
        if len(value) > most or len(name) > LONGEST_NAME:
            excerpt = name if len(name) <= LONGEST_NAME else f"{name[:40]}…"
            length = max(len(name), len(value))
            refuse(excerpt, f"{excerpt!r} in the address has {length:,} characters; the limit is {most:,}: shorten it.")
        if "\0" in value:
            refuse(name, f"{name!r} in the address contains a NUL character (%00): remove it.")
        together += len(name) + len(value)
    if together > LONGEST_ADDRESS:
        refuse(
            "*", f"The query of the address has {together:,} characters; the limit is {LONGEST_ADDRESS:,}: shorten it."
        )
