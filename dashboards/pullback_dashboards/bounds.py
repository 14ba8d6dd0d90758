"""What an address may say: texts that a name may be, and not too much.

A page repeats its own address in every link that keeps what was chosen, sixty times and more. A text that Postgres cannot
hold is refused here and not there: a page that opened early (`opening.py`) has said by then that all is well.
"""

from collections.abc import Mapping
from typing import Final

from fastapi import Request

from pullback_service.errors import refuse
from pullback_service.series.choosing import PARAM

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
            shown = name if len(name) <= LONGEST_NAME else f"{name[:40]}…"
            letters = f"{max(len(name), len(value)):,} letters"
            refuse(shown, f"The address has {letters} for {shown!r}: up to {most:,} are read, so say less.")
        if "\0" in value:
            refuse(name, f"The address has a NUL (%00) for {name!r}, which no text here holds: leave it out.")
        together += len(name) + len(value)
    if together > LONGEST_ADDRESS:
        refuse("*", f"The address asks in {together:,} letters: up to {LONGEST_ADDRESS:,} are read, so say less.")
