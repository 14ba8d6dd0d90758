"""The query parameters that select series: every dimension may be repeated, `param.n=1000` selects a parameter."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, TypeAlias

from fastapi import Depends, Query, Request
from pydantic import TypeAdapter, ValidationError

from pullback_service.errors import refuse
from pullback_service.fields import Name
from pullback_service.series.filters import PARAM, SeriesChoice

MOST_ALTERNATIVES = 50
MOST_PARAMS = 16
LONGEST_VALUE = 200

Kind: TypeAlias = Literal["tier", "peer", "external"]
Names = Annotated[list[Name], Query(max_length=MOST_ALTERNATIVES)]
_NAME = TypeAdapter(Name)


async def _chosen(
    request: Request,
    project: Name | None = None,
    workload: Names = [],  # noqa: B006 - FastAPI copies defaults
    case: Annotated[Names, Query(description="Label of the case.")] = [],  # noqa: B006 - as above
    dtype: Names = [],  # noqa: B006 - as above
    device: Names = [],  # noqa: B006 - as above
    variant: Names = [],  # noqa: B006 - as above
    kind: Annotated[list[Kind], Query(max_length=MOST_ALTERNATIVES)] = [],  # noqa: B006 - as above
    metric: Names = [],  # noqa: B006 - as above
    machine: Annotated[Names, Query(description="Name, host or class.")] = [],  # noqa: B006 - as above
    param: Annotated[
        list[Name],
        Query(
            max_length=MOST_PARAMS,
            description="A parameter of the case as `name=value`; `param.name=value` is the same.",
            examples=[["n=1000"]],
        ),
    ] = [],  # noqa: B006 - as above
    q: Annotated[
        str | None,
        Query(
            max_length=200,
            description="Words that begin words of the case's label, the variant, the metric or the machine's name.",
            examples=["dens tanh"],
        ),
    ] = None,
) -> SeriesChoice:
    return SeriesChoice(
        project=project,
        workload=workload,
        case=case,
        dtype=dtype,
        device=device,
        variant=variant,
        kind=kind,
        metric=metric,
        machine=machine,
        params=_params(request, param),
        text=q,
    )


ChosenSeries = Annotated[SeriesChoice, Depends(_chosen)]


def _params(request: Request, pairs: Sequence[str]) -> dict[str, list[str]]:
    results: dict[str, list[str]] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not (name and equals):
            refuse("param", f"{pair!r} is not a parameter: write name=value, as in param=n=1000.")
        results.setdefault(name, []).append(value)
    for key, value in request.query_params.multi_items():
        if key.startswith(PARAM):
            try:
                results.setdefault(_NAME.validate_python(key.removeprefix(PARAM)), []).append(value)
            except ValidationError:
                refuse("param", f"{key[:50]!r} names no parameter: write param.name=value, as in param.n=1000.")
    if len(results) > MOST_PARAMS or any(len(values) > MOST_ALTERNATIVES for values in results.values()):
        refuse("param", f"Give at most {MOST_PARAMS} parameters, with at most {MOST_ALTERNATIVES} values each.")
    for values in results.values():
        for value in values:
            if len(value) > LONGEST_VALUE or "\x00" in value:
                refuse("param", f"Give at most {LONGEST_VALUE} characters for a value of a parameter, and no NUL.")
    return results


def choice_of(project: str, query: Mapping[str, Sequence[str]]) -> SeriesChoice:
    """The choice that names and values say which were in an address once; other names mean something else.

    Values that no address could hold raise a ValidationError.
    """

    def told(name: str) -> list[str]:
        return [_NAME.validate_python(value) for value in query.get(name, ()) if value]

    params = {name.removeprefix(PARAM): list(values) for name, values in query.items() if name.startswith(PARAM)}
    text = " ".join(query.get("q", ()))[:LONGEST_VALUE]
    return SeriesChoice(
        project=project,
        workload=told("workload"),
        case=told("case"),
        dtype=told("dtype"),
        device=told("device"),
        variant=told("variant"),
        kind=told("kind"),
        metric=told("metric"),
        machine=told("machine"),
        params=params,
        text=text or None,
    )
