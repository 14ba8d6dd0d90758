"""The NumPy face of a traced value: operators, methods and NumPy's two protocols, all leading to primitives."""

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from pullback.core.primitive import Traced
from pullback.errors import TracingError
from pullback.numpy_api import complex_numbers, selecting, shapes
from pullback.numpy_api.call_sites import refusal
from pullback.numpy_api.foreign import OPERANDS, is_operand, takes_type
from pullback.numpy_api.keys import read
from pullback.numpy_api.refusals import no_rule
from pullback.numpy_api.surface import FUNCTIONS
from pullback.numpy_api.ufuncs import UFUNCS, apply_ufunc
from pullback.rules import elementwise as e
from pullback.rules import logic, rounding
from pullback.rules.contractions import matmul


def _method(function: Any) -> Callable[..., Any]:
    """The method of an array that NumPy also has as a function, with the same parameters."""

    def method(self: Any, *args: Any, **keywords: Any) -> Any:
        return FUNCTIONS[function](self, *args, **keywords)

    method.__name__ = method.__qualname__ = function.__name__
    return method


def _refused(name: str, remedy: str) -> Callable[..., NoReturn]:
    """A method that a traced value cannot have."""

    def method(*_: Any, **__: Any) -> NoReturn:
        raise TracingError(f"x.{name}() is not for a traced value; {remedy}")

    method.__name__ = method.__qualname__ = name
    return method


_RETURN_IT = "return the value from the function first"
_NO_WRITING = "build the array with numpy.where, or use pb.inplace"


def class_of(shape: tuple[int, ...], dtype: np.dtype[Any]) -> type:
    """The class of what NumPy's functions give: an array, or a scalar where there is no axis."""
    return np.ndarray if shape else dtype.type


class Tracer(Traced):
    """A value under a trace. It behaves like the array or number it stands for, except that it cannot become one."""

    __slots__ = ()
    __array_priority__ = 1000.0  # legacy code paths that ask it leave operators to us

    # --- what it stands for; subclasses know ------------------------------------------------------------------------
    @property
    def __class__(self) -> type:  # type: ignore[override]  # isinstance asks for it where type() does not tell
        """The class of the value: ndarray, a NumPy scalar or a Python number. The engine itself asks `type`."""
        return class_of(self.shape, self.dtype)

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
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    @property
    def T(self) -> Any:
        return shapes.transpose(self)

    @property
    def mT(self) -> Any:
        return shapes.matrix_transpose(self)

    @property
    def real(self) -> Any:
        return complex_numbers.real(self)

    @property
    def imag(self) -> Any:
        return complex_numbers.imag(self)

    @property
    def flat(self) -> NoReturn:
        raise TracingError("a traced value has no flat iterator; write x.ravel(), or x.ravel()[i]")

    @property
    def base(self) -> None:
        return None

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an unsized traced value")
        return self.shape[0]

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
        if method == "__call__" and not keywords:
            translation = UFUNCS.get(ufunc)
            if translation is not None:
                return translation(*inputs)
        return apply_ufunc(ufunc, method, inputs, keywords)

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        for type_ in types:
            if type_ not in OPERANDS and not takes_type(type_):
                return NotImplemented
        translation = FUNCTIONS.get(function)
        if translation is None:
            raise no_rule(function, f"{function.__module__}.{function.__name__}")
        return translation(*args, **keywords)

    # --- what a trace cannot give -----------------------------------------------------------------------------------
    def __array__(self, *args: Any, **keywords: Any) -> NoReturn:
        raise refusal("a plain array")

    def __float__(self) -> NoReturn:
        raise refusal("a float")

    def __complex__(self) -> NoReturn:
        raise refusal("a complex number")

    def __iter__(self) -> Any:
        if not self.shape:
            raise TypeError("iteration over a traced value of shape ()")
        return (self[position] for position in range(len(self)))

    def __contains__(self, item: Any) -> bool:
        return bool(FUNCTIONS[np.any](logic.equal(self, item)))

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise TracingError("a traced value cannot be written to; build the array with numpy.where, or use pb.inplace")

    # --- operators --------------------------------------------------------------------------------------------------
    def __add__(self, other: Any) -> Any:
        return e.add(self, other) if type(other) in OPERANDS or is_operand(other) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return e.add(other, self) if type(other) in OPERANDS or is_operand(other) else NotImplemented

    def __sub__(self, other: Any) -> Any:
        return e.sub(self, other) if type(other) in OPERANDS or is_operand(other) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return e.sub(other, self) if type(other) in OPERANDS or is_operand(other) else NotImplemented

    def __mul__(self, other: Any) -> Any:
        return e.mul(self, other) if type(other) in OPERANDS or is_operand(other) else NotImplemented

    def __rmul__(self, other: Any) -> Any:
        return e.mul(other, self) if type(other) in OPERANDS or is_operand(other) else NotImplemented

    def __truediv__(self, other: Any) -> Any:
        return e.div(self, other) if type(other) in OPERANDS or is_operand(other) else NotImplemented

    def __rtruediv__(self, other: Any) -> Any:
        return e.div(other, self) if type(other) in OPERANDS or is_operand(other) else NotImplemented

    def __pow__(self, other: Any, modulo: None = None) -> Any:
        if modulo is not None:
            raise TracingError("pow of a traced value takes no modulus; write x**n % m")
        return e.power(self, other) if type(other) in OPERANDS or is_operand(other) else NotImplemented

    def __rpow__(self, other: Any) -> Any:
        return e.power(other, self) if type(other) in OPERANDS or is_operand(other) else NotImplemented

    def __floordiv__(self, other: Any) -> Any:
        return rounding.floor_divide(self, other) if type(other) in OPERANDS or is_operand(other) else NotImplemented

    def __rfloordiv__(self, other: Any) -> Any:
        return rounding.floor_divide(other, self) if type(other) in OPERANDS or is_operand(other) else NotImplemented

    def __mod__(self, other: Any) -> Any:
        return rounding.remainder(self, other) if type(other) in OPERANDS or is_operand(other) else NotImplemented

    def __rmod__(self, other: Any) -> Any:
        return rounding.remainder(other, self) if type(other) in OPERANDS or is_operand(other) else NotImplemented

    def __divmod__(self, other: Any) -> Any:
        return rounding.floor_divide(self, other), rounding.remainder(self, other) if type(
            other
        ) in OPERANDS or is_operand(other) else NotImplemented

    def __rdivmod__(self, other: Any) -> Any:
        return rounding.floor_divide(other, self), rounding.remainder(other, self) if type(
            other
        ) in OPERANDS or is_operand(other) else NotImplemented

    def __and__(self, other: Any) -> Any:
        return logic.bitwise_and(self, other) if type(other) in OPERANDS or is_operand(other) else NotImplemented

    def __rand__(self, other: Any) -> Any:
        return logic.bitwise_and(other, self) if type(other) in OPERANDS or is_operand(other) else NotImplemented

    def __or__(self, other: Any) -> Any:
        return logic.bitwise_or(self, other) if type(other) in OPERANDS or is_operand(other) else NotImplemented

    def __ror__(self, other: Any) -> Any:
        return logic.bitwise_or(other, self) if type(other) in OPERANDS or is_operand(other) else NotImplemented

    def __xor__(self, other: Any) -> Any:
        return logic.bitwise_xor(self, other) if type(other) in OPERANDS or is_operand(other) else NotImplemented

    def __rxor__(self, other: Any) -> Any:
        return logic.bitwise_xor(other, self) if type(other) in OPERANDS or is_operand(other) else NotImplemented

    def __lshift__(self, other: Any) -> Any:
        return logic.left_shift(self, other) if type(other) in OPERANDS or is_operand(other) else NotImplemented

    def __rlshift__(self, other: Any) -> Any:
        return logic.left_shift(other, self) if type(other) in OPERANDS or is_operand(other) else NotImplemented

    def __rshift__(self, other: Any) -> Any:
        return logic.right_shift(self, other) if type(other) in OPERANDS or is_operand(other) else NotImplemented

    def __rrshift__(self, other: Any) -> Any:
        return logic.right_shift(other, self) if type(other) in OPERANDS or is_operand(other) else NotImplemented

    def __invert__(self) -> Any:
        return logic.invert(self)

    def __matmul__(self, other: Any) -> Any:
        return matmul(self, other) if type(other) in OPERANDS or is_operand(other) else NotImplemented

    def __rmatmul__(self, other: Any) -> Any:
        return matmul(other, self) if type(other) in OPERANDS or is_operand(other) else NotImplemented

    def __neg__(self) -> Any:
        return e.neg(self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return e.absolute(self)

    def __eq__(self, other: object) -> Any:
        return logic.equal(self, other) if type(other) in OPERANDS or is_operand(other) else NotImplemented

    def __ne__(self, other: object) -> Any:
        return logic.not_equal(self, other) if type(other) in OPERANDS or is_operand(other) else NotImplemented

    def __lt__(self, other: Any) -> Any:
        return logic.less(self, other) if type(other) in OPERANDS or is_operand(other) else NotImplemented

    def __le__(self, other: Any) -> Any:
        return logic.less_equal(self, other) if type(other) in OPERANDS or is_operand(other) else NotImplemented

    def __gt__(self, other: Any) -> Any:
        return logic.greater(self, other) if type(other) in OPERANDS or is_operand(other) else NotImplemented

    def __ge__(self, other: Any) -> Any:
        return logic.greater_equal(self, other) if type(other) in OPERANDS or is_operand(other) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as for arrays: == compares elements

    def __getitem__(self, key: Any) -> Any:
        return read(self, key)

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
    copy = _method(np.copy)
    cumprod = _method(np.cumprod)
    cumsum = _method(np.cumsum)
    diagonal = _method(np.diagonal)
    dot = _method(np.dot)
    nonzero = _method(np.nonzero)
    ravel = _method(np.ravel)
    flatten = _method(np.ravel)
    repeat = _method(np.repeat)
    round = _method(np.round)
    searchsorted = _method(np.searchsorted)
    squeeze = _method(np.squeeze)
    swapaxes = _method(np.swapaxes)
    take = _method(np.take)
    choose = _method(np.choose)

    def reshape(self, *shape: Any, order: str = "C", copy: Any = None) -> Any:
        return shapes.reshape(self, shape[0] if len(shape) == 1 else shape, order, copy=copy)

    def transpose(self, *axes: Any) -> Any:
        return shapes.transpose(self, (axes[0] if len(axes) == 1 else axes) or None)

    def astype(
        self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
    ) -> Any:
        del order, casting, subok
        return shapes.astype(self, dtype, copy=copy)

    def conj(self) -> Any:
        return complex_numbers.conj(self)

    conjugate = conj

    def compress(self, condition: Any, axis: Any = None, out: Any = None) -> Any:
        return selecting.compress(condition, self, axis, out)

    __round__ = _method(np.round)
    __copy__ = _method(np.copy)

    def __deepcopy__(self, memo: Any) -> Any:
        del memo
        return self

    # --- what would write, or give plain values away -----------------------------------------------------------------
    def item(self, *_: Any) -> NoReturn:
        raise refusal("a Python number")

    def tolist(self) -> NoReturn:
        raise refusal("a list")

    tobytes = _refused("tobytes", _RETURN_IT)
    dump = _refused("dump", _RETURN_IT)
    dumps = _refused("dumps", _RETURN_IT)
    tofile = _refused("tofile", _RETURN_IT)
    view = _refused("view", "use astype, or real and imag")
    byteswap = _refused("byteswap", "swap the bytes of the arguments")
    getfield = _refused("getfield", "structured arrays have no derivative")
    fill = _refused("fill", _NO_WRITING)
    put = _refused("put", _NO_WRITING)
    resize = _refused("resize", "write numpy.resize(x, shape), which gives a new array")
    sort = _refused("sort", "write numpy.sort(x), which gives a new array")
    partition = _refused("partition", "write numpy.partition(x, kth), which gives a new array")
    setfield = _refused("setfield", _NO_WRITING)
    setflags = _refused("setflags", _NO_WRITING)
