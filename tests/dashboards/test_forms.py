import pytest

from pullback_dashboards.forms import Form, checked
from pullback_service.errors import InvalidInputError
from pullback_service.tokens.schemas import TokenRequest


def test_fields_are_text_numbers_and_ticks():
    form = Form({"name": "  ci ", "days": "90", "scope_read": "on", "empty": "", "odd": "soon"})
    assert (form.text("name"), form.text("nothing")) == ("ci", "")
    assert [form.number(name) for name in ("days", "empty", "nothing", "odd")] == [90, None, None, "soon"]
    assert (form.ticked("scope_read"), form.ticked("scope_admin")) == (True, False)


def test_a_field_that_does_not_hold_is_named():
    with pytest.raises(InvalidInputError) as refused:
        checked(TokenRequest, {"name": "ci", "scopes": []})
    assert refused.value.errors[0]["path"] == "scopes"
    with pytest.raises(InvalidInputError, match="one line"):
        checked(TokenRequest, {"name": "a\nb", "scopes": ["read"]})
