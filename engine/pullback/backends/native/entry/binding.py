"""Binding of frames to callables."""

from typing import Any

from pullback.backends.native.entry.callables import frame_offset, is_native
from pullback.backends.native.entry.frames import Frame, let_go_of_finished
from pullback.backends.native.entry.machine_code import entry_address

#: Frames that one callable tries, the latest first; a call that fits none of them goes through Python.
FRAMES_KEPT = 16


def bind(instance: Any, frame: Frame) -> None:
    """Let calls of an instance try this frame first; the one that was tried first is tried next."""
    if not is_native(instance):
        return
    let_go_of_finished()
    frames = [frame, *getattr(instance, "_frames", ())][:FRAMES_KEPT]
    _chain(instance, frames)


def unbind(instance: Any, frame: Frame | None = None) -> None:
    """Let calls of an instance not try a frame any more, or none at all."""
    if is_native(instance):
        _chain(instance, [other for other in getattr(instance, "_frames", ()) if frame not in (None, other)])


def bound_frames(instance: Any) -> tuple[Frame, ...]:
    """The frames that calls of an instance try, in order."""
    return tuple(getattr(instance, "_frames", ()))


def latest_frame(instance: Any) -> Frame | None:
    """The frame that ran last, if a frame ran after the last call in Python."""
    latest = getattr(instance, "_native_latest", 0)
    return next((frame for frame in bound_frames(instance) if frame.address == latest), None)


def _chain(instance: Any, frames: list[Frame]) -> None:
    for frame, other in zip(frames, [*frames[1:], None], strict=True):
        frame.follow_with(other)
    instance._frames = frames  # noqa: SLF001 - a field of ours, beside those of the class
    if frames:
        instance._native_frame = frames[0].words  # noqa: SLF001 - as above
        instance._native_entry = entry_address(frame_offset(instance))  # noqa: SLF001 - as above
    else:
        instance._native_entry = 0  # noqa: SLF001 - as above
        instance._native_frame = None  # noqa: SLF001 - as above
