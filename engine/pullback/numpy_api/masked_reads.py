"""`x[mask]` where the number of selected elements is not known yet: in plans, bodies of loops, batches.

A plan has no arrays whose shapes depend on values. What is computed of selected elements one by one is computed for the whole array
instead, sums and means count those that the mask selects, and a store by the same mask chooses by it. What needs the number of
elements (`len`, `shape`, an array beside them) is refused, and the function runs on the tape; but where the masks come of whole
numbers (`x[labels == k]`) it is recorded again, and then these masks are known and the plan is held to them.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from pullback.core.primitive import TracedValue, as_value, current, innermost_recorder
from pullback.numpy_api.operands import concrete, needs_values
from pullback.numpy_api.shapes import astype, reshape
from pullback.numpy_api.translations import FUNCTIONS
from pullback.rules import elementwise, gathering, logic
from pullback.rules.constants import stop

#: Functions that work element by element, and take no axis.
_ELEMENTWISE = {np.where, np.clip, np.nan_to_num, np.real, np.imag, np.round, np.copy}

#: Functions that sum up, with `where=` for what takes part.
_SUMS = {np.sum, np.prod, np.mean, np.var, np.std, np.any, np.all}


class MaskRecording:
    """One recording of a function: if it is held to masks that come of whole numbers, or has to be to become a plan."""

    def __init__(self, *, holds: bool) -> None:
        self.holds = holds
        self.has_to_hold = False


_recording: ContextVar[MaskRecording | None] = ContextVar("recording", default=None)


@contextmanager
def recording(*, holds: bool) -> Iterator[MaskRecording]:
    """Record a function in this way inside the block."""
    made = MaskRecording(holds=holds)
    token = _recording.set(made)
    try:
        yield made
    finally:
        _recording.reset(token)


def is_unknown(mask: Any) -> bool:
    """True of a mask whose values nobody knows yet."""
    if not isinstance(current(mask), TracedValue):
        return False
    now: Any = current(mask)
    is_read = now.dtype.kind == "b" and now.shape and not now.on_device
    own = _recording.get()
    if is_read and own is not None and own.holds and now.held() is not None:
        return False
    return bool(is_read) and (innermost_recorder() is not None or not now.has_value)


class MaskedRead(NDArrayOperatorsMixin):
    """The elements, or rows, of an array that a mask selects, as an array of another library would hold them."""

    __slots__ = ("mask", "whole")

    def __init__(self, mask: Any, whole: Any) -> None:
        self.mask = mask
        self.whole = whole  # elements that are not selected mean nothing; nothing flows back through them

    @property  # type: ignore[misc]  # isinstance asks for it where type() does not tell
    def __class__(self) -> type:
        """An array, as NumPy gives."""
        return np.ndarray

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the elements."""
        dtype: np.dtype[Any] = self.whole.dtype
        return dtype

    @property
    def ndim(self) -> int:
        """One axis of what is selected, and those of each row."""
        return np.ndim(self.whole) - np.ndim(self.mask) + 1

    def stored_into(self, x: Any, mask: Any) -> Any:
        """The array after `x[mask] = self`."""
        if not _are_same(mask, self.mask) or np.shape(x) != np.shape(self.whole):
            self.refuse()
        return elementwise.where(over(mask, x), astype(self.whole, x.dtype), x)

    def astype(
        self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
    ) -> Any:
        del order, casting, subok, copy
        return MaskedRead(self.mask, astype(self.whole, dtype))

    def copy(self, order: str = "C") -> Any:
        del order
        return MaskedRead(self.mask, self.whole)

    __copy__ = copy

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **keywords: Any) -> Any:
        if ufunc is np.matmul and method == "__call__" and out is None and not keywords:
            return self._product(*inputs)
        if method != "__call__" or keywords or ufunc.signature is not None:
            self.refuse()
        result = ufunc(*map(self._beside, inputs))
        if out is None:
            parts = tuple(MaskedRead(self.mask, part) for part in (result if ufunc.nout > 1 else (result,)))
            return parts if ufunc.nout > 1 else parts[0]
        (target,) = out
        if type(target) is not MaskedRead or np.shape(result) != np.shape(target.whole):
            self.refuse()
        if not np.can_cast(result.dtype, target.dtype, "same_kind"):
            raise TypeError(f"cannot cast the result of an operator in place from {result.dtype} to {target.dtype}")
        target.whole = astype(result, target.dtype)
        return target

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        del types
        if function in _ELEMENTWISE:
            named = {name: self._beside(value) for name, value in keywords.items()}
            return MaskedRead(self.mask, FUNCTIONS[function](*map(self._beside, args), **named))
        if args and args[0] is self:
            if function in _SUMS:
                return self._summed(function, *args[1:], **keywords)
            if function in (np.max, np.min, np.amax, np.amin):
                return self._extremum(function, *args[1:], **keywords)
            if function is np.count_nonzero:
                return self._summed(np.sum, *args[1:], whole=logic.not_equal(self.whole, 0), **keywords)
        if function is np.dot and len(args) == 2 and not keywords:
            return self._product(*args)
        return self.refuse()

    def _beside(self, operand: Any) -> Any:
        """An operand of an operation on each element: one for all of them, or another read by the same mask."""
        if type(operand) is MaskedRead:
            if operand.ndim != self.ndim or not _are_same(operand.mask, self.mask):
                self.refuse()
            return operand.whole
        if np.ndim(operand) >= self.ndim:
            self.refuse()
        return operand

    def _product(self, *operands: Any) -> Any:
        """The inner product of two reads by one mask."""
        a, b = operands
        if type(a) is not MaskedRead or type(b) is not MaskedRead or a.ndim != 1 or b.ndim != 1:
            self.refuse()
        return (a * b).sum()

    def _summed(self, function: Any, axis: Any = None, *, whole: Any = None, **keywords: Any) -> Any:
        if not keywords.keys() <= {"dtype", "ddof"} or not self._takes_first_axis(axis):
            self.refuse()
        whole = self.whole if whole is None else whole
        axes = None if axis is None else tuple(range(np.ndim(self.mask)))
        return FUNCTIONS[function](whole, axis=axes, where=over(self.mask, whole), **keywords)

    def _extremum(self, function: Any, axis: Any = None, **keywords: Any) -> Any:
        if keywords or self.dtype.kind != "f" or not self._takes_first_axis(axis) or not np.any(self.mask):
            self.refuse()  # of no elements NumPy raises
        least = -np.inf if function in (np.max, np.amax) else np.inf
        axes = None if axis is None else tuple(range(np.ndim(self.mask)))
        return FUNCTIONS[function](self.whole, axis=axes, where=over(self.mask, self.whole), initial=least)

    def _takes_first_axis(self, axis: Any) -> bool:
        return axis is None or (type(axis) is int and axis in (0, -self.ndim))

    def refuse(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse what depends on how many elements are selected."""
        recorder, own, mask = innermost_recorder(), _recording.get(), current(self.mask)
        if own is not None and isinstance(mask, TracedValue) and mask.held() is not None:
            own.has_to_hold = True
        if recorder is not None:
            raise recorder.refusal(needs_values("indexing by a mask"))
        concrete(self.mask, "indexing by a mask")
        raise AssertionError("a mask that is known selects an array")

    def __getattr__(self, name: str) -> NoReturn:
        if not hasattr(np.ndarray, name):
            raise AttributeError(f"a traced value has no attribute {name!r}")
        self.refuse()

    __array__ = __len__ = __iter__ = __getitem__ = __setitem__ = __contains__ = __bool__ = __float__ = __int__ = refuse
    __repr__ = __format__ = refuse
    __hash__ = None  # type: ignore[assignment]


def _method(function: Any) -> Callable[..., Any]:
    def method(self: MaskedRead, *args: Any, **keywords: Any) -> Any:
        return self.__array_function__(function, (), (self, *args), keywords)

    method.__name__ = method.__qualname__ = function.__name__
    return method


for _function in (*_SUMS, np.max, np.min, np.clip, np.round):
    setattr(MaskedRead, _function.__name__, _method(_function))


class Positions:
    """Positions along one axis that `numpy.nonzero` gives for a mask that is unknown; all of them together are the mask as a key."""

    __slots__ = ("axis", "mask")

    def __init__(self, mask: Any, axis: int) -> None:
        self.mask = mask
        self.axis = axis

    @property  # type: ignore[misc]  # isinstance asks for it where type() does not tell
    def __class__(self) -> type:
        """An array, as NumPy gives."""
        return np.ndarray

    def refuse(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse what depends on how many elements the mask selects."""
        MaskedRead(self.mask, self.mask).refuse()

    def __getattr__(self, name: str) -> NoReturn:
        if not hasattr(np.ndarray, name):
            raise AttributeError(f"a traced value has no attribute {name!r}")
        self.refuse()

    __array__ = __array_ufunc__ = __array_function__ = refuse
    __len__ = __iter__ = __getitem__ = __setitem__ = __contains__ = __bool__ = __int__ = __index__ = __float__ = refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __mod__ = __floordiv__ = __neg__ = refuse
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = refuse
    __repr__ = __format__ = refuse
    __hash__ = None  # type: ignore[assignment]


def positions_of(mask: Any) -> tuple[Positions, ...]:
    """The result of `numpy.nonzero` for a mask that is unknown."""
    mask = as_value(mask)
    return tuple(Positions(mask, axis) for axis in range(np.ndim(mask)))


def as_mask(key: Any) -> Any:
    """The mask that a key of all its positions stands for; any other key as it is."""
    parts = key if type(key) is tuple else (key,)
    if not parts or not all(type(part) is Positions for part in parts):
        return key
    mask = parts[0].mask
    is_whole = [part.axis for part in parts] == list(range(np.ndim(mask)))
    return mask if is_whole and all(_are_same(part.mask, mask) for part in parts) else key


def masked(x: Any, mask: Any) -> Any:
    """`x[mask]` for a mask that is unknown.

    What is not selected is computed with what is, so that nothing is ever computed outside of where the function is defined; no
    cotangent comes from it. Where nothing is selected there is no such element, and floating-point errors are not to be heard of.
    """
    mask = current(mask)
    covered = np.ndim(mask)
    recorder = innermost_recorder()
    if recorder is not None:
        recorder.ignore_errors()
    if np.shape(mask) != np.shape(x)[:covered]:
        raise IndexError(f"a mask of shape {np.shape(mask)} does not fit an array of shape {np.shape(x)}")
    if not np.size(x):
        return MaskedRead(mask, x)
    line = reshape(mask, (np.size(mask),))
    first = FUNCTIONS[np.argmax](astype(line, np.intp))
    rows = stop(reshape(x, (np.size(mask), *np.shape(x)[covered:])))
    one = gathering.gather(rows, first, key=(gathering.ARRAY,))
    one = elementwise.where(FUNCTIONS[np.any](line), one, np.ones((), x.dtype)[()])
    return MaskedRead(mask, elementwise.where(over(mask, x), x, one))


def over(mask: Any, x: Any, before: int = 0) -> Any:
    """The mask with axes for what it selects whole, so many of them before its own."""
    rest = np.ndim(x) - np.ndim(mask) - before
    return reshape(mask, (*[1] * before, *np.shape(mask), *[1] * rest)) if np.ndim(mask) else mask


def _are_same(mask: Any, other: Any) -> bool:
    """True if two masks are known to be equal."""
    mask, other = current(mask), current(other)
    return mask is other or (isinstance(mask, TracedValue) and mask.is_equal(other))
