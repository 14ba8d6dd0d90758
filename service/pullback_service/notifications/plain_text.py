"""Untrusted text in messages: names of cases, titles of commits, answers of servers. Pure.

A message shows what it says and does nothing else: no mention, no link and no line break that its writer did not put there.
"""

import re
from typing import Final

from pullback_service.visible_text import visible

_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")  # ends of lines, and what a terminal would obey
_BREAK: Final = "\u200b"  # of no width: what it separates looks as before and is not found by who looks for addresses
_MENTION: Final = re.compile(r"[@#~](?=\w)")
_SCHEME: Final = re.compile(r":(?=//)|(?<=mailto):|(?<=tel):", re.IGNORECASE)
_HOST: Final = re.compile(r"(?<=\w)\.(?=[^\W\d_]{2})")
_MARKDOWN_LINK: Final = re.compile(r"\](?=[(\[])")

_JOINERS = "\u200c\u200d"


def one_line(text: str, most: int) -> str:
    """The text in one line, with the numbers of characters that are not seen, and cut where it is longer."""
    text = visible(" ".join(_CONTROL.sub(" ", text).split()))
    # A joiner that the cut leaves without its second character would be shown as an invisible character the next time.
    return text if len(text) <= most else f"{text[: most - 1].rstrip(_JOINERS)}…"


def neutral(text: str) -> str:
    """The text as it looks, without anything that programs make a mention or a link of."""
    for pattern in (_MENTION, _SCHEME, _HOST, _MARKDOWN_LINK):
        text = pattern.sub(lambda match: match[0] + _BREAK, text)
    return text


def neutral_in_slack(text: str) -> str:
    """The same for Slack's markup and what reads it: https://docs.slack.dev/messaging/formatting-message-text#escaping."""
    return neutral(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
