"""The build hook: a compiler gives the counter, none gives a reason and no error."""

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def hook():
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("cc"), reason="no C compiler on this machine")
def test_the_counter_is_compiled_where_a_compiler_is(hook, tmp_path):
    library = tmp_path / "counter.so"
    assert hook.compile_counter(ROOT / hook.SOURCE, library) is None
    assert library.stat().st_size > 0


@pytest.mark.skipif(sys.platform != "linux", reason="asks for a compiler on Linux only")
def test_without_a_compiler_there_is_a_reason_and_no_library(hook, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CC", "no-such-compiler")
    assert "no C compiler" in hook.compile_counter(ROOT / hook.SOURCE, tmp_path / "counter.so")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("cc"), reason="no C compiler on this machine")
def test_a_source_that_does_not_compile_leaves_nothing_behind(hook, tmp_path):
    source = tmp_path / "broken.c"
    source.write_text("int main(")
    assert "said" in hook.compile_counter(source, tmp_path / "counter.so")
    assert list(tmp_path.iterdir()) == [source]
