"""Invisible characters made visible: they would hide, move or reverse the text around them.

Pages, Markdown, messages and tables of the command line pass what strangers wrote through here. JSON and CSV say exactly what was
sent. `static/log.js` of the pages does the same for lines that arrive while the page is open.
"""

import re
import unicodedata
from typing import Final

MOST_MARKS: Final = 4
"""Marks that one letter may wear: more of them are drawn over the lines above and below."""

# Control characters but tab and line feed; what turns the direction of text (Unicode UAX 9, section 2); what is drawn as nothing,
# separates lines that nobody sees, or is half a character.
HIDDEN: Final = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ud800-\udfff\ufeff\uffa0\ufff9-\ufffb"
)
_JOINING: Final = (
    "\u200c\u200d\ufe00-\ufe0f\U000e0001-\U000e01ef"  # what belongs to emoji, or keeps letters from joining
)
_MARKS: Final = "\u0300-\u034e\u0350-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u06d6-\u06dc\u0e31-\u0e3a\u0e47-\u0e4e\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
_LOOKED_FOR: Final = re.compile(f"[{HIDDEN}{_JOINING}]|(?<=[{_MARKS}]{{{MOST_MARKS}}})[{_MARKS}]+")
_AMONG_THEM: Final = re.compile(
    f"[{HIDDEN}{_JOINING}{_MARKS}]"
)  # a look ahead of the one that looks behind each character
_PICTURES: Final = 0x2400
_DELETE, _PICTURE_OF_DELETE = 0x7F, 0x2421
_FIRST_WITHOUT_PICTURE: Final = 0x20
_NON_JOINER, _JOINER, _AS_EMOJI = "\u200c", "\u200d", "\ufe0f"
_SKIN_TONES: Final = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
_OTHER_EMOJI: Final = frozenset("0123456789#*‼⁉〰")
_VIRAMA: Final = 9  # the combining class of the sign that takes a vowel away, in the scripts of India


def visible(text: str) -> str:
    """A text with pictures of its control characters (␛), and the numbers of what else nobody sees (⟨U+202E⟩)."""
    if (text.isascii() and text.isprintable()) or not _AMONG_THEM.search(text):
        return text
    return _LOOKED_FOR.sub(_picture, text)


def does_its_work(text: str, at: int) -> bool:
    """True if an invisible character joins emoji or letters as their users write them, or keeps letters from joining."""
    before, character, after = text[max(0, at - 3) : at], text[at], text[at + 1 : at + 2]
    if character == _AS_EMOJI:
        return _is_emoji(before[-1:])
    if character == _JOINER and _is_emoji(before.rstrip(_AS_EMOJI + _SKIN_TONES)[-1:]) and _is_emoji(after):
        return True
    if character in {_JOINER, _NON_JOINER} and before and after:  # RFC 5892, appendix A
        return unicodedata.combining(before[-1]) == _VIRAMA or (_is_arabic(before[-1]) and _is_arabic(after))
    return False


def _picture(match: re.Match[str]) -> str:
    result = match[0]
    code = ord(result[0])
    if len(result) > 1 or unicodedata.combining(result):
        return f"⟨+{len(result)} marks⟩"
    if does_its_work(match.string, match.start()):
        return result
    if code < _FIRST_WITHOUT_PICTURE:
        return chr(_PICTURES + code)
    return chr(_PICTURE_OF_DELETE) if code == _DELETE else f"⟨U+{code:04X}⟩"


def _is_emoji(character: str) -> bool:
    return character in _OTHER_EMOJI or (character != "" and unicodedata.category(character) in {"So", "Sm"})


def _is_arabic(character: str) -> bool:
    """True if it is of a script whose letters join: Arabic, Persian, Urdu, Syriac."""
    return unicodedata.bidirectional(character) == "AL"
