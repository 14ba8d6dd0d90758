"""The package index that pip and uv are configured with on this machine."""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

_PIP = re.compile(r"(?:^|[.])(?:extra-)?index-url='(.*)'$|(?:^|[.])find-links='(.*)'$")
_UV_VARIABLES = ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS")
_UV_FILES = ("/etc/uv/uv.toml", "~/.config/uv/uv.toml")


def hosts_of_index() -> list[str]:
    """The hosts of all indexes that pip and uv are configured with, with a port where it is another one than 80 or 443."""
    results = []
    for text in (*_of_pip(), *_of_uv()):
        for word in text.replace("\\n", " ").split():
            address = urlsplit(word.partition("=")[2] if re.match(r"[\w-]+=", word) else word)
            with suppress(ValueError):
                if address.scheme in {"http", "https"} and address.hostname:
                    results.append(
                        address.hostname if address.port in {None, 80, 443} else f"{address.hostname}:{address.port}"
                    )
    return list(dict.fromkeys(results))


def _of_pip() -> Iterator[str]:
    done = subprocess.run([sys.executable, "-m", "pip", "config", "list"], check=False, capture_output=True, text=True)
    for line in done.stdout.splitlines():
        if match := _PIP.search(line.strip()):
            yield match[1] or match[2]


def _of_uv() -> Iterator[str]:
    for name in _UV_VARIABLES:
        yield os.environ.get(name, "")
    for file in _UV_FILES:
        with suppress(OSError, ValueError):
            settings: dict[str, Any] = tomllib.loads(Path(file).expanduser().read_text(encoding="utf-8"))
            for each in (settings, settings.get("pip", {})):
                listed = [each.get("index-url", ""), *each.get("extra-index-url", ()), *each.get("find-links", ())]
                yield from map(str, [*listed, *(index.get("url", "") for index in each.get("index", ()))])
