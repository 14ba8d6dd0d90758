"""The layout that all figures share, kept as data in layout.json beside this file."""

import json
from copy import deepcopy
from functools import cache
from importlib.resources import files
from typing import Any

Figure = dict[str, Any]

CONFIG: Figure = {
    "responsive": True,
    "displaylogo": False,
    "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"],
    "toImageButtonOptions": {"format": "svg", "filename": "pullback"},
}


def shared_layout() -> Figure:
    """A fresh copy of the shared layout, to be completed by a figure; `xaxis` and `yaxis` are meant for every axis."""
    return deepcopy(_read())


@cache
def _read() -> Figure:
    layout: Figure = json.loads(files(__package__).joinpath("layout.json").read_text(encoding="utf-8"))
    return layout
