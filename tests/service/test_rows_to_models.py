"""Rows as plain values: by name, by another path, computed; in the order of the model."""

from types import SimpleNamespace

import pytest
from pydantic import BaseModel, ValidationError

from pullback_service.ratio_fields import RatioFields
from pullback_service.rows_to_models import filled, plain


class Model(BaseModel):
    first: int
    second: str
    third: list[int]


def test_fields_are_read_by_name_by_path_or_computed_in_the_order_of_the_model():
    read = plain(Model, third=lambda row: [row.first] * 2, second="inside.name")
    row = SimpleNamespace(first=1, inside=SimpleNamespace(name="two"), second="not this one")
    assert list(read(row).items()) == [("first", 1), ("second", "two"), ("third", [1, 1])]


def test_a_ratio_comes_behind_what_it_is_a_ratio_of():
    class Measured(RatioFields):
        name: str

    row = SimpleNamespace(name="a", log_ratio=0.5, low=0.4, high=0.6, n=20)
    assert [*plain(Measured)(row)] == ["name", "log_ratio", "low", "high", "n"]


def test_a_row_without_a_field_is_an_error():
    with pytest.raises(AttributeError, match="second"):
        plain(Model, third=lambda row: [])(SimpleNamespace(first=1))


def test_a_model_is_filled_from_what_is_made_and_from_the_first_row_that_has_a_field():
    rows = SimpleNamespace(second="two"), SimpleNamespace(first=1, second="not this one", third=[9])
    assert filled(Model, *rows, third=[3]) == Model(first=1, second="two", third=[3])


def test_a_model_is_not_filled_without_one_of_its_fields():
    with pytest.raises(ValidationError, match="third"):
        filled(Model, SimpleNamespace(first=1, second="two"))
