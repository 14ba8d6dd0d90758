"""The state of the overview: everything that its address decides."""

from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Literal, get_args

from fastapi import Query

from pullback_dashboards import links

Sort = Literal["name", "worst", "best"]
SORTS: tuple[Sort, ...] = get_args(Sort)
MOST_OPEN = 50

Short = Annotated[str | None, Query(max_length=200)]


@dataclass(frozen=True)
class State:
    """The state in the overview's address: None, false and the first are what an address without them means."""

    project: str | None = None
    machine: str | None = None
    metric: str | None = None
    q: str | None = None
    suite: str | None = None
    device: str | None = None
    changed: bool = False
    sort: Sort = "name"
    open: tuple[str, ...] = ()
    page: int = 1

    @property
    def narrows(self) -> bool:
        """True if it leaves cases out."""
        return bool(self.q or self.suite or self.device or self.changed)

    def address(self, **changed: Any) -> str:
        """The address of the page with something changed; another choice of cases begins at its first page."""
        if changed.keys() & {"q", "suite", "device", "changed", "sort", "machine", "metric"}:
            changed = {"page": 1} | changed
        return links.overview(**replace(self, **changed).parameters())

    def parameters(self) -> dict[str, Any]:
        """The query of an address, without what is meant anyway."""
        plain = State()
        told = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != getattr(plain, f.name)}
        return {name: "1" if value is True else value for name, value in told.items() if value not in (None, "", ())}

    def toggled(self, workload: str) -> str:
        """The address with a workload opened or closed."""
        rest = tuple(name for name in self.open if name != workload)
        return self.address(open=rest if workload in self.open else (*rest, workload))


async def asked(
    project: Short = None,
    machine: Short = None,
    metric: Short = None,
    q: Annotated[str | None, Query(max_length=200, description="Words that begin words of a case.")] = None,
    suite: Short = None,
    device: Short = None,
    changed: bool = False,  # noqa: FBT001, FBT002 - a query parameter
    sort: Sort = "name",
    open: Annotated[list[str], Query(max_length=MOST_OPEN)] = [],  # noqa: A002, B006 - a query parameter; FastAPI copies
    page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
) -> State:
    """The state out of an address. Empty answers of a form are none."""
    return State(
        project=project or None,
        machine=machine or None,
        metric=metric or None,
        q=(q or "").strip() or None,
        suite=suite or None,
        device=device or None,
        changed=changed,
        sort=sort,
        open=tuple(dict.fromkeys(open)),
        page=page,
    )
