"""Text in Markdown: what people wrote stays what they wrote."""

import re

from pullback_service.visible_text import visible

_MARKUP = frozenset("\\|*_`<>[]#")


def markdown_text(text: str) -> str:
    """Text that no Markdown reader takes for markup or for the end of a cell."""
    return "".join(f"\\{c}" if c in _MARKUP else c for c in visible(text.replace("\n", " ")))


_AUTOMATIC = re.compile(r"(?<=[@#])(?=\w)|(?<=:)(?=//)|(?<=\bwww)(?=\.)", re.IGNORECASE)


def neutral(text: str) -> str:
    """The same where GitHub and GitLab read it, which make mentions, references and links out of plain text too.

    They look at the text that is shown, so that a sign before it does not help; a space of no width inside of it does.
    """
    return _AUTOMATIC.sub("\u200b", markdown_text(text))


def code(text: str, *, in_cell: bool = False) -> str:
    """Text as code of one line, in which nobody looks for mentions, references, links or markup."""
    line = visible(" ".join(text.split()))
    if in_cell:  # a sign before the one of ours would take its effect away
        line = line.replace("\\|", "\\ |").replace("|", "\\|")
    fence = "`" * (max((len(run) for run in re.findall("`+", line)), default=0) + 1)
    space = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{space}{line}{space}{fence}"
