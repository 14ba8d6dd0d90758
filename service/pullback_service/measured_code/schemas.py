"""Answers about the code that was measured."""

from collections.abc import Mapping
from functools import lru_cache

from pydantic import BaseModel, Field

from pullback_service.measured_code.code_identity import CodeIdentity


class MeasuredSummary(BaseModel):
    """The measured code behind a number; null for facts that its reports do not state. Where two differ in text or harness, so do levels."""

    workload: str | None = Field(description="Digest of the workload's text.", examples=["5f0c3a6e9b1d7c24"])
    subject: str | None = Field(description="Digest of the files that make two commits differ.")
    harness: str | None = Field(description="Release of the harness.", examples=["0.9.0"])


@lru_cache(maxsize=1_000)
def plain_measured(measured: CodeIdentity) -> Mapping[str, str | None]:
    """A `MeasuredSummary`; thousands of readings share a few."""
    return {name: value or None for name, value in measured._asdict().items()}
