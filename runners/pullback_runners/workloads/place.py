"""The place in a workload's own file where something was raised, as a sentence that a person can mend."""

import traceback
from collections.abc import Collection, Iterator, Mapping
from types import CodeType


def place_in(files: Collection[str], error: BaseException, roles: Mapping[CodeType, str] | None = None) -> str:
    """` (mine.py, line 7, in smoothness)`, the innermost call of the error that is in one of the files; empty if none is.

    `roles` names functions whose own names say nothing, as those do that are declared by `def _`, and with them what they define.
    """
    if isinstance(error, SyntaxError) and error.filename in files:
        return f" ({error.filename}, line {error.lineno})"
    calls = [
        (frame.f_code, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename in files
    ]
    if not calls:
        return ""
    code, line = calls[-1]
    known = {inner: role for outer, role in (roles or {}).items() for inner in _defined_in(outer)}
    function = known.get(code, code.co_qualname)
    return f" ({code.co_filename}, line {line}{'' if function == '<module>' else f', in {function}'})"


def _defined_in(code: CodeType) -> Iterator[CodeType]:
    """The code of a function, and of those that it defines."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _defined_in(each)
