"""Text of strangers in SVG."""

import html

from pullback_service.visible import visible


def escape(text: str) -> str:
    """Text that is no markup, with what nobody sees made visible."""
    return html.escape(visible(text))
