"""Names of projects: all share one space of names, so two that look the same should be the same.

What is not seen is refused in the name of a new project only, so that those which were named before keep working.
"""

from typing import Annotated

from pydantic import AfterValidator

from pullback_service.errors import InvalidInputError
from pullback_service.fields import PlaceName
from pullback_service.name_characters import in_one_form, unseen_in

ProjectName = Annotated[PlaceName, AfterValidator(in_one_form)]
"""The name of a project that may be made by naming it."""


def refuse_unseen(name: str) -> None:
    """Raise where the name of a new project has a character that nobody sees, or takes for a blank."""
    unseen = unseen_in(name)
    if unseen is not None:
        raise InvalidInputError(f"The name of a new project has {unseen}")
