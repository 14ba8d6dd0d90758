"""What projects may be called: all share one space of names, so two that look the same should be the same.

What is not seen is refused in the name of a new project, and compositions of letters count as one letter (NFC), whichever
way they were typed. Letters of several scripts may stand in a name, although some look alike: who writes Greek, Russian or
Japanese beside Latin is no impostor, and who may make projects at all was given a token for it.
"""

import re
import unicodedata
from typing import Annotated

from pydantic import AfterValidator

from pullback_service.errors import InvalidInputError
from pullback_service.fields import PlaceName

# Category and character: controls, formats, halves of characters, ends of lines; blanks other than the usual one; and what
# Unicode calls letters, marks or symbols although it is drawn as nothing.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_BLANKS = "Zs"
_DRAWN_AS_NOTHING = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_NON_JOINER, _JOINER, _AS_EMOJI, _KEYCAP = "\u200c", "\u200d", "\ufe0f", "\u20e3"
_SKIN_TONES = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
_OTHER_EMOJI = frozenset("0123456789#*‼⁉〰")
_VIRAMA = 9  # the combining class of the sign that takes a vowel away, in the scripts of India


def in_one_form(name: str) -> str:
    """The name with every letter composed, as it is stored and compared."""
    return unicodedata.normalize("NFC", name)


ProjectName = Annotated[PlaceName, AfterValidator(in_one_form)]
"""The name of a project that may be made by naming it."""


def refuse_unseen(name: str) -> None:
    """Raise where the name of a new project has a character that nobody sees, or takes for a blank."""
    for at, character in enumerate(name):
        if _is_unseen(character) and not _does_its_work(name, at):
            called = unicodedata.name(character, "a control character")
            where = f"behind {name[:at]!r}" if at else "at its beginning"
            raise InvalidInputError(
                f"The name of a new project has U+{ord(character):04X} ({called}) {where}, where nobody sees it: "
                "leave it out, or write an ordinary blank."
            )


def _is_unseen(character: str) -> bool:
    category = unicodedata.category(character)
    if category == _BLANKS:
        return character != " "
    return category in _HIDDEN or _DRAWN_AS_NOTHING.match(character) is not None


def _does_its_work(name: str, at: int) -> bool:
    """Whether what is unseen here joins emoji or letters as their users write them, or keeps letters from joining."""
    before, character, after = name[:at], name[at], name[at + 1 :]
    if character == _AS_EMOJI:
        return _is_emoji(before[-1:])
    if character == _JOINER and _is_emoji(before.rstrip(_AS_EMOJI + _SKIN_TONES)[-1:]) and _is_emoji(after[:1]):
        return True
    if character in {_JOINER, _NON_JOINER} and before and after:  # RFC 5892, appendix A
        return unicodedata.combining(before[-1]) == _VIRAMA or (_is_arabic(before[-1]) and _is_arabic(after[0]))
    return False


def _is_emoji(character: str) -> bool:
    return character in _OTHER_EMOJI or (character != "" and unicodedata.category(character) in {"So", "Sm"})


def _is_arabic(character: str) -> bool:
    """Whether it is of a script whose letters join: Arabic, Persian, Urdu, Syriac."""
    return unicodedata.bidirectional(character) == "AL"
