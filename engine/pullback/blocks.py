"""Blocks: one contiguous array of parameters, and its parts as named views.

    block = pb.Block({"Wi": (4 * h, i), "Wh": (4 * h, h), "b": (4 * h,)}, np.float32)
    block.Wi[...] = 1          # writes show through, both ways
    gradient = pb.grad(loss)(block)
    block.array -= 0.1 * gradient.array

To a transformation a block is one leaf, its array; the views a function takes of it are read from that one traced
array. So the gradient is a block too: one array in the same layout, and views of it. What is copied, pickled, cast or
moved to a device is the array, once; the views are taken anew of whatever comes out. Of a batch of blocks (per-example
gradients by `vmap`, rows of a Jacobian) the array has leading axes, and so has every view.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn, cast, final

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from pullback import trees
from pullback.core.types import Shape
from pullback.layouts import Layout, Shapes, Slot

Initialiser = Callable[[Shape], ArrayLike]
Parts = Mapping[str, Any]
"""Per name a shape, an array whose values are taken, or a mapping of these for a block inside the block."""


@final
class Block(Mapping[str, Any]):
    """One contiguous array with named views, as attributes and as items.

    `parts` gives a shape or an array for each name. Shapes are filled with zeros, or by `init`: a function of a shape, or
    a mapping from names to such functions. Without `dtype` it is that of the arrays, or float64.

    >>> block = pb.Block({"w": (2, 3), "b": (2,)}, np.float32, init={"w": np.ones})
    >>> block
    Block(w (2, 3), b (2,); float32)
    >>> gradient = pb.grad(lambda block: np.sum(block.w) + 2 * np.sum(block.b))(block)
    >>> gradient.array, gradient.b
    (array([1., 1., 1., 1., 1., 1., 2., 2.], dtype=float32), array([2., 2.], dtype=float32))
    """

    __slots__ = ("_array", "_layout")
    _array: Any
    _layout: Layout

    def __init__(
        self,
        parts: Parts,
        dtype: DTypeLike | None = None,
        *,
        init: Initialiser | Mapping[str, Any] | None = None,
    ) -> None:
        layout = Layout.of(_shapes(parts))
        own = np.dtype(dtype) if dtype is not None else np.result_type(*(_dtypes(parts) or [np.dtype(float)]))
        _hold(self, np.zeros(layout.size, own), layout)
        self._fill(parts, init)

    @staticmethod
    def around(array: Any, shapes: Shapes) -> "Block":
        """A block of an array that is there: no copy, and `block.array` is that very array.

        `Block.around(pb.pack(wi, wh), {"Wi": wi.shape, "Wh": wh.shape})`
        """
        layout = Layout.of(_shapes(shapes))
        if np.shape(array) != (layout.size,) or (issubclass(type(array), np.ndarray) and not array.flags.c_contiguous):
            raise ValueError(
                f"Block.around: the views need a contiguous array of shape {(layout.size,)}, got shape {np.shape(array)}; "
                "make it so with numpy.ravel"
            )
        return block_of(array, layout)

    @property
    def array(self) -> Any:
        """The whole as one array, of one dimension. Assigning to it writes the values into it."""
        return self._array

    @array.setter
    def array(self, value: Any) -> None:
        self._write("array", self._array, value)

    @property
    def layout(self) -> Layout:
        """The slots of the views in the array, for rules that take a block whole. Their order is not guaranteed."""
        return self._layout

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the array and of every view."""
        return cast("np.dtype[Any]", self._array.dtype)

    # --- the views ----------------------------------------------------------------------------------------------------
    def __getitem__(self, name: str) -> Any:
        slot = self._layout.slot(name)
        if slot is None:
            raise KeyError(self._unknown(name))
        return self._view(slot)

    def __setitem__(self, name: str, value: Any) -> None:
        slot = self._layout.slot(name)
        if slot is None:
            raise KeyError(self._unknown(name))
        if isinstance(slot.shape, Layout):
            self[name].array = value.array if isinstance(value, Block) else value
        else:
            self._write(name, self._view(slot), value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # no view is called so; and a block that is being made has no layout to ask yet
            raise AttributeError(f"a block has no {name!r}", name=name, obj=self)
        slot = self._layout.slot(name)
        if slot is None:
            raise AttributeError(self._unknown(name), name=name, obj=self)
        return self._view(slot)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "array":
            object.__setattr__(self, name, value)
        elif self._layout.slot(name) is None:
            raise AttributeError(self._unknown(name), name=name, obj=self)
        else:
            self[name] = value

    def __contains__(self, name: object) -> bool:  # without making the view
        return any(own == name for own in self._layout)

    def __iter__(self) -> Iterator[str]:
        return iter(self._layout)

    def __len__(self) -> int:
        return len(self._layout.slots)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self})

    # --- what makes another block -------------------------------------------------------------------------------------
    def map(self, function: Callable[[Any], Any]) -> "Block":
        """The block of `function(array)`, called once for the whole: move to a device, cast, scale.

        `on_device = block.map(cupy.asarray)`, and back `on_device.map(cupy.asnumpy)`.
        """
        array = function(self._array)
        if tuple(array.shape) != tuple(self._array.shape):
            raise ValueError(
                f"Block.map: the function made shape {tuple(array.shape)} of shape {tuple(self._array.shape)}; "
                "it must keep every element in its place"
            )
        return block_of(array, self._layout)

    def astype(self, dtype: DTypeLike) -> "Block":
        """A block of another dtype."""
        return self.map(lambda array: array.astype(dtype))

    def copy(self) -> "Block":
        """A block with memory of its own."""
        return self.map(lambda array: array.copy())

    __copy__ = copy

    def __reduce__(self) -> tuple[Any, ...]:
        # One array, whatever has to be made of it: so a copy, deep or pickled, is a block whose views are its views.
        return (block_of, (self._array, self._layout))

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    __array_ufunc__ = None

    def __array__(self, *args: Any, **keywords: Any) -> NoReturn:
        raise TypeError("a Block is not an array; give NumPy block.array, the whole, or one of its views")

    def __repr__(self) -> str:
        return f"Block({self._layout}; {getattr(self._array, 'dtype', '?')})"

    # --- inside -------------------------------------------------------------------------------------------------------
    def _view(self, slot: Slot) -> Any:
        if self._array.shape[-1] != self._layout.size:
            raise ValueError(
                f"an array of shape {self._array.shape} has no views of a block of {self._layout.size} elements, "
                "which are its last axis; keep the axes of a batch in front"
            )
        part = slot.view(self._array)
        return part if isinstance(slot.shape, tuple) else block_of(part, slot.shape)

    def _unknown(self, name: str) -> str:
        return f"the block has no {name!r}; it has {', '.join(self) or 'nothing'} and array, the whole"

    def _write(self, name: str, view: Any, value: Any) -> None:
        if value is view:
            return  # `block.array -= step` has written already
        values = value if hasattr(value, "dtype") else np.asarray(value)
        if np.shape(values) not in {(), view.shape}:
            raise ValueError(
                f"block.{name} has shape {view.shape}, got {np.shape(values)}; assign an array of that shape or a number"
            )
        if not np.can_cast(values.dtype, self.dtype, "same_kind"):
            raise TypeError(f"block.{name} holds {self.dtype}, got {values.dtype}; cast it with astype")
        view[...] = values

    def _fill(self, parts: Parts, init: Any) -> None:
        unknown = [] if not isinstance(init, Mapping) else [name for name in init if name not in parts]
        if unknown:
            raise ValueError(f"Block: init names {unknown[0]!r}, which is no view; the views are {', '.join(parts)}")
        for name, part in parts.items():
            rule = init.get(name) if isinstance(init, Mapping) else init
            if isinstance(part, Mapping):
                self[name]._fill(part, rule)  # noqa: SLF001 (another block)
            elif not isinstance(part, tuple):
                self[name] = part
            elif rule is not None:
                self[name] = np.asarray(rule(self[name].shape))


def block_of(array: Any, layout: Layout) -> Block:
    """A block of an array, or of anything that stands for one, in a known layout."""
    return _hold(object.__new__(Block), array, layout)


_of = block_of  # its name in blocks that were pickled before


def _hold(block: Block, array: Any, layout: Layout) -> Block:
    object.__setattr__(block, "_array", array)
    object.__setattr__(block, "_layout", layout)
    return block


def _shapes(parts: Parts) -> Shapes:
    return {_name(name): _shape(name, part) for name, part in parts.items()}


def _shape(name: str, part: Any) -> Any:
    if isinstance(part, Mapping):
        return _shapes(part)
    if isinstance(part, tuple):
        return part
    if not hasattr(part, "shape"):
        raise TypeError(
            f"Block: {name} is a {type(part).__name__}; give a shape (a tuple), an array, or a mapping of these"
        )
    return part.shape


def _name(name: str) -> str:
    if name.startswith("_") or hasattr(Block, name):
        raise ValueError(f"Block: a view cannot be called {name!r}, which is the block's own; choose another name")
    return name


def _dtypes(parts: Parts) -> list[np.dtype[Any]]:
    """Dtypes of the arrays among the parts, at every depth."""
    found = []
    for part in parts.values():
        if isinstance(part, Mapping):
            found += _dtypes(part)
        elif not isinstance(part, tuple):
            found.append(part.dtype)
    return found


def _rows(layout: Layout, jacobian: Any) -> dict[str, Any]:
    """The Jacobian of a value that is a block, by the names of its views: a view's axes, then the argument's."""
    leaves, rebuild = trees.flatten(jacobian)

    def of_view(slot: Slot) -> Any:
        if isinstance(slot.shape, Layout):
            return _rows(slot.shape, rebuild(iter([leaf[slot.start : slot.stop] for leaf in leaves])))
        shape: Shape = slot.shape
        parts = [leaf[slot.start : slot.stop].reshape((*shape, *leaf.shape[1:])) for leaf in leaves]
        return rebuild(iter(parts))

    return {name: of_view(slot) for name, slot in layout.slots}


trees.register(
    Block,
    lambda block: (block.array,),
    lambda block, parts: block_of(parts[0], block.layout),
    lambda block: block.layout,
    rows=lambda block, parts: _rows(block.layout, parts[0]),
)
