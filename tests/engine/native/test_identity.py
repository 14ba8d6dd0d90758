"""What has one key has one text: that keys tell programs apart, and that equal programs have equal ones."""

import dataclasses
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from pullback.backends.native import identity
from pullback.backends.native.executable import NativeExecutable
from pullback.backends.native.memory import Memory, plan_memory
from pullback.backends.native.program import emit_program
from pullback.backends.nests.fusion import FusedNodes, Kernels, SingleNode
from pullback.backends.nests.views import Access
from pullback.core.primitive import Primitive
from pullback.core.types import ArrayType
from pullback.ir.graph import Graph, Literal, Node, Var
from pullback.rules import elementwise
from pullback.rules.indexing import index

F8 = np.dtype("f8")
PYTHON_FLOAT = ArrayType((), F8, weak=True)


def graph(number=2.0, *, shape=(3,), dtype=F8, primitive=elementwise.mul, key=slice(0, 2), outputs=1):
    """x * number, and a part of it."""
    type_ = ArrayType(shape, np.dtype(dtype))
    x, y = Var(0, type_), Var(1, type_)
    part = Var(2, ArrayType((len(range(*key.indices(shape[0]))), *shape[1:]), np.dtype(dtype)))
    literal = Literal(number, PYTHON_FLOAT)
    nodes = (
        Node(primitive, (x, literal), (), (y,), "here.py:1"),
        Node(index, (y,), (("key", key),), (part,), "here.py:2"),
    )
    return Graph((x,), (), nodes, (part, y)[:outputs])


def key_of(made, bits=256):
    return identity.program_key(plan_memory(made, bits), bits)


def text_of(made, bits=256):
    return emit_program(plan_memory(made, bits), bits).text()


def test_equal_programs_have_one_key_and_one_text():
    assert key_of(graph()) == key_of(graph()) != ""
    assert text_of(graph()) == text_of(graph())


OTHERS = {
    "another number": {"number": 3.0},
    "the next number": {"number": np.nextafter(2.0, 3.0).item()},
    "another shape": {"shape": (4,)},
    "another dtype": {"dtype": "f4"},
    "another primitive": {"primitive": elementwise.add},
    "another part": {"key": slice(1, 3)},
    "more outputs": {"outputs": 2},
}


@pytest.mark.parametrize("changes", OTHERS.values(), ids=OTHERS)
def test_programs_that_differ_have_different_keys(changes):
    assert key_of(graph(**changes)) != key_of(graph())


def test_zeros_of_either_sign_and_numbers_of_either_kind_are_told_apart():
    numbers = [0.0, -0.0, 0, False, np.float64(0.0), np.float32(0.0), np.float64(-0.0), 0j]
    assert len({identity._of_value(number) for number in numbers}) == len(numbers)


def test_not_a_number_is_itself():
    assert identity._of_value(float("nan")) == identity._of_value(float("nan"))


def test_containers_are_told_apart():
    values = [(1, 2), [1, 2], ((1, 2),), (1, (2,)), "(1, 2)", slice(1, 2), None, ..., np.array([1, 2]), ("1", 2)]
    values += [np.array([1, 2], "i4"), np.array([[1, 2]]), np.dtype("f4"), np.dtype(">f4")]
    assert len({identity._of_value(value) for value in values}) == len(values)


def test_the_width_of_vectors_and_the_memory_are_in_the_key():
    assert key_of(graph(), 256) != key_of(graph(), 512)
    memory = plan_memory(graph(outputs=2), 256)
    more = dataclasses.replace(memory, nbytes=memory.nbytes + 64)
    elsewhere = dataclasses.replace(memory, scratch={0: 128})
    registers = dataclasses.replace(memory, in_registers=True)
    assert len({identity.program_key(changed, 256) for changed in (memory, more, elsewhere, registers)}) == 4


def test_layouts_of_what_is_given_are_in_the_key():
    made = graph(shape=(3, 3))
    (x,) = made.inputs
    keys = {
        identity.program_key(plan_memory(made, 256, layouts), 256)
        for layouts in ({}, {x: (3, 1)}, {x: (1, 3)}, {x: (6, 2)}, {x: (0, 1)})
    }
    assert len(keys) == 4  # C order said or not is one


def test_all_that_a_program_is_written_from_is_known_here():
    def fields(of):
        return [field.name for field in dataclasses.fields(of)]

    memory = [
        "graph",
        "kernels",
        "kept",
        "offsets",
        "scratch",
        "returned",
        "copied",
        "copying",
        "nbytes",
        "in_registers",
    ]
    assert fields(Memory) == memory
    assert fields(Kernels) == ["kernels", "views", "taken", "layouts"]
    assert fields(FusedNodes) == ["space", "nodes", "values", "read"]
    assert fields(SingleNode) == ["node"]
    assert fields(Access) == ["root", "offset", "strides"]
    assert fields(Graph) == ["inputs", "captures", "nodes", "outputs", "guards"]
    assert fields(Node) == ["primitive", "inputs", "params", "outputs", "source"]
    assert fields(ArrayType) == ["shape", "dtype", "weak"]
    assert fields(Literal) == ["value", "type"]


def test_where_a_node_stands_in_the_source_is_not_in_the_key():
    made = graph()
    moved = dataclasses.replace(
        made, nodes=tuple(dataclasses.replace(node, source="there.py:9") for node in made.nodes)
    )
    assert key_of(moved) == key_of(made)


@pytest.mark.parametrize("value", [object(), lambda: 0, {1: 2}, {1}, int, np.dtype("O"), np.array(["a"])])
def test_what_has_no_exact_form_makes_a_program_without_a_key(value):
    made = graph()
    nodes = (dataclasses.replace(made.nodes[0], params=(("odd", value),)), made.nodes[1])
    memory = plan_memory(made, 256)
    assert identity.program_key(dataclasses.replace(memory, graph=dataclasses.replace(made, nodes=nodes)), 256) == ""


def test_a_primitive_that_is_not_the_one_of_its_name_makes_a_program_without_a_key(monkeypatch):
    memory = plan_memory(graph(), 256)
    monkeypatch.delitem(Primitive.table, "mul")
    assert identity.program_key(memory, 256) == ""


def test_the_sources_are_in_the_key(tmp_path, monkeypatch):
    monkeypatch.setattr(identity, "_PACKAGE", tmp_path)

    def fingerprint():
        identity.sources_fingerprint.cache_clear()
        return identity.sources_fingerprint()

    try:
        inside = tmp_path / "folder" / "module.py"
        inside.parent.mkdir()
        inside.write_text("x = 1")
        first = fingerprint()
        assert fingerprint() == first
        inside.write_text("x = 2")
        os.utime(inside, (1, 1))
        second = fingerprint()
        inside.write_text("x = 3")
        os.utime(inside, (1, 1))  # same size, same time: another time of change of the file itself
        assert len({first, second, fingerprint()}) == 3
        (tmp_path / "folder" / "notes.txt").write_text("no source")
        (tmp_path / "__pycache__").mkdir()
        (tmp_path / "__pycache__" / "old.py").write_text("no source either")
        assert len({fingerprint(), fingerprint()}) == 1
        inside.unlink()
        with pytest.raises(identity._InexactError):
            fingerprint()
        assert key_of(graph()) == ""
    finally:
        identity.sources_fingerprint.cache_clear()


def test_a_program_that_is_on_disk_is_not_written_again(tmp_path, monkeypatch):
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("PULLBACK_CACHE", raising=False)
    first = NativeExecutable(graph())
    assert "text" in vars(first)
    again = NativeExecutable(graph())
    assert "text" not in vars(again)
    (result,) = again.runner(lambda *_: pytest.fail("declined"))(np.arange(3.0))
    assert np.array_equal(result, [0.0, 2.0])
    assert again.text == first.text


def test_a_key_that_leaves_something_out_is_noticed_when_checking(tmp_path, monkeypatch):
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PULLBACK_CACHE", "check")
    monkeypatch.setattr("pullback.backends.native.executable.program_key", lambda *_: "one key for all")
    NativeExecutable(graph())
    NativeExecutable(graph())
    with pytest.raises(RuntimeError, match="Two texts have the key one key for all"):
        NativeExecutable(graph(3.0))


def test_keys_and_texts_do_not_depend_on_the_order_of_sets():
    program = textwrap.dedent("""
        import hashlib
        import numpy as np
        import pullback as pb
        from pullback.backends.native import executable
        seen = []
        key_of = executable.program_key
        def listening(memory, bits):
            key = key_of(memory, bits)
            text = executable.emit_program(memory, bits).text()
            seen.append((key, hashlib.sha256(text.encode()).hexdigest()))
            return key
        executable.program_key = listening
        def loss(w, x, b):
            h = np.tanh(w @ x + b)
            return np.sum(h ** 2) + np.sum(np.exp(h), axis=0).max() + (w * w).mean()
        rng = np.random.default_rng(0)
        pb.compile(pb.value_and_grad(loss, wrt=(0, 1, 2)), tier="native")(
            rng.random((5, 6)), rng.random((6, 7)), rng.random((5, 1))
        )
        print(seen)
    """)
    outputs = {
        subprocess.check_output([sys.executable, "-c", program], text=True, env={**os.environ, "PYTHONHASHSEED": seed})
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert "('', " not in outputs.pop()
