"""Files that pages refer to: ours, and Plotly's JavaScript out of the installed package.

An asset's address holds the hash of its content, so it may be cached for ever and a new version is another address.
"""

import gzip
import hashlib
import importlib.util
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path

from pullback_dashboards.styles import sheet

_MEDIA = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
PLOTLY = "plotly.min.js"
STYLES = "pullback.css"
NAMES = frozenset(
    {
        "start.js",
        "theme.js",
        "figures.js",
        "live.js",
        "swap.js",
        "copy.js",
        "times.js",
        "log.js",
        "cells.js",
        "triage.js",
        "icon.svg",
        STYLES,
        PLOTLY,
    }
)


@dataclass(frozen=True)
class Asset:
    """One file as it is served."""

    name: str
    body: bytes

    @cached_property
    def digest(self) -> str:
        """The part of the address that changes with the content."""
        return hashlib.sha256(self.body).hexdigest()[:16]

    @cached_property
    def gzipped(self) -> bytes:
        """The same, compressed once and as well as it can be; Plotly shrinks from 4.8 to 1.4 MB."""
        return gzip.compress(self.body, mtime=0)

    @property
    def media_type(self) -> str:
        """The media type of the file, by its ending."""
        return _MEDIA[Path(self.name).suffix]

    @property
    def address(self) -> str:
        """The address of the file in pages."""
        return f"/static/{self.digest}/{self.name}"


@cache
def asset(name: str) -> Asset:
    """An asset by name, read once. KeyError for anything that is not in `NAMES`."""
    if name not in NAMES:
        raise KeyError(name)
    if name == PLOTLY:
        return Asset(name, _plotly_script().read_bytes())
    if name == STYLES:
        return Asset(name, sheet().encode())
    return Asset(name, files(__package__).joinpath("static", name).read_bytes())


def _plotly_script() -> Path:
    """The script inside the installed package, found without importing all of Plotly."""
    spec = importlib.util.find_spec("plotly")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(
            "Plotly is not installed, so pages have no interactive charts: pip install 'pullback[service]'"
        )
    return Path(spec.origin).parent / "package_data" / PLOTLY
