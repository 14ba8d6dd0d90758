"""The device of a call: the host, or the device that its arrays are on.

    with pb.device("cuda"):                    # arrays go there, results come back
        value, dw = pb.value_and_grad(loss)(w, x)

    w, x = pb.put((w, x), "cuda")              # arrays stay there
    value, dw = pb.value_and_grad(loss)(w, x)
    pb.fetch(dw)                               # a NumPy array

Tensors of PyTorch and arrays of CuPy are taken as they lie, through DLPack, and gradients are of the kind that went in.
A device is "cuda", "cuda:1", …, or "cpu": memory of the host in which PyTorch computes, to try programs without a GPU.
"""

import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from pullback import trees
from pullback.core.primitive import TracedValue
from pullback.dataclass import dataclass
from pullback.errors import ChangedError, DeviceError, name_of
from pullback.numpy_api.traced_stores import given

_in_force: ContextVar[str | None] = ContextVar("pullback_device", default=None)

#: Precisions of products of float32, the first of which is in force where nothing else is asked for.
PRECISIONS = ("float32", "tf32")

PRECISION_IN_FORCE: ContextVar[str] = ContextVar("pullback_precision", default=PRECISIONS[0])

#: Modules whose arrays are taken as they lie.
_FOREIGN = ("torch", "cupy")


def device_in_force() -> str | None:
    """The device of the `pb.device` block around, or None."""
    return _in_force.get()


@contextmanager
def device(name: str) -> Iterator[None]:
    """Run gradients inside the block on a device: NumPy arrays are put there, and results come back as NumPy arrays.

    This holds for `pb.grad`, `pb.value_and_grad`, `pb.vjp`, `pb.jvp` and `pb.linearize`. A function compiled with
    `pb.compile` runs where its arguments are.

    >>> with pb.device("cuda"):  # doctest: +SKIP
    ...     pb.grad(lambda x: np.sum(x**2))(np.ones(2))
    array([2., 2.])
    """
    _values().device_named(name)  # a device that is not there is refused here, not at the first call
    token = _in_force.set(name)
    try:
        yield
    finally:
        _in_force.reset(token)


def precision_in_force() -> str:
    """The precision of the `pb.precision` block around, or "float32"."""
    return PRECISION_IN_FORCE.get()


@contextmanager
def precision(name: str) -> Iterator[None]:
    """Multiply and convolve arrays of float32 on a GPU in this precision inside the block: "float32", or "tf32".

    Outside of any block it is "float32", whatever PyTorch's own switches say. "tf32" rounds operands to 10 bits behind the
    leading one, three digits instead of seven, for which GPUs have faster units. Products that a pullback of `pb.vjp` computes are in
    the precision of the place where it is called. Other dtypes, and arrays of the host, are not concerned.

    >>> with pb.precision("tf32"):
    ...     gradient = pb.grad(lambda x: np.sum(x @ x))(np.eye(2))
    """
    if name not in PRECISIONS:
        raise DeviceError(f"there is no precision {name!r}; write {' or '.join(map(repr, PRECISIONS))}")
    token = PRECISION_IN_FORCE.set(name)
    try:
        yield
    finally:
        PRECISION_IN_FORCE.reset(token)


def put(tree: Any, device: str) -> Any:
    """The tree with its arrays on a device; Python numbers stay what they are. A `pb.Block` is moved in one transfer.

    >>> pb.put({"w": np.ones(2), "rate": 0.1}, "cuda")  # doctest: +SKIP
    {'w': <array float64[2] on cuda:0>, 'rate': 0.1}
    """
    target = _values().device_named(device)
    leaves, rebuild = trees.flatten(tree)
    return rebuild(iter([_placed(leaf, target) if _kind(leaf, numbers=True) else leaf for leaf in leaves]))


def fetch(tree: Any) -> Any:
    """The tree with NumPy arrays in place of those on a device; everything else as it is.

    >>> pb.fetch(pb.grad(lambda x: np.sum(x**2))(pb.put(np.ones(2), "cuda")))  # doctest: +SKIP
    array([2., 2.])
    """
    leaves, rebuild = trees.flatten(tree)
    fetched = []
    for leaf in leaves:
        if _is_foreign(leaf):
            leaf = _adopted(leaf)  # noqa: PLW2901 - the same array under our name
        fetched.append(leaf.fetched() if isinstance(leaf, TracedValue) and leaf.on_device else leaf)
    return rebuild(iter(fetched))


def _values() -> Any:
    """The module of device arrays, which loads PyTorch."""
    try:
        from pullback.devices.cuda import eager  # noqa: PLC0415 - a second, and 1 GB that not everybody has
    except ImportError as error:
        raise DeviceError(
            f"arrays on devices need PyTorch, which cannot be imported here ({error}); pip install torch"
        ) from error
    return eager


def _is_foreign(leaf: Any) -> bool:
    module = type(leaf).__module__.partition(".")[0]
    return module in _FOREIGN and module in sys.modules and hasattr(type(leaf), "__dlpack__")


def _kind(leaf: Any, *, numbers: bool = False) -> str | None:
    """The library that an array belongs to; None for numbers and traced values, which belong to none."""
    if isinstance(leaf, TracedValue):
        return "device" if leaf.on_device else None
    if issubclass(type(leaf), np.ndarray | np.generic):
        return "numpy" if numbers or leaf.ndim else None
    return type(leaf).__module__.partition(".")[0] if _is_foreign(leaf) else None


def _adopted(leaf: Any) -> Any:
    """A tensor or an array of CuPy as a device array in the same memory."""
    return _values().adopted(leaf)


def _placed(leaf: Any, target: Any) -> Any:
    """An array on a device: copied there, unless it is there."""
    eager = _values()
    if _is_foreign(leaf):
        leaf = _adopted(leaf)
    return leaf.on(target) if isinstance(leaf, TracedValue) else eager.put(leaf, target)


@dataclass(frozen=True, slots=True)
class DeviceCall:
    """The arguments of a call as device arrays, and the way back for what it gives."""

    args: tuple[Any, ...]
    keywords: dict[str, Any]
    kind: str
    device: str
    adopted: tuple[tuple[Any, Any, int], ...]
    """Arrays of the caller in whose memory device arrays lie: each, the device array, and how often it was written to."""

    def back(self, tree: Any, *, copied: bool = False) -> Any:
        """A result in the kind of arrays that went in, in memory of its own: callers may write to what they get."""
        if self.kind == "device":
            return tree
        if self.kind == "numpy":
            return fetch(tree)
        leaves, rebuild = trees.flatten(tree)
        handed_over = _values().handed_over
        held: list[Any] = [array for _, array, _ in self.adopted]
        results = []
        for leaf in leaves:
            if isinstance(leaf, TracedValue) and leaf.on_device:
                own = leaf.separated([leaf] if copied else held)
                held.append(own)
                results.append(handed_over(own, self.kind))
            else:
                results.append(leaf)
        return rebuild(iter(results))

    def check(self, function: Callable[..., Any]) -> None:
        """Raise if a tensor was written to since the function ran; CuPy's arrays do not tell."""
        for array, _, version in self.adopted:
            if _version(array) != version:
                raise ChangedError(
                    f"{name_of(function)}: an argument of shape {tuple(array.shape)} on {array.device} was changed after "
                    "the function ran, but the derivative needs its old values; change a copy, or differentiate again"
                )

    def there(self, tree: Any) -> Any:
        """Further arguments of the same call, such as cotangents, as device arrays."""
        leaves, rebuild = trees.flatten(tree)
        return rebuild(iter([_adopted(leaf) if _is_foreign(leaf) else leaf for leaf in leaves]))


def carried(function: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]) -> DeviceCall | None:
    """The call on the device that its arrays lie on, or that is in force; None for a call on the host.

    Arrays on two devices, or on the host and on a device, are refused by argument.
    """
    leaves, rebuild = trees.flatten((args, keywords))
    kinds = {kind for leaf in leaves if (kind := _kind(leaf)) is not None}
    name = device_in_force()
    if kinds <= {"numpy"} and (name is None or not kinds):
        return None
    if len(kinds - {"numpy", "device"}) > 1:
        raise _mixed(function, args, keywords, _kind)
    adopted = [_adopted(leaf) if _is_foreign(leaf) else leaf for leaf in leaves]
    adopted = [given(leaf.alias()) if isinstance(leaf, TracedValue) and leaf.on_device else leaf for leaf in adopted]
    if name is not None:
        target = _values().device_named(name)
        adopted = [_placed(leaf, target) if _kind(leaf) == "numpy" else leaf for leaf in adopted]
    places = {place for leaf in adopted if (place := _place(leaf)) is not None}
    if len(places) > 1:
        raise _mixed(function, args, keywords, _place)
    own_args, own_keywords = rebuild(iter(adopted))
    lent = tuple((leaf, own, _version(leaf)) for leaf, own in zip(leaves, adopted, strict=True) if _is_foreign(leaf))
    kind = next(iter(kinds - {"numpy", "device"}), "device" if "device" in kinds else "numpy")
    return DeviceCall(own_args, own_keywords, kind, places.pop(), lent)


def _version(array: Any) -> int:
    """The number of times that a tensor has been written to."""
    return int(getattr(array, "_version", 0))


def _place(leaf: Any) -> str | None:
    """The place of an array, in words; None for what has none."""
    if _is_foreign(leaf):
        return str(leaf.device)
    kind = _kind(leaf)
    return None if kind is None else "the host" if kind == "numpy" else str(leaf.device)


def _mixed(
    function: Callable[..., Any], args: Sequence[Any], keywords: dict[str, Any], place_of: Callable[[Any], str | None]
) -> DeviceError:
    """The error for arrays that are not in one place, by argument."""
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        names = []
    named = {(names[place] if place < len(names) else f"argument {place}"): arg for place, arg in enumerate(args)}
    found: dict[str, str] = {}
    for name, argument in (named | keywords).items():
        for leaf in trees.flatten(argument)[0]:
            if (where := place_of(leaf)) is not None:
                found.setdefault(where, name)
    listed = ", ".join(f"{name} is {'of' if place_of is _kind else 'on'} {where}" for where, name in found.items())
    return DeviceError(
        f"{listed}: arrays of one call lie in one place; move them with pb.put(x, device) or pb.fetch(x)"
    )
