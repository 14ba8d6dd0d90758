"""Changes of a series: arrays in, changes out. Imports nothing of the service."""

from pullback_service.regression.changes import Change, Kind
from pullback_service.regression.detector import DETECTOR, VERSION, Watcher, find_changes

__all__ = ["DETECTOR", "VERSION", "Change", "Kind", "Watcher", "find_changes"]
