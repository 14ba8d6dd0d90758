"""Requests and answers of boards."""

from datetime import datetime
from typing import Annotated, Literal, Self, TypeAlias
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from pullback_service.boards.queries import MOST_CHARTS, StoredBoard, StoredChart
from pullback_service.fields import AS_WHOLE, LINE, Name
from pullback_service.name_characters import ChosenName
from pullback_service.rows_to_models import filled

Kind: TypeAlias = Literal["explore", "workload", "compare"]
Value = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=LINE)]
Query = Annotated[dict[Name, Annotated[list[Value], Field(min_length=1, max_length=50)]], Field(max_length=40)]
Place = Annotated[int, Field(strict=True, ge=1, le=MOST_CHARTS), AS_WHOLE]


class BoardRequest(BaseModel):
    """A board to be made: one's own, or with `project` that project's."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"name": "Dense layers"}]})

    name: ChosenName
    project: Name | None = Field(None, description="Left out, it is the caller's own.")


class BoardChange(BaseModel):
    """Another name for a board."""

    model_config = ConfigDict(extra="forbid")

    name: ChosenName


class ChartRequest(BaseModel):
    """A chart to pin: a page of the dashboard, by its kind and the names and values in its address."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"kind": "explore", "project": "demo", "query": {"metric": ["time"]}}]},
    )

    kind: Kind
    project: Name
    workload: Name | None = Field(None, description="The name of the workload, for the kind `workload`.")
    query: Query = Field(default={}, examples=[{"metric": ["time"], "variant": ["fused", "native"]}])
    title: Name | None = Field(None, description="If left out, the dashboard generates one.")

    @model_validator(mode="after")
    def _workload_belongs_to_its_kind(self) -> Self:
        if (self.kind == "workload") != (self.workload is not None):
            raise PydanticCustomError(
                "workload", "The member `workload` is needed where `kind` is workload, and means nothing elsewhere."
            )
        return self


class ChartChange(BaseModel):
    """Changes to a pinned chart; what is left out stays, and a title of `null` is none."""

    model_config = ConfigDict(extra="forbid")

    title: Name | None = None
    place: Place | None = Field(None, description="From 1; the charts from there on move back.")


class ChartSummary(BaseModel):
    """A pinned chart. `place` is its place on the board, from 1."""

    id: int
    kind: Kind
    project: str
    workload: str | None
    query: dict[str, list[str]]
    title: str | None
    place: int

    @classmethod
    def of(cls, stored: StoredChart, place: int) -> Self:
        """A chart at its place among those the caller may see."""
        return filled(cls, stored, stored.chart, place=place)


class BoardSummary(BaseModel):
    """A board. `own`: it is the caller's; `may_change`: the caller may pin to it, and change it."""

    id: UUID
    name: str
    project: str | None = Field(description="The project of the board; null for a personal one.")
    owner: str = Field(description="The token or user that made it.", examples=["token 'ci'"])
    own: bool
    may_change: bool
    charts: int
    created_at: datetime
    changed_at: datetime

    @classmethod
    def of(cls, stored: StoredBoard) -> Self:
        """A board as lists show it."""
        return filled(cls, stored, stored.board, owner=stored.board.owner_name)


class BoardDetail(BoardSummary):
    """A board with its charts, in their order. Those of projects the caller may not read are not there."""

    pinned: list[ChartSummary]


class PinReceipt(BaseModel):
    """A chart that is on a board now, or was there already."""

    board_id: UUID
    chart: ChartSummary
