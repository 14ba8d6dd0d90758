"""The NumPy face of a traced value: operators, methods and NumPy's two protocols, all leading to primitives."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from pullback.core.primitive import GIVEN, Trace, TracedValue, current, innermost_trace
from pullback.errors import TracingError
from pullback.numpy_api import complex_numbers, selecting, shapes
from pullback.numpy_api.call_sites import is_library, located, refusal
from pullback.numpy_api.foreign_types import OPERANDS, is_operand, takes_type
from pullback.numpy_api.inplace_functions import FlatView, store_at, write_out
from pullback.numpy_api.keys import read
from pullback.numpy_api.masked_reads import as_mask, is_unknown, masked
from pullback.numpy_api.memory_order import Contents, copied, require_c_order, single
from pullback.numpy_api.refusals import no_rule
from pullback.numpy_api.surface import FUNCTIONS
from pullback.numpy_api.traced_stores import assign, is_itself, read_key, store, viewed
from pullback.numpy_api.ufuncs import UFUNCS, apply_ufunc
from pullback.rules import elementwise as e
from pullback.rules import logic, rounding
from pullback.rules import shapes as elements
from pullback.rules.contractions import matmul


def _method(function: Any) -> Callable[..., Any]:
    """The method of an array that NumPy also has as a function, with the same parameters."""

    def method(self: Any, *args: Any, **keywords: Any) -> Any:
        return _named(function, FUNCTIONS[function](self, *args, **keywords), (self, *args), keywords)

    method.__name__ = method.__qualname__ = function.__name__
    return method


def _refused(name: str, remedy: str) -> Callable[..., NoReturn]:
    """A method that a traced value cannot have."""

    def method(*_: Any, **__: Any) -> NoReturn:
        raise TracingError(f"x.{name}() is not for a traced value; {remedy}")

    method.__name__ = method.__qualname__ = name
    return method


_RETURN_IT = "return the value from the function first"
_NO_MEMORY = "it may have no memory of its own; inspect the arguments before they are traced"
_NO_WRITING = "its memory cannot be accessed"

#: Functions whose results NumPy gives as views of their first operand, or of each operand.
_VIEWING = {
    np.transpose, np.permute_dims, np.matrix_transpose, np.linalg.matrix_transpose, np.swapaxes, np.moveaxis, np.rollaxis,
    np.squeeze, np.expand_dims, np.broadcast_to, np.split, np.array_split, np.hsplit, np.vsplit, np.dsplit, np.unstack,
    np.flip, np.fliplr, np.flipud, np.rot90, np.diagonal, np.linalg.diagonal, np.diag, np.real, np.imag,
    np.reshape, np.ravel, np.atleast_1d, np.atleast_2d, np.atleast_3d, np.broadcast_arrays, np.trim_zeros,
}  # fmt: skip

#: Functions that make an array after a model, with nothing of its values.
_MAKING = {np.zeros_like, np.ones_like, np.empty_like, np.full_like}


def _named(function: Any, result: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """A result as NumPy would give it: a view of an operand, or an array of its own."""
    base: Any = args[0] if args else next(iter(keywords.values()), None)
    if function in _MAKING:
        return writable(result)
    if function not in _VIEWING or (function is np.diag and np.ndim(base) == 1):
        return _own(result, args)
    rest = args[1:]
    if function in (np.atleast_1d, np.atleast_2d, np.atleast_3d, np.broadcast_arrays) and len(args) > 1:
        parts = (_named_alone(function, array, part) for array, part in zip(args, result, strict=True))
        return type(result)(parts)
    if function in (np.reshape, np.ravel):
        order = keywords.get("order", rest[-1] if rest and isinstance(rest[-1], str) else "C")
        return _reshaped(base, result, order)
    if (
        issubclass(type(base), TracedValue)
        and function in (np.real, np.imag, np.trim_zeros)
        and (base.dtype.kind == "c" or function is np.trim_zeros)
    ):
        return viewed(base, result, _unknown_layout)
    return viewed(base, result, lambda array: function(array, *rest, **keywords))


def _named_alone(function: Any, base: Any, result: Any) -> Any:
    shape = np.shape(result)
    if function is np.broadcast_arrays:
        return viewed(base, result, lambda array: np.broadcast_to(array, shape))
    return viewed(base, result, function)


def _reshaped(base: Any, result: Any, order: Any) -> Any:
    shape = np.shape(result)

    def show_layout(layout: Any) -> Any:
        require_c_order(base)
        return np.reshape(layout, shape, order=order, copy=False)

    return viewed(base, result, lambda array: np.reshape(array, shape, order=order), show_layout=show_layout)


def _unknown_layout(_: Any) -> NoReturn:
    raise TracingError(
        "real, imag or trim_zeros of an array was followed by a store into one of the two, which would show in the other; "
        "call it again after the store"
    )


def _refuse_part(_: "Tracer", __: Any) -> NoReturn:
    raise TracingError("one part of a traced array cannot be stored alone; store both: `y[...] = re + 1j * im`")


def _own(result: Any, operands: tuple[Any, ...]) -> Any:
    """A result that shares no memory: a traced value that is its operand gets a name of its own."""
    if isinstance(result, tuple | list):
        return type(result)(_own(part, operands) for part in result) if type(result) in (tuple, list) else result
    if not isinstance(result, TracedValue):
        return result
    if isinstance(result.memory, Contents | None) and not any(result is operand for operand in operands):
        return result
    own = single(result)
    return own if isinstance(own, TracedValue) else result.holding(own)


def _of_numpy(operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """Python numbers as ufuncs take them: `np.divide(1.0, 0.0)` is infinite, and results have a dtype."""
    if not all(operand.__class__ in _PYTHON_NUMBERS for operand in operands):
        return operands
    return tuple(
        elements.astype(operand, dtype=operand.dtype) if issubclass(type(operand), TracedValue) else operand
        for operand in operands
    )


def _operator(function: Any) -> tuple[Any, Any]:
    """An operator, and the one of a value on the right; what is no operand of ours is left to its own class."""

    def method(self: Any, other: Any) -> Any:
        return function(self, other) if type(other) in OPERANDS or is_operand(other) else NotImplemented

    def reflected(self: Any, other: Any) -> Any:
        return function(other, self) if type(other) in OPERANDS or is_operand(other) else NotImplemented

    return method, reflected


def _in_place(function: Any) -> Callable[..., Any]:
    """An operator that writes to its left operand, for an array; a number is a new one, as NumPy's are."""

    def method(self: Any, other: Any) -> Any:
        if not (type(other) in OPERANDS or is_operand(other)):
            return NotImplemented
        result = function(self, other)
        if not self.shape and (self.memory is None or self.memory is GIVEN):
            return result
        if np.shape(result) != self.shape:
            raise ValueError(
                f"non-broadcastable output operand with shape {self.shape} doesn't match the broadcast shape {np.shape(result)}"
            )
        dtype = current(result).dtype
        if not np.can_cast(dtype, self.dtype, "same_kind"):
            raise TypeError(f"cannot cast the result of an operator in place from {dtype} to {self.dtype}")
        if self.memory is GIVEN or (self.memory is None and self.traced_by is not innermost_trace()):
            return shapes.astype(result, self.dtype)  # the caller keeps what is there
        assign(self, result)
        return self

    return method


class _OfMemory:
    """An attribute of an array in memory: a traced value has it, as an array does, and refuses its use."""

    __slots__ = ("_owner", "_text")

    def __init__(self, owner: "Tracer", text: str) -> None:
        self._owner = owner
        self._text = text

    def __getattr__(self, name: str) -> NoReturn:
        raise self._owner.refused(TracingError(self._text))

    def _refuse(self, *_: Any) -> NoReturn:
        raise self._owner.refused(TracingError(self._text))

    __getitem__ = __setitem__ = __iter__ = __len__ = __bool__ = __eq__ = __ne__ = _refuse
    __hash__ = None  # type: ignore[assignment]


def _of_memory(name: str, remedy: str) -> property:
    return property(lambda self: _OfMemory(self, f"x.{name} is not for a traced value; {remedy}"))


_ENGINE = str(Path(__file__).parents[1])
_PYTHON_NUMBERS = (float, int, complex, bool)


_have_shapes: ContextVar[bool] = ContextVar("have_shapes", default=False)


@contextmanager
def numbers_with_shapes() -> Iterator[None]:
    """Let traced Python numbers have the attributes of arrays without axes, as autograd's boxes have."""
    token = _have_shapes.set(True)
    try:
        yield
    finally:
        _have_shapes.reset(token)


def lack(number: "Tracer", name: str) -> None:
    """Of a traced Python number: say that it has no such attribute of arrays, but to the engine, which asks all of them."""
    if not _have_shapes.get() and not _asks_the_engine(3) and number.__class__ in _PYTHON_NUMBERS:
        raise AttributeError(
            f"{number.__class__.__name__!r} object has no attribute {name!r}; traced it has none either"
        )


def _asks_the_engine(depth: int) -> bool:
    return sys._getframe(depth).f_code.co_filename.startswith(_ENGINE)  # noqa: SLF001


class _NoLengthError(AttributeError, TypeError):
    """The error of `hasattr(x, "__len__")` and `len(x)` for a number."""


class _LengthOfArrays:
    """`__len__`, which arrays have and numbers have not."""

    def __get__(self, x: Any, owner: Any = None) -> Callable[[], int]:
        if x is not None and not x.shape and (_asks_the_engine(2) or not issubclass(x.class_of_value(), np.ndarray)):
            raise _NoLengthError("len() of an unsized traced value")
        return lambda: _length(x)


def _length(x: Any) -> int:
    if not x.shape:
        raise TypeError("len() of an unsized traced value")
    length: int = x.shape[0]
    return length


def class_of(shape: tuple[int, ...], dtype: np.dtype[Any]) -> type:
    """The class of what NumPy's functions give: an array, or a scalar where there is no axis."""
    return np.ndarray if shape else dtype.type


#: Attributes of arrays and tensors of other libraries, and what to write here.
_ELSEWHERE = {
    "at": "store into a copy, y = x.copy(); y[i] = v, or call pb.numpy.updated(x, i, v)",
    "block_until_ready": "leave it out: a call returns when its results are complete",
    "detach": "call pb.stop_gradient(x)",
    "backward": "call pb.grad(f)(x)",
}


class _ClassOfTracers(type):
    """Refuses `type(x) == float` and `type(x) in (int, float)`, which are false of a traced value; `is` cannot be intercepted."""

    on_device: bool

    def __eq__(cls, other: object) -> bool:
        if not isinstance(other, type) or cls is other or cls.on_device:
            return cls is other
        if (other in _PYTHON_NUMBERS or issubclass(other, np.ndarray | np.generic)) and not is_library(
            sys._getframe(1)
        ):
            name = other.__name__ if other in _PYTHON_NUMBERS else f"numpy.{other.__name__}"
            raise located(f"type(x) of a traced value is a class of the engine; ask isinstance(x, {name})")
        return False

    __hash__ = type.__hash__


class Tracer(TracedValue, metaclass=_ClassOfTracers):
    """A value under a trace. It behaves like the array or number it stands for, except that it cannot become one."""

    __slots__ = ()
    __array_priority__ = 1000.0  # legacy code paths that ask it leave operators to us

    # --- what it stands for; subclasses know ------------------------------------------------------------------------
    @property  # type: ignore[misc]  # isinstance asks for it where type() does not tell
    def __class__(self) -> type:
        """The class of the value: ndarray, a NumPy scalar or a Python number. The engine itself uses `type`."""
        return class_of(self.shape, self.dtype)

    def class_of_value(self) -> type:
        """The class of the value, computed where that takes computing."""
        return self.__class__

    def __getattr__(self, name: str) -> NoReturn:
        remedy = f"; {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
        raise AttributeError(f"a traced value has no attribute {name!r}{remedy}")

    def refused(self, error: Exception) -> Exception:
        """The error, for a trace that has to know of it."""
        return error

    @property
    def shape(self) -> tuple[int, ...]:
        raise NotImplementedError  # each trace knows its own values

    @property
    def dtype(self) -> np.dtype[Any]:
        raise NotImplementedError  # each trace knows its own values

    def __bool__(self) -> bool:
        raise NotImplementedError  # each trace knows its own values

    def __int__(self) -> int:
        raise NotImplementedError  # each trace knows its own values

    @property
    def ndim(self) -> int:
        ndim = len(self.shape)
        if not ndim:
            lack(self, "ndim")
        return ndim

    @property
    def size(self) -> int:
        if not self.shape:
            lack(self, "size")
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    @property
    def T(self) -> Any:
        if not self.shape:
            lack(self, "T")
        return np.transpose(self)

    mT = property(np.matrix_transpose)  # noqa: N815 (NumPy's name)
    real = property(np.real, _refuse_part)
    imag = property(np.imag, _refuse_part)

    @property
    def device(self) -> str:
        return "cpu"

    flags = _of_memory("flags", _NO_MEMORY)
    strides = _of_memory("strides", _NO_MEMORY)
    data = _of_memory("data", _NO_MEMORY)
    ctypes = _of_memory("ctypes", _NO_MEMORY)

    @property
    def flat(self) -> Any:
        return FlatView(self)

    @flat.setter
    def flat(self, value: Any) -> None:
        assign(self, FUNCTIONS[np.resize](value, self.shape))

    @property
    def base(self) -> None:
        return None

    __len__ = _LengthOfArrays()

    def __repr__(self) -> str:
        return f"<traced {self.dtype}{list(self.shape)}>"

    def __format__(self, spec: str) -> str:
        if spec:
            raise TracingError(
                f"a traced value cannot be formatted as {spec!r}; print it without a format, or return it with has_aux=True"
            )
        return repr(self)

    # --- NumPy's protocols ------------------------------------------------------------------------------------------
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        for operand in inputs:
            if type(operand) not in OPERANDS and not is_operand(operand):
                return NotImplemented
        if method == "__call__" and not self.shape and getattr(UFUNCS.get(ufunc), "operator", True):
            inputs = _of_numpy(inputs)  # where the rule is Python's operator, or made of such
        if method == "__call__" and not keywords:
            translation = UFUNCS.get(ufunc)
            if translation is not None:
                return _own(translation(*inputs), inputs)
        if method == "at":
            return store_at(ufunc, *inputs)
        out = keywords.pop("out", None)
        if out is not None:
            return write_out(ufunc, method, inputs, out, keywords)
        return _own(apply_ufunc(ufunc, method, inputs, keywords), inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        for type_ in types:
            if type_ not in OPERANDS and not takes_type(type_):
                return NotImplemented
        translation = FUNCTIONS.get(function)
        if translation is None:
            raise no_rule(function, f"{function.__module__}.{function.__name__}")
        return _named(function, translation(*args, **keywords), args, keywords)

    def holding(self, result: Any) -> Any:
        return writable(result)

    # --- what a trace cannot give -----------------------------------------------------------------------------------
    def __array__(self, *args: Any, **keywords: Any) -> Any:
        plain = np.array(self._known("a plain array"), *args, **keywords)
        plain.flags.writeable = False  # what is stored there would not be seen here
        return plain

    def __float__(self) -> float:
        return float(self._known("a float"))

    def __complex__(self) -> complex:
        return complex(self._known("a complex number"))

    def _known(self, kind: str) -> Any:
        """The plain array that this one holds, if it holds one, or that a plan is held to."""
        now = self.current()
        held = now.held() if isinstance(now, TracedValue) else now
        if held is None:
            raise refusal(kind)
        return held

    def __iter__(self) -> Any:
        if not self.shape:
            raise TypeError("iteration over a traced value of shape ()")
        return (self[position] for position in range(len(self)))

    def __contains__(self, item: Any) -> bool:
        return bool(FUNCTIONS[np.any](logic.equal(self, item)))

    def __setitem__(self, key: Any, value: Any) -> None:
        if not is_itself(self, key, value):
            store(self, key, value)

    # --- operators --------------------------------------------------------------------------------------------------
    __add__, __radd__ = _operator(e.add)
    __sub__, __rsub__ = _operator(e.sub)
    __mul__, __rmul__ = _operator(e.mul)
    __truediv__, __rtruediv__ = _operator(e.div)
    __rpow__ = _operator(e.power)[1]
    __floordiv__, __rfloordiv__ = _operator(rounding.floor_divide)
    __mod__, __rmod__ = _operator(rounding.remainder)
    __divmod__, __rdivmod__ = _operator(UFUNCS[np.divmod])
    __matmul__, __rmatmul__ = _operator(matmul)
    __and__, __rand__ = _operator(logic.bitwise_and)
    __or__, __ror__ = _operator(logic.bitwise_or)
    __xor__, __rxor__ = _operator(logic.bitwise_xor)
    __lshift__, __rlshift__ = _operator(logic.left_shift)
    __rshift__, __rrshift__ = _operator(logic.right_shift)
    __eq__ = _operator(logic.equal)[0]
    __ne__ = _operator(logic.not_equal)[0]
    __lt__ = _operator(logic.less)[0]
    __le__ = _operator(logic.less_equal)[0]
    __gt__ = _operator(logic.greater)[0]
    __ge__ = _operator(logic.greater_equal)[0]

    def __pow__(self, other: Any, modulo: None = None) -> Any:
        if modulo is not None:
            raise TracingError("pow of a traced value takes no modulus; write x**n % m")
        if isinstance(other, int) and self.dtype.kind == "b" and self.class_of_value() is np.ndarray and other == 2:
            return e.square(self)  # as the operator of NumPy's arrays, which gives int8
        return e.power(self, other) if type(other) in OPERANDS or is_operand(other) else NotImplemented

    def __invert__(self) -> Any:
        return logic.complement(self)

    def __neg__(self) -> Any:
        return e.neg(self)

    def __pos__(self) -> Any:
        if self.dtype.kind == "b":
            return self + 0 if self.class_of_value() is bool else UFUNCS[np.positive](self)  # which refuses
        return _own(self, (self,))

    __iadd__ = _in_place(e.add)
    __isub__ = _in_place(e.sub)
    __imul__ = _in_place(e.mul)
    __itruediv__ = _in_place(e.div)
    __ipow__ = _in_place(e.power)
    __ifloordiv__ = _in_place(rounding.floor_divide)
    __imod__ = _in_place(rounding.remainder)
    __imatmul__ = _in_place(matmul)
    __iand__ = _in_place(logic.bitwise_and)
    __ior__ = _in_place(logic.bitwise_or)
    __ixor__ = _in_place(logic.bitwise_xor)
    __ilshift__ = _in_place(logic.left_shift)
    __irshift__ = _in_place(logic.right_shift)

    def __abs__(self) -> Any:
        return e.absolute(self)

    __hash__ = None  # type: ignore[assignment]  # as for arrays: == compares elements

    def __getitem__(self, key: Any) -> Any:
        key = as_mask(key)
        if is_unknown(key):
            return masked(self, key)
        return read_key(self, key, read(self, key))

    # --- methods of ndarray -----------------------------------------------------------------------------------------
    sum = _method(np.sum)
    prod = _method(np.prod)
    mean = _method(np.mean)
    var = _method(np.var)
    std = _method(np.std)
    max = _method(np.max)
    min = _method(np.min)
    all = _method(np.all)
    any = _method(np.any)
    argmax = _method(np.argmax)
    argmin = _method(np.argmin)
    argsort = _method(np.argsort)
    argpartition = _method(np.argpartition)
    clip = _method(np.clip)
    cumprod = _method(np.cumprod)
    cumsum = _method(np.cumsum)
    diagonal = _method(np.diagonal)
    dot = _method(np.dot)
    nonzero = _method(np.nonzero)
    ravel = _method(np.ravel)
    repeat = _method(np.repeat)
    round = _method(np.round)
    searchsorted = _method(np.searchsorted)
    squeeze = _method(np.squeeze)
    swapaxes = _method(np.swapaxes)
    take = _method(np.take)
    trace = _method(np.trace)
    choose = _method(np.choose)

    def reshape(self, *shape: Any, order: Any = "C", copy: Any = None) -> Any:
        return np.reshape(self, shape[0] if len(shape) == 1 else shape, order, copy=copy)

    def copy(self, order: str = "C") -> Any:
        return copied(_own(self, (self,)), order)

    def flatten(self, order: str = "C") -> Any:
        return _own(shapes.ravel(self, order), (self,))

    def transpose(self, *axes: Any) -> Any:
        return np.transpose(self, (axes[0] if len(axes) == 1 else axes) or None)

    def fill(self, value: Any) -> None:
        assign(self, value)

    def put(self, indices: Any, values: Any, mode: str = "raise") -> None:
        FUNCTIONS[np.put](self, indices, values, mode)

    def sort(self, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> None:
        assign(self, FUNCTIONS[np.sort](self, axis, kind, order, stable=stable))

    def astype(
        self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
    ) -> Any:
        del order, casting, subok
        made = shapes.astype(self, dtype, copy=copy)
        return _own(made, (self,)) if copy else made

    conj = conjugate = complex_numbers.conj

    def compress(self, condition: Any, axis: Any = None, out: Any = None) -> Any:
        return selecting.compress(condition, self, axis, out)

    def __round__(self, ndigits: Any = None) -> Any:
        """Round as `round` does for a Python number: an int stays as it is; a rounded float is a value that the plan is guarded by."""
        class_: type = self.__class__
        if class_ in (int, bool) and (ndigits is None or ndigits >= 0):
            return +self
        rounded = np.round(self, 0 if ndigits is None else ndigits)
        return int(rounded) if class_ is float and ndigits is None else rounded

    __copy__ = _method(np.copy)

    def __deepcopy__(self, memo: Any) -> Any:
        del memo
        return _own(self, (self,))

    # --- what would write, or give plain values away -----------------------------------------------------------------
    def item(self, *place: Any) -> Any:
        return self._known("a Python number").item(*place)

    def tolist(self) -> Any:
        return self._known("a list").tolist()

    tobytes = _refused("tobytes", _RETURN_IT)
    dump = _refused("dump", _RETURN_IT)
    dumps = _refused("dumps", _RETURN_IT)
    tofile = _refused("tofile", _RETURN_IT)
    view = _refused("view", "use astype, or real and imag")
    byteswap = _refused("byteswap", "swap the bytes of the arguments")
    getfield = _refused("getfield", "structured arrays have no derivative")
    resize = _refused("resize", "write numpy.resize(x, shape), which gives a new array")
    partition = _refused("partition", "write numpy.partition(x, kth), which gives a new array")
    setfield = _refused("setfield", _NO_WRITING)
    setflags = _refused("setflags", _NO_WRITING)
    to_device = _refused("to_device", "move the arguments")
    as_integer_ratio = _refused("as_integer_ratio", _RETURN_IT)
    hex = _refused("hex", _RETURN_IT)
    fromhex = _refused("fromhex", "call float.fromhex")
    __reduce_ex__ = _refused("pickle", _RETURN_IT)

    def is_integer(self) -> Any:
        return logic.equal(rounding.floor(self), self)


def writable(value: Any) -> Any:
    """A plain array that was just made, as one that traced values can be stored into where a trace watches."""
    return WritableArray(value) if type(value) is np.ndarray and innermost_trace() is not None else value


class _PlainTrace(Trace):
    """The trace of plain values, which only evaluates."""

    def apply(self, primitive: Any, operands: Any, params: dict[str, Any]) -> Any:
        return primitive(*operands, **params)


_PLAIN_TRACE = _PlainTrace()


class WritableArray(Tracer):
    """An array that a function makes while it is traced: plain until something traced is stored into it."""

    __slots__ = ()

    def __init__(self, value: Any) -> None:
        self.memory = Contents(value, innermost_trace())

    @property  # type: ignore[misc]  # as in Tracer
    def __class__(self) -> type:
        """An array, whatever it holds."""
        return np.ndarray

    @property
    def traced_by(self) -> Any:  # type: ignore[override]
        """The trace of the current contents."""
        now = self.current()
        return now.traced_by if isinstance(now, TracedValue) else _PLAIN_TRACE

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of what it holds."""
        return np.shape(self._plain_or_traced())

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of what it holds."""
        dtype: np.dtype[Any] = self._plain_or_traced().dtype
        return dtype

    def _plain_or_traced(self) -> Any:
        memory = self.memory
        return memory.value if memory.value is not None else memory.read(self)
