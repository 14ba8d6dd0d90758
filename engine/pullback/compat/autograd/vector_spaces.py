"""The vector space a value lives in: `vspace(x)`, for arrays, numbers and nested containers of them.

`vspace(x).zeros()`, `.add(a, b)`, `.inner_prod(a, b)` and the rest treat a dict of arrays as one vector. All operations
that take values are differentiable. A complex number counts as two real dimensions.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pullback import trees
from pullback.compat.autograd.aligned import leaves_like
from pullback.core.primitive import TracedValue
from pullback.core.types import Shape, is_array_like, type_of


class VSpace:
    """Shapes and dtypes of all leaves of a value, and how they hang together."""

    def __init__(self, value: Any) -> None:
        leaves, self._rebuild = trees.flatten(value)
        self._types = [_leaf_type(leaf) for leaf in ([value] if trees.is_constant(value) else leaves)]
        self._structure = trees.structure(value)
        self._places = self._rebuild(iter(range(len(leaves))))

    # --- what the space is ------------------------------------------------------------------------------------------
    @property
    def size(self) -> int:
        """Number of real dimensions."""
        return sum(int(np.prod(shape, dtype=np.int64)) * (1 + (dtype.kind == "c")) for shape, dtype in self._types)

    @property
    def iscomplex(self) -> bool:
        """True if a leaf is complex."""
        return any(dtype.kind == "c" for _, dtype in self._types)

    @property
    def shape(self) -> Shape:
        """Shape of the one array."""
        return self._only()[0]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the one array."""
        return self._only()[1]

    @property
    def ndim(self) -> int:
        """Dimensions of the one array."""
        return len(self.shape)

    def _only(self) -> tuple[Shape, np.dtype[Any]]:
        if self._structure != "leaf":
            raise TypeError("a container of arrays has no single shape and dtype; use the vspace of one of its parts")
        return self._types[0]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, VSpace):
            return NotImplemented
        return self._types == other._types and self._structure == other._structure

    def __hash__(self) -> int:
        return hash((tuple(self._types), self._structure))

    def __repr__(self) -> str:
        spaces = (f"{dtype.name}{list(shape)}" for shape, dtype in self._types)
        return f"<vspace {self._rebuild(spaces)}>"

    # --- vectors ----------------------------------------------------------------------------------------------------
    def zeros(self) -> Any:
        """The zero vector."""
        return self._make(np.zeros)

    def ones(self) -> Any:
        """The sum of the standard basis: 1 everywhere, 1 + 1j where complex."""
        return self._make(lambda shape, dtype: np.full(shape, 1 + 1j if dtype.kind == "c" else 1, dtype))

    def randn(self) -> Any:
        """A standard normal vector, from NumPy's global generator so that `numpy.random.seed` decides."""
        return self._make(_normal)

    def standard_basis(self) -> Iterator[Any]:
        """Unit vectors, one for each real dimension."""
        for place, (shape, dtype) in enumerate(self._types):
            for position in np.ndindex(shape):
                for unit in (1, 1j) if dtype.kind == "c" else (1,):
                    leaves = [np.zeros(*other) for other in self._types]
                    leaves[place][position] = unit
                    yield self._rebuild(leaf[()] for leaf in leaves)

    def _make(self, leaf: Callable[[Shape, np.dtype[Any]], Any]) -> Any:
        return self._rebuild(leaf(shape, dtype)[()] for shape, dtype in self._types)

    # --- operations, differentiable by every vector and number --------------------------------------------------------
    def add(self, x: Any, y: Any) -> Any:
        """The sum of two vectors."""
        return self._map(lambda a, b: a + b, x, y)

    mut_add = add

    def scalar_mul(self, x: Any, a: Any) -> Any:
        """A vector times a real number."""
        return self._map(lambda leaf: leaf * a, x)

    def inner_prod(self, x: Any, y: Any) -> Any:
        """Sum of products of components; real also for complex vectors."""
        pairs = zip(leaves_like(self._places, x), leaves_like(self._places, y), self._types, strict=True)
        return sum(
            np.sum(np.real(np.conj(a) * b)) if dtype.kind == "c" else np.sum(a * b) for a, b, (_, dtype) in pairs
        )

    def covector(self, x: Any) -> Any:
        """The cotangent that stands for a vector: its conjugate."""
        return self._map(lambda leaf: np.conj(leaf) if _leaf_type(leaf)[1].kind == "c" else leaf, x)

    def _map(self, function: Callable[..., Any], *vectors: Any) -> Any:
        return self._rebuild(map(function, *(leaves_like(self._places, vector) for vector in vectors)))


def vspace(value: Any) -> VSpace:
    """The vector space a value lives in: `vspace(np.ones(3)).size == 3`."""
    return VSpace(value)


def _leaf_type(leaf: Any) -> tuple[Shape, np.dtype[Any]]:
    if isinstance(leaf, TracedValue) or is_array_like(leaf):
        type_ = type_of(leaf)
        if type_.dtype.kind in "fc" or issubclass(type(leaf), np.ndarray):
            return tuple(type_.shape), type_.dtype
    raise TypeError(
        f"can't differentiate w.r.t. a value of type {type(leaf).__name__}: it has no vector space; "
        "pass floating-point numbers, arrays, or containers of them"
    )


def _normal(shape: Shape, dtype: np.dtype[Any]) -> Any:
    drawn = np.asarray(np.random.standard_normal(shape))  # noqa: NPY002 (programs seed the global generator)
    if dtype.kind == "c":
        drawn = drawn + 1j * np.random.standard_normal(shape)  # noqa: NPY002 (as above)
    return drawn.astype(dtype)
