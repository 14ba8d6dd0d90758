"""Untrusted text in SVG and in figures."""

import html

from pullback_service.visible_text import visible


def escape(text: str) -> str:
    """Escaped text, with invisible characters made visible."""
    return html.escape(visible(text))


def shortened(text: str, most: int) -> str:
    """The text, cut where it has more characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
