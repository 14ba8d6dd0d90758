"""Models filled from rows: `filled` makes a model or a view, `plain` the values alone, since making a thousand models takes longer than reading their rows."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields as fields_of
from operator import attrgetter
from typing import Any, TypeVar

from pydantic import BaseModel

from pullback_service.ratio import Ratio
from pullback_service.ratio_fields import IntervalFields

Model = TypeVar("Model")


def filled(model: type[Model], *rows: object, **made: object) -> Model:
    """A model or a dataclass of the fields that are `made` and, for each other one, the attribute of that name of the first row that has it."""
    if issubclass(model, BaseModel):
        return model.model_validate(_taken(model.model_fields, rows, made))
    return model(**_taken((field.name for field in fields_of(model)), rows, made))  # type: ignore[arg-type] # a dataclass


def _taken(names: Iterable[str], rows: tuple[object, ...], made: Mapping[str, object]) -> dict[str, object]:
    result = dict(made)
    for name in names:
        if name not in result:
            holder = next((row for row in rows if hasattr(row, name)), None)
            if holder is not None:
                result[name] = getattr(holder, name)
    return result


def plain(model: type[BaseModel], **sources: str | Callable[[Any], Any]) -> Callable[[Any], dict[str, Any]]:
    """Returns a function that takes the fields of a model, two or more, from a row.

    A field is the attribute of its name, or what its source says: the path of another one, or a function of the row. They are in
    the order of the model, those of a ratio last.
    """
    fields = tuple(model.model_fields)
    if issubclass(
        model, IntervalFields
    ):  # models inherit these: who reads an answer looks first for what has the ratio
        fields = tuple(sorted(fields, key=Ratio._fields.__contains__))
    made = {name: source for name, source in sources.items() if not isinstance(source, str)}
    paths = [source for name in fields if isinstance(source := sources.get(name, name), str)]
    # A field that is made holds any other one until then, so that the order stays.
    values_at = attrgetter(*(paths[0] if name in made else str(sources.get(name, name)) for name in fields))

    def values(row: Any) -> dict[str, Any]:
        result = dict(zip(fields, values_at(row), strict=True))
        for name, make in made.items():
            result[name] = make(row)
        return result

    return values
