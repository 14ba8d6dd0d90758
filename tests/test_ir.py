"""The LLVM IR beside C files is what clang makes of them."""

import pytest
from tools import ir

SOURCES = pytest.mark.parametrize("source", ir.SOURCES, ids=lambda source: source.name)


@SOURCES
def test_the_ir_is_of_the_c_beside_it(source):
    _, is_current = ir.header_of(source)
    assert is_current, f"{source.name} or its IR was changed without the other: run `python -m tools.ir`"


@SOURCES
@pytest.mark.parametrize("changed", ["c", "ll"])
def test_a_change_of_one_alone_is_seen(source, changed, tmp_path):
    for file in source.parent.iterdir():
        if file.suffix in {".c", ".h", ".ll"}:
            (tmp_path / file.name).write_text(file.read_text(encoding="utf-8") + " " * (file.suffix == f".{changed}"))
    assert not ir.header_of(tmp_path / source.name)[1]


@pytest.mark.skipif(ir.version() is None, reason="clang-19 is not installed")
@SOURCES
def test_clang_makes_the_ir(source):
    made_by, _ = ir.header_of(source)
    if made_by != ir.version():
        pytest.skip(f"clang-19 {made_by} is not installed")
    assert ir.made_of(source) == source.with_suffix(".ll").read_text(encoding="utf-8")
