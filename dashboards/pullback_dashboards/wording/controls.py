"""Characters that are not there to be seen, made to be seen: in a log they would move, hide or turn what stands beside them.

`static/log.js` does the same for what is written while somebody looks on. The log itself stays as it was sent.
"""

import re

# Control characters but tab and line feed; and what turns the direction of text (Unicode UAX 9, section 2).
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_PICTURES = 0x2400
_DELETE, _PICTURE_OF_DELETE = 0x7F, 0x2421
_FIRST_WITHOUT_PICTURE = 0x20


def visible(text: str) -> str:
    """A text with pictures of its control characters (␛), and the numbers of those that have none (⟨U+202E⟩)."""
    return _HIDDEN.sub(_picture, text)


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < _FIRST_WITHOUT_PICTURE:
        return chr(_PICTURES + code)
    return chr(_PICTURE_OF_DELETE) if code == _DELETE else f"⟨U+{code:04X}⟩"
