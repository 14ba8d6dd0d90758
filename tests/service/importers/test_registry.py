"""The steps of CONTRIBUTING, "Add an importer": each that is forgotten is named here."""

import pkgutil
from importlib import import_module

import pytest
from tests.service.importers.conftest import LIMIT, SAMPLES, pack

from pullback_service import importers
from pullback_service.importers import registry
from pullback_service.importers.contents import Source
from pullback_service.reports.conversion import plain

OF_ANOTHER = {"gradbench-nightly": "gradbench"}
"""Formats whose samples lie beside those of another one."""


def written():
    """The importers of all files of the folder."""
    for file in pkgutil.iter_modules(importers.__path__, f"{importers.__name__}."):
        module = import_module(file.name)
        if hasattr(module, "IMPORTER"):
            yield module


def test_every_importer_has_its_place_in_the_registry():
    for module in written():
        assert module.IMPORTER in registry.IMPORTERS, (
            f"{module.__name__}.IMPORTER has no place in IMPORTERS of importers/registry.py: nothing is read with it"
        )


@pytest.mark.parametrize("importer", registry.IMPORTERS, ids=lambda importer: importer.name)
def test_every_format_has_a_sample_that_is_described_and_tests_of_its_own(importer):
    folder = OF_ANOTHER.get(importer.name, importer.name)
    assert (SAMPLES / folder).is_dir(), f"put a file of the real tool into tests/data/importers/{folder}"
    described = (SAMPLES / "README.md").read_text()
    assert f"`{folder}/" in described, f"say in tests/data/importers/README.md how {folder}/ was made"
    tests = [file.read_text() for file in (SAMPLES.parents[1] / "service" / "importers").glob("test_*.py")]
    assert any(f"{folder}/" in text for text in tests), f"no test of tests/service/importers reads {folder}/"


@pytest.mark.parametrize("folder", sorted({path.name for path in SAMPLES.iterdir() if path.is_dir()}))
def test_a_file_is_read_by_the_importer_of_its_tool(folder):
    """Of the importers that recognise a file the first one reads it: stricter ones come first."""
    files = [path for path in (SAMPLES / folder).iterdir() if path.name not in {"LICENSE", "nightly"}]
    assert files
    for path in files:
        body = pack(path) if path.is_dir() else path.read_bytes()
        assert registry.choose(Source.of(plain(body, limit=LIMIT))).name == folder, path
