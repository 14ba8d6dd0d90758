"""The table of docs/scale.md, put between markers of the page."""

import re
from collections.abc import Sequence
from typing import Any

from benchmarks.service_load.thresholds import Figure, table

MARKS = ("<!-- made by benchmarks.service_load: begin -->", "<!-- made by benchmarks.service_load: end -->")


def put_into(page: str, facts: dict[str, Any], figures: Sequence[Figure]) -> str:
    """The page with everything between its markers replaced."""
    begin, end = MARKS
    if page.count(begin) != 1 or page.count(end) != 1:
        raise ValueError(f"The page needs the lines {begin} and {end}, once each.")
    text = "\n\n".join((_said(facts), "\n".join(table(figures))))
    return re.sub(
        f"{re.escape(begin)}.*?{re.escape(end)}", lambda _: f"{begin}\n\n{text}\n\n{end}", page, flags=re.DOTALL
    )


def _said(facts: dict[str, Any]) -> str:
    tables = ", ".join(
        f"`{name}` {of['rows']:,} rows in {of['bytes'] / 1e9:.2f} GB"
        for name, of in facts["tables"].items()
        if of["rows"]
    )
    processes = "one process" if facts["replicas"] == 1 else f"{facts['replicas']} processes"
    return (
        f"Measured on {facts['machine']}, {facts['cpus']} CPUs shared by client, service ({processes}), worker and "
        f"Postgres {facts['postgres']}; Python {facts['python']}. With their indexes: {tables}."
    )
