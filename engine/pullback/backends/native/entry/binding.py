"""The frames that calls of a native callable try."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from pullback.backends.native.entry.callables import frame_offset, is_native
from pullback.backends.native.entry.frames import Frame, let_go_of_finished

#: Frames that one callable tries; a call that fits none of them goes through Python.
FRAMES_KEPT = 64


def bind(instance: Any, frames: Sequence[Frame]) -> None:
    """Let calls of an instance of a native type try these frames, in this order, and no others."""
    let_go_of_finished()
    kept = list(frames[:FRAMES_KEPT])
    before = bound_frames(instance)
    for frame in before:  # a run may be on in one of them, and would go on to frames that are gone
        frame.follow_with(None)
    for frame, other in pairwise(kept):
        frame.follow_with(other)
    instance._frames = kept  # noqa: SLF001 - fields of ours, beside those of the class
    instance._native_frame = kept[0].words if kept else None  # noqa: SLF001 - as above
    instance._native_entry = _entry_of(instance) if kept else 0  # noqa: SLF001 - as above
    del before  # they go when nothing leads to them any more


def _entry_of(instance: Any) -> int:
    from pullback.backends.native.entry.machine_code import entry_address  # noqa: PLC0415 - imports what compiles

    return entry_address(frame_offset(type(instance)))


def bound_frames(instance: Any) -> tuple[Frame, ...]:
    """The frames that calls of an instance try, in order."""
    return tuple(getattr(instance, "_frames", ()))


def latest_frame(instance: Any) -> Frame | None:
    """The frame that ran last, if there was a run since `forget_latest`."""
    latest = getattr(instance, "_native_latest", 0)
    return next((frame for frame in bound_frames(instance) if frame.address == latest), None)


def forget_latest(instance: Any) -> None:
    """Note that a call goes through Python: none of the frames ran last."""
    if is_native(instance):
        instance._native_latest = 0  # noqa: SLF001 - as above
