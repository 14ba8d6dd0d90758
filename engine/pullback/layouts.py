"""Layouts of blocks: the places of the named views in the array.

Order and offsets are private to the block: users name views, and a rule that takes a block asks its layout for them.
"""

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any, TypeAlias, Union

from pullback.core.types import Shape
from pullback.dataclass import dataclass

Shapes: TypeAlias = Mapping[str, Union[Shape, "Shapes"]]
"""Names and shapes; a mapping in the place of a shape is a block inside the block."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One view: from `start` to `stop` of the array, in a shape, or as a block of its own."""

    start: int
    stop: int
    shape: "Shape | Layout"

    def view(self, array: Any) -> Any:
        """The view of an array: plain, traced, or of a device; its leading axes, those of a batch, are kept."""
        *batch, _ = array.shape
        part = array[(*[slice(None)] * len(batch), slice(self.start, self.stop))]
        return part.reshape((*batch, *self.shape)) if isinstance(self.shape, tuple) else part


@dataclass(frozen=True, slots=True, repr=False)
class Layout:
    """The slots of a block by name, one after the other without gaps."""

    slots: tuple[tuple[str, Slot], ...]
    size: int

    @classmethod
    def of(cls, shapes: Shapes) -> "Layout":
        """The layout of views of these shapes."""
        slots = []
        start = 0
        for name, shape in shapes.items():
            within = cls.of(shape) if isinstance(shape, Mapping) else tuple(map(int, shape))
            stop = start + (within.size if isinstance(within, Layout) else prod(within))
            slots.append((name, Slot(start, stop, within)))
            start = stop
        return cls(tuple(slots), start)

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.slots)

    def slot(self, name: str) -> Slot | None:
        """The slot of that name; None if there is none."""
        return next((slot for own, slot in self.slots if own == name), None)

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        return ", ".join(
            f"{name} {slot.shape if isinstance(slot.shape, tuple) else f'({slot.shape})'}" for name, slot in self.slots
        )
