"""Numbers of things, with the word for one or for many."""


def counted(count: int, one: str, many: str | None = None) -> str:
    """1 case, 2 cases; `many` is the word where it is not that for one with an s."""
    return f"{count} {noun(count, one, many)}"


def noun(count: int, one: str, many: str | None = None) -> str:
    """The word alone."""
    return one if count == 1 else many or f"{one}s"
