import ctypes
import importlib
import importlib.util
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

from pullback.backends.native.linking import load, symbols


def test_declarations_are_read_without_intrinsics_and_definitions():
    text = """
declare <8 x float> @llvm.fma.v8f32(<8 x float>, <8 x float>, <8 x float>)
declare void @blas_sgemm(ptr, ptr)
declare ptr @PyErr_Occurred()
@PyExc_TypeError = external global ptr
@constant0 = internal unnamed_addr constant i64 3, align 64
define void @program(ptr %table) {
  call void @blas_sgemm(ptr %table, ptr %table)
  ret void
}
"""
    assert symbols.declared_symbols(text) == ("PyErr_Occurred", "PyExc_TypeError", "blas_sgemm")


def test_objects_of_python_and_numpy_are_where_their_ids_say():
    assert symbols.address_of("PyFloat_Type") == id(float)
    assert symbols.address_of("PyArray_Type") == id(np.ndarray)
    assert ctypes.c_void_p.from_address(symbols.address_of("PyExc_TypeError")).value == id(TypeError)


@pytest.mark.skipif(sys.platform == "win32", reason="has no such threads")
def test_the_c_library_has_every_name_that_is_listed():
    assert all(symbols.addresses_of(symbols.C_LIBRARY).values())


def test_places_in_numpys_table_are_those_of_its_headers():
    header = pathlib.Path(np.get_include(), "numpy", "__multiarray_api.h").read_text(encoding="utf-8")
    places = {
        name: int(place)
        for name, place in re.findall(r"#define (\w+) *\\?\s*\(\*[^#]*?PyArray_API\[(\d+)\]", header)
        if name in symbols.NUMPY_TABLE
    }
    assert places == symbols.NUMPY_TABLE


@pytest.mark.parametrize(("letter", "kind"), [("s", "f4"), ("d", "f8")])
def test_a_program_calls_blas(letter, kind, cache):
    element = {"s": "float", "d": "double"}[letter]
    text = f"""
declare void @blas_{letter}gemm(ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr)
define void @product(ptr %a, ptr %b, ptr %c) {{
  %no = alloca i8
  store i8 78, ptr %no
  %n = alloca i32
  store i32 3, ptr %n
  %one = alloca {element}
  store {element} 1.0, ptr %one
  %zero = alloca {element}
  store {element} 0.0, ptr %zero
  call void @blas_{letter}gemm(ptr %no, ptr %no, ptr %n, ptr %n, ptr %n, ptr %one, ptr %b, ptr %n, ptr %a, ptr %n, ptr %zero, ptr %c, ptr %n)
  ret void
}}
"""
    a, b = np.arange(9, dtype=kind).reshape(3, 3), np.arange(9, dtype=kind).reshape(3, 3) - 4
    c = np.empty_like(a)
    loaded = load(text)
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(loaded.address("product"))(*(x.ctypes.data for x in (a, b, c)))
    assert np.array_equal(c, a @ b)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("nonsense", "no symbol that programs are given"),
        ("system", "no symbol that programs are given"),
        ("blas_nonsense", "cython_blas does not have"),
        ("lapack_nonsense", "cython_lapack does not have"),
        ("PyNonsense", "this platform does not have"),
        ("PyArray_Nonsense", "this platform does not have"),
    ],
)
def test_names_that_nobody_knows_are_refused(name, reason):
    with pytest.raises(ValueError, match=reason):
        symbols.address_of(name)


def test_scipy_is_imported_by_the_first_program_that_asks_for_it_and_then_not_all_of_it():
    program = """
import sys
from pullback.backends.native.linking import symbols
symbols.addresses_of(["PyFloat_Type", "PyArray_Type", "malloc"])
print("scipy" in sys.modules)
before = symbols.addresses_of(["blas_sgemm", "blas_ddot", "lapack_dpotrf"])
print("scipy" in sys.modules, "scipy.linalg" in sys.modules, "scipy.linalg.cython_blas" in sys.modules)
import scipy.linalg.cython_blas
import scipy.linalg.cython_lapack
print(scipy.linalg.cython_blas is symbols.scipy_module("scipy.linalg.cython_blas"))
print(float(scipy.linalg.blas.ddot([1.0, 2.0], [3.0, 4.0])), float(scipy.linalg.cholesky([[4.0]])[0, 0]))
symbols.address_of.cache_clear(); symbols.scipy_module.cache_clear()
print(before == symbols.addresses_of(before))
"""
    output = subprocess.check_output([sys.executable, "-c", program], text=True).splitlines()
    assert output == ["False", "True False False", "True", "11.0 2.0", "True"]


def test_scipy_of_another_layout_is_imported_as_a_whole(monkeypatch):
    def unloadable(spec):
        raise ImportError(f"{spec.name} cannot be loaded alone")

    symbols.scipy_module.cache_clear()
    symbols.address_of.cache_clear()
    for name in [name for name in sys.modules if name.startswith("scipy.linalg.cython_")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(importlib.util, "module_from_spec", unloadable)
    assert symbols.address_of("blas_sgemm")
    assert "scipy.linalg.cython_blas" in sys.modules
