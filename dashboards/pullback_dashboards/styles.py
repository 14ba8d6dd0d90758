"""The style sheet of all pages: parts under `static/styles/`, a concept each, joined into one file.

The order is told here and nowhere else. A later layer outweighs an earlier one whatever their selectors are; inside a
layer a later part outweighs an earlier one where their selectors weigh the same.
"""

import re
from importlib.resources import files

LAYERS = {
    "tokens": ("tokens",),
    "frame": ("elements", "frame"),
    "parts": (
        "heads",
        "sections",
        "text",
        "choices",
        "tables",
        "pairs",
        "buttons",
        "filters",
        "paging",
        "outcomes",
        "counts",
        "heat",
        "sparks",
        "squares",
        "tiles",
        "strips",
        "forms",
        "menus",
        "charts",
        "compared",
        "boards",
        "settings",
        "help",
        "code",
        "news",
        "states",
        "triage",
        "evidence",
        "workload",
        "machines",
        "jobs",
        "sideways",
        "cards",
    ),
    "paper": ("paper",),
}
_COMMENT_OR_STRING = re.compile(r'/\*.*?\*/|("[^"]*")', re.DOTALL)
_BREAK = re.compile(r"\s*\n\s*")


def sheet() -> str:
    """All parts in their layers, without the comments and the indentation that browsers need not read."""
    parts = files(__package__).joinpath("static", "styles")
    layers = {
        layer: "".join(parts.joinpath(f"{name}.css").read_text(encoding="utf-8") for name in names)
        for layer, names in LAYERS.items()
    }
    whole = "".join(f"@layer {layer} {{\n{rules}}}\n" for layer, rules in layers.items())
    return _BREAK.sub("\n", _COMMENT_OR_STRING.sub(r"\1", whole))
