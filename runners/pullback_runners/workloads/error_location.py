"""The place in a workload's own file where something was raised, as a sentence that a person can mend."""

import traceback
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import CodeType
from typing import NamedTuple


def place_in(
    files: Collection[str],
    error: BaseException,
    roles: Mapping[CodeType, str] | None = None,
    top: str | None = None,
) -> str:
    """` (mine.py, line 7, in smoothness)`, the innermost call of the error that is in one of the files; empty if none is.

    `roles` names functions whose own names say nothing, as those do that are declared by `def _`, and with them what they define.
    Where the repository that is measured lies at `top`, the innermost call in it is named too, and files by their places in it.
    """
    calls = [
        _Call(frame.f_code.co_filename, line, frame.f_code) for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    if isinstance(error, SyntaxError):
        calls.append(_Call(error.filename or "", error.lineno or 0))
    named = [call for call in calls if call.file in files][-1:]
    named += [call for call in calls if _is_of(call.file, top)][-1:]
    known = {inner: role for outer, role in (roles or {}).items() for inner in _defined_in(outer)}
    words = "; from ".join(dict.fromkeys(call.words(known, top) for call in named))
    return words and f" ({words})"


class _Call(NamedTuple):
    """The line of a file at which a call was, or at which nothing can be called."""

    file: str
    line: int
    code: CodeType | None = None

    def words(self, known: Mapping[CodeType, str], top: str | None) -> str:
        """The call in words."""
        file = str(Path(self.file).relative_to(top)) if top and Path(self.file).is_relative_to(top) else self.file
        if self.code is None:
            return f"{file}, line {self.line}"
        function = known.get(self.code, self.code.co_qualname)
        return f"{file}, line {self.line}{'' if function == '<module>' else f', in {function}'}"


def _is_of(file: str, top: str | None) -> bool:
    """True of a file of the repository itself; packages are often installed below its top."""
    return top is not None and Path(file).is_relative_to(top) and "site-packages" not in Path(file).parts


def _defined_in(code: CodeType) -> Iterator[CodeType]:
    """The code of a function, and of those that it defines."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _defined_in(each)
