"""Text in Markdown: what people wrote stays what they wrote."""

_MARKUP = frozenset("\\|*_`<>[]#")


def markdown_text(text: str) -> str:
    """Text that no Markdown reader takes for markup or for the end of a cell."""
    return "".join(f"\\{c}" if c in _MARKUP else c for c in text.replace("\n", " "))
