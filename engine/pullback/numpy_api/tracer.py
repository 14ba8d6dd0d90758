"""The NumPy face of a traced value: operators, methods and NumPy's two protocols, all leading to primitives."""

import operator
from typing import Any, NoReturn

import numpy as np

from pullback.errors import NoRuleError, TracingError
from pullback.numpy_api import contractions, reductions, shapes
from pullback.numpy_api.surface import FUNCTIONS
from pullback.numpy_api.ufuncs import UFUNCS
from pullback.primitive import Traced
from pullback.rules import elementwise as e
from pullback.rules.contractions import matmul
from pullback.rules.indexing import index

_CONCRETE_REMEDY = "return it from the function, or compute it from arguments that are not differentiated"


class Tracer(Traced):
    """A value under a trace. It behaves like the array or number it stands for, except that it cannot become one."""

    __slots__ = ()
    __array_priority__ = 1000.0  # legacy code paths that ask it leave operators to us

    # --- what it stands for; subclasses know ------------------------------------------------------------------------
    @property
    def shape(self) -> tuple[int, ...]:
        raise NotImplementedError

    @property
    def dtype(self) -> np.dtype[Any]:
        raise NotImplementedError

    def __bool__(self) -> bool:
        raise NotImplementedError

    def __int__(self) -> int:
        raise NotImplementedError

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def T(self) -> Any:
        return shapes.transpose(self)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an unsized traced value")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<traced {self.dtype}{list(self.shape)}>"

    # --- NumPy's protocols ------------------------------------------------------------------------------------------
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        if method == "reduce" and ufunc is np.add:
            return reductions.sum_(inputs[0], keywords.pop("axis", 0), **keywords)
        for option, value in keywords.items():
            if value is not None:
                raise TracingError(
                    f"numpy.{ufunc.__name__}(…, {option}=…) cannot be differentiated; leave {option} out, "
                    "or use pb.inplace for products into an existing array"
                )
        primitive = UFUNCS.get(ufunc) if method == "__call__" else None
        if primitive is None:
            name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
            raise no_rule(f"numpy.{name}")
        return primitive(*inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        del types
        translation = FUNCTIONS.get(function)
        if translation is None:
            raise no_rule(f"{function.__module__}.{function.__name__}")
        return translation(*args, **keywords)

    # --- what a trace cannot give -----------------------------------------------------------------------------------
    def __array__(self, *args: Any, **keywords: Any) -> NoReturn:
        raise TracingError(
            f"a traced value cannot become a plain array (numpy.asarray, a store into one); {_CONCRETE_REMEDY}"
        )

    def __float__(self) -> NoReturn:
        raise TracingError(f"a traced value cannot become a float; {_CONCRETE_REMEDY}")

    def __iter__(self) -> Any:
        return (self[position] for position in range(len(self)))

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise TracingError("a traced value cannot be written to; build the array with numpy.where, or use pb.inplace")

    # --- operators --------------------------------------------------------------------------------------------------
    def __add__(self, other: Any) -> Any:
        return e.add(self, other)

    def __radd__(self, other: Any) -> Any:
        return e.add(other, self)

    def __sub__(self, other: Any) -> Any:
        return e.sub(self, other)

    def __rsub__(self, other: Any) -> Any:
        return e.sub(other, self)

    def __mul__(self, other: Any) -> Any:
        return e.mul(self, other)

    def __rmul__(self, other: Any) -> Any:
        return e.mul(other, self)

    def __truediv__(self, other: Any) -> Any:
        return e.div(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return e.div(other, self)

    def __pow__(self, other: Any) -> Any:
        return e.power(self, other)

    def __rpow__(self, other: Any) -> Any:
        return e.power(other, self)

    def __matmul__(self, other: Any) -> Any:
        return matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return matmul(other, self)

    def __neg__(self) -> Any:
        return e.neg(self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return e.absolute(self)

    def __eq__(self, other: object) -> Any:
        return e.equal(self, other)

    def __ne__(self, other: object) -> Any:
        return e.not_equal(self, other)

    def __lt__(self, other: Any) -> Any:
        return e.less(self, other)

    def __le__(self, other: Any) -> Any:
        return e.less_equal(self, other)

    def __gt__(self, other: Any) -> Any:
        return e.greater(self, other)

    def __ge__(self, other: Any) -> Any:
        return e.greater_equal(self, other)

    __hash__ = None  # type: ignore[assignment]  # as for arrays: == compares elements

    def __getitem__(self, key: Any) -> Any:
        return index(self, key=basic_key(key, self.ndim))

    # --- methods of ndarray -----------------------------------------------------------------------------------------
    def sum(self, axis: Any = None, *, keepdims: bool = False) -> Any:
        return reductions.sum_(self, axis=axis, keepdims=keepdims)

    def mean(self, axis: Any = None, *, keepdims: bool = False) -> Any:
        return reductions.mean(self, axis=axis, keepdims=keepdims)

    def dot(self, other: Any) -> Any:
        return contractions.dot(self, other)

    def reshape(self, *shape: Any) -> Any:
        return shapes.reshape(self, shape[0] if len(shape) == 1 else shape)

    def ravel(self) -> Any:
        return shapes.ravel(self)

    def transpose(self, *axes: Any) -> Any:
        return shapes.transpose(self, (axes[0] if len(axes) == 1 else axes) or None)

    def astype(self, dtype: Any) -> Any:
        return shapes.astype(self, dtype)


def basic_key(key: Any, ndim: int) -> Any:
    """A key as a parameter, with the ellipsis written out; keys that select by arrays are refused, they have no rule yet."""
    checked: list[Any] = []
    parts = key if isinstance(key, tuple) else (key,)
    for part in parts:
        if part is Ellipsis:
            taken = sum(other is not None and other is not Ellipsis for other in parts)
            checked.extend([slice(None)] * (ndim - taken))
        elif part is None:
            checked.append(part)
        elif isinstance(part, slice):
            ends = (end if end is None else operator.index(end) for end in (part.start, part.stop, part.step))
            checked.append(slice(*ends))
        elif isinstance(part, int | np.integer) and not isinstance(part, bool):
            checked.append(int(part))
        else:
            kind = "a traced value" if isinstance(part, Traced) else f"a {type(part).__name__}"
            raise NoRuleError(f"indexing by {kind} has no rule in this engine; index by integers or slices")
    return checked[0] if len(checked) == 1 else tuple(checked)


def no_rule(function: str) -> NoRuleError:
    """The error for a function nobody has written a rule for."""
    return NoRuleError(
        f"{function} has no rule in this engine; write it with functions that have one (see pullback.numpy_api), "
        "or add a row to pullback/rules"
    )
