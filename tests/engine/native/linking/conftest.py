"""Small programs, and a cache of each test's own."""

import ctypes

import pytest


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The folder where objects of this test are kept."""
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("PULLBACK_CACHE", raising=False)
    monkeypatch.delenv("PULLBACK_CACHE_MIB", raising=False)
    return tmp_path / "native"


@pytest.fixture
def adding():
    """The text of a program `add(x)` that adds a number to another one."""

    def text(amount):
        return f"define i64 @add(i64 %x) {{\n  %y = add i64 %x, {amount}\n  ret i64 %y\n}}\n"

    return text


@pytest.fixture
def call():
    """Call a function of a loaded program from 64-bit integers to one."""

    def called(loaded, name, *numbers):
        function = ctypes.CFUNCTYPE(ctypes.c_int64, *([ctypes.c_int64] * len(numbers)))(loaded.address(name))
        return function(*numbers)

    return called
