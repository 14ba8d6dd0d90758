"""Forms of pages: reading their fields, and checking them by the schemas that the API uses.

Who may send them is the service's business: `access/scopes.py` says what each needs, and a write with the cookie of a
login needs the CSRF token of the page (`logins/cookies.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError

from pullback_service.errors import FieldError, InvalidInputError
from pullback_service.logins.cookies import read_form
from pullback_service.validation_errors import message_of

SEE_OTHER = 303
_MOST_SAID = 40  # characters of a wrong answer

Schema = TypeVar("Schema", bound=BaseModel)


@dataclass(frozen=True)
class Form:
    """The fields of a form that was sent."""

    fields: Mapping[str, str]

    @classmethod
    async def of(cls, request: Request) -> "Form":
        """The form of a request; nothing where the body is something else."""
        return cls(await read_form(request))

    def text(self, name: str) -> str:
        """A field without blanks at its ends, empty where it is not there."""
        return self.fields.get(name, "").strip()

    def number(self, name: str) -> object:
        """A field as a whole number where it is one, None where it is empty."""
        text = self.text(name)
        return int(text) if text.lstrip("-").isdecimal() and len(text) < 20 else text or None

    def choice(self, name: str, *choices: str) -> str:
        """A field that is one of the choices: what is missing or something else is taken for none of them."""
        text = self.text(name)
        if text not in choices:
            complaint = f"is {text[:_MOST_SAID]!r}" if text else "is missing"
            _refuse(name, f"The form field {name!r} {complaint}: give one of {', '.join(choices)}.")
        return text

    def needs(self, *names: str) -> None:
        """Refuse a form without these fields, where a missing one would change what an empty one does."""
        for name in names:
            if name not in self.fields:
                _refuse(name, f"The form has no field {name!r}: send it, empty for no value.")

    def ticked(self, name: str) -> bool:
        """True if a box is ticked."""
        return name in self.fields


def _refuse(name: str, message: str) -> NoReturn:
    raise InvalidInputError(message, errors=[FieldError(path=name, message=message)])


def checked(schema: type[Schema], values: Mapping[str, Any]) -> Schema:
    """Fields as what the API takes, or an error that names the field as the page does."""
    try:
        return schema.model_validate(values)
    except ValidationError as error:
        results = [
            FieldError(path=".".join(str(step) for step in one["loc"]) or "form", message=message_of(one))
            for one in error.errors()
        ]
        first = results[0]
        raise InvalidInputError(f"{first['path']}: {first['message']}", errors=results) from error
