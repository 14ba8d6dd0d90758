"""Characters of names that people read: in normal form, and without invisible ones.

Names that look the same should be the same. Compositions of letters count as one letter (NFC), whichever way they were
typed. What is not seen is refused where a person chooses the name, and made visible where a program sends it, which nobody
could mend while an upload waits. Letters of several scripts may stand in a name, although some look alike: who writes Greek,
Russian or Japanese beside Latin is no impostor.
"""

import re
import unicodedata
from typing import Annotated

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from pullback_service.fields import LONGEST_NAME, Name
from pullback_service.visible_text import does_its_work

# Category and character: controls, formats, halves of characters, ends of lines; blanks other than the usual one; and what
# Unicode calls letters, marks or symbols although it is drawn as nothing.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_BLANKS = "Zs"
_DRAWN_AS_NOTHING = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


def in_one_form(name: str) -> str:
    """The name with every letter composed, as it is stored and compared."""
    return unicodedata.normalize("NFC", name)


def in_plain_sight(name: str) -> str:
    """The name in one form, with the numbers of those characters that nobody sees: `lab⟨U+200B⟩`."""
    if name.isascii() and name.isprintable():
        return name
    form = in_one_form(name)
    visible = "".join(f"⟨U+{ord(form[at]):04X}⟩" if _is_hidden(form, at) else form[at] for at in range(len(form)))
    return visible if len(visible) <= LONGEST_NAME else f"{visible[: LONGEST_NAME - 1]}…"


def unseen_in(name: str) -> str | None:
    """The first character of a name that is invisible or looks like a blank, and its place; None if there is none."""
    for at, character in enumerate(name):
        if _is_hidden(name, at):
            called = unicodedata.name(character, "a control character")
            where = f"after {name[:at]!r}" if at else "at its beginning"
            return (
                f"U+{ord(character):04X} ({called}) {where}, which is not visible: remove it, or use an ordinary space."
            )
    return None


def _in_one_form_and_seen(name: str) -> str:
    unseen = unseen_in(name)
    if unseen is not None:
        raise PydanticCustomError("unseen", f"The name has {unseen}")
    return in_one_form(name)


ChosenName = Annotated[Name, AfterValidator(_in_one_form_and_seen)]
"""A name that a person gives to something new."""
SentName = Annotated[Name, AfterValidator(in_plain_sight)]
"""A name that a program sends along with what must not be lost for it."""


def _is_hidden(name: str, at: int) -> bool:
    return _is_unseen(name[at]) and not does_its_work(name, at)


def _is_unseen(character: str) -> bool:
    category = unicodedata.category(character)
    if category == _BLANKS:
        return character != " "
    return category in _HIDDEN or _DRAWN_AS_NOTHING.match(character) is not None
