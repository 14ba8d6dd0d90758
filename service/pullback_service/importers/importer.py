"""An importer: a supported format and its two functions."""

from collections.abc import Callable
from dataclasses import dataclass

from pullback_service.importers.contents import Source
from pullback_service.importers.results import ImportedFile, UploadOptions


@dataclass(frozen=True, slots=True)
class Importer:
    """One format: its name in `?format=`, what people call it, and two pure functions."""

    name: str
    title: str
    recognises: Callable[[Source], bool]
    read: Callable[[Source, UploadOptions], ImportedFile]
