"""Files of real tools, and reading them as an upload would be read."""

import io
import tarfile
from array import array
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pullback_service.reports.case_stream import PointRow
from pullback_service.reports.conversion import plain, read_upload
from pullback_service.reports.upload_query import UploadParameters

SAMPLES = Path(__file__).parents[2] / "data" / "importers"
NOW = datetime(2026, 11, 1, tzinfo=UTC)
LIMIT = 64 * 1024 * 1024
SHA = "a" * 40


def pack(folder, mode="w:gz"):
    """A folder as `tar czf - FOLDER` packs it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as archive:
        archive.add(folder, arcname=folder.name)
    return packed.getvalue()


@dataclass(frozen=True)
class Point:
    """A point with the process values that are stored of it."""

    kept: PointRow

    def __getattr__(self, name):
        return getattr(self.kept, name)

    @property
    def process_values(self):
        """As the column has them, in binary."""
        column = self.kept.ending[1]
        return None if column is None else array("d", column).tolist()


class Read:
    """An upload that was read: its report, and what would be stored of it."""

    def __init__(self, body, said):
        self.content = plain(body, limit=LIMIT)
        self.report = read_upload(self.content, UploadParameters(**said), now=NOW)
        self.document = self.report.head
        self.parts = self.report.parts

    @property
    def points(self):
        """Points by case, variant and metric."""
        return {
            (self.parts.cases[point.series.case].label, point.series.variant, point.series.metric): Point(point)
            for point in self.parts.points
        }

    def values(self, metric="time"):
        """Values of one metric by case."""
        return {label: point.value for (label, _, name), point in self.points.items() if name == metric}

    @property
    def failures(self):
        """Kinds of failures by case."""
        return {self.parts.cases[failure.case].label: failure.kind for failure in self.parts.failures}


@pytest.fixture
def sample():
    """The bytes of a sample; a folder is packed."""

    def load(name):
        path = SAMPLES / name
        return pack(path) if path.is_dir() else path.read_bytes()

    return load


@pytest.fixture
def read(sample):
    """Read a sample, or bytes, as an upload to a project, at a commit, from a machine."""

    def reading(what, **said):
        body = what if isinstance(what, bytes) else sample(what)
        return Read(body, {"project": "demo", "commit": SHA, "machine": "ci", **said})

    return reading
