"""Checks that readers of a stored document count on: that its parts are there, and of their kind.

Whatever is stored was validated when it came (`schemas.py`), by the rules of its release. So these say no more than what
pages cannot do without: a document that lacks it was changed where it is stored.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from pullback_service.ratio_fields import RatioEntry


class _Shape(BaseModel):
    model_config = ConfigDict(strict=True)


class _Commit(_Shape):
    sha: str
    title: str | None = None
    author: str | None = None
    authored_at: str | None = None
    branch: str | None = None


class _Machine(_Shape):
    host: str | None = None
    fingerprint: str | None = None
    facts: dict[str, Any] = {}


class _Harness(_Shape):
    version: str
    suite: str | None = None
    preflight: dict[str, Any] | None = None
    engine: dict[str, Any] | None = None
    refused: list[str] | None = None
    absent: list[str] | None = None


class _Case(_Shape):
    workload: str
    params: dict[str, Any] = {}
    dtype: str | None = None
    device: str | None = None


class _Gradient(_Shape):
    max_rel_error: float | None = None
    oracle: str | None = None


class _Error(_Shape):
    kind: str
    message: str


class _Metric(_Shape):
    unit: str
    value: float | None = None
    processes: list[float] | None = None
    slices: list[list[Any]] | None = None
    slice_counts: list[int] | None = None
    clock: str | None = None
    method: str | None = None


class _Digests(_Shape):
    workload: str | None = None
    subject: str | None = None
    code: str | None = None


class _Variant(_Shape):
    variant: str
    kind: str = ""
    metrics: dict[str, _Metric] = {}
    program_hash: str | None = None
    plan: dict[str, Any] | None = None
    digests: _Digests | None = None
    error: _Error | None = None


class _Ratio(_Shape, RatioEntry[float, float]):
    variant: str
    metric: str
    outcome: str


class _PairedRatio(_Ratio):
    baseline: str


class _Comparison(_Ratio):
    case: _Case
    reference: str
    candidate: str


class _Entry(_Shape):
    case: _Case
    gradient: _Gradient | None = None
    error: _Error | None = None
    variants: list[_Variant] = []
    paired: list[_PairedRatio] = []


class _Head(_Shape):
    project: str | None = None
    commit: _Commit
    machine: _Machine
    harness: _Harness
    cases: list[Any]
    comparisons: list[_Comparison] = []


def check_document(document: Mapping[str, Any]) -> None:
    """Raise ValueError where a document, or an entry of its cases, lacks what readers count on."""
    check_head(document)
    for entry in document["cases"]:
        check_entry(entry)


def check_head(document: Mapping[str, Any]) -> None:
    """The same for all but the entries."""
    _check(_Head, document)


def check_entry(entry: Mapping[str, Any]) -> None:
    """The same for one entry of the cases."""
    _check(_Entry, entry)


def check_case(case: Mapping[str, Any]) -> None:
    """The same for the variant and case that an entry names."""
    _check(_Case, case)


def _check(shape: type[_Shape], value: Mapping[str, Any]) -> None:
    try:
        shape.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "the whole"
        raise ValueError(f"no report any more: {place}: {first['msg']}") from error
