import pytest

from pullback_dashboards.forms import Form, checked
from pullback_service.errors import InvalidInputError
from pullback_service.tokens.schemas import TokenRequest


def test_fields_are_text_numbers_and_ticks():
    form = Form({"name": "  ci ", "days": "90", "scope_read": "on", "empty": "", "odd": "soon"})
    assert (form.text("name"), form.text("nothing")) == ("ci", "")
    assert [form.number(name) for name in ("days", "empty", "nothing", "odd")] == [90, None, None, "soon"]
    assert (form.ticked("scope_read"), form.ticked("scope_admin")) == (True, False)


def test_an_answer_that_is_no_choice_is_taken_for_none_of_them():
    assert Form({"do": " move "}).choice("do", "move", "remove") == "move"
    with pytest.raises(InvalidInputError, match=r"^The form field 'do' is 'burn': give one of move, remove\.$"):
        Form({"do": "burn"}).choice("do", "move", "remove")
    with pytest.raises(InvalidInputError, match=r"^The form field 'do' is missing: give one of move, remove\.$"):
        Form({}).choice("do", "move", "remove")


def test_a_form_without_a_field_is_no_form_with_an_empty_one():
    Form({"days": ""}).needs("days")
    with pytest.raises(InvalidInputError, match="has no field 'days'"):
        Form({}).needs("days")


def test_a_field_that_does_not_hold_is_named():
    with pytest.raises(InvalidInputError) as refused:
        checked(TokenRequest, {"name": "ci", "scopes": []})
    assert refused.value.errors[0]["path"] == "scopes"
    with pytest.raises(InvalidInputError, match="one line"):
        checked(TokenRequest, {"name": "a\nb", "scopes": ["read"]})
