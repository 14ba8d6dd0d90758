"""Leaves of one tree in the order of another: dicts that hold the same keys in another order are the same vector."""

from typing import Any

from pullback import trees
from pullback.errors import DifferentiationError


def leaves_like(template: Any, tree: Any) -> list[Any]:
    """Leaves of `tree` in the order of the leaves of `template`; None where a part of `tree` is None."""
    if tree is None:
        return [None] * len(trees.flatten(template)[0])
    if isinstance(template, dict):
        if not isinstance(tree, dict) or tree.keys() != template.keys():
            raise _mismatch(template, tree)
        return [leaf for key, part in template.items() for leaf in leaves_like(part, tree[key])]
    if isinstance(template, tuple | list):
        if not isinstance(tree, tuple | list) or len(tree) != len(template):
            raise _mismatch(template, tree)
        return [leaf for part, member in zip(template, tree, strict=True) for leaf in leaves_like(part, member)]
    structure = trees.structure(template)
    if structure == "leaf":
        return [tree]
    if trees.structure(tree) != structure:
        raise _mismatch(template, tree)
    return trees.flatten(tree)[0]


def _mismatch(template: Any, tree: Any) -> DifferentiationError:
    return DifferentiationError(
        f"a {_described(tree)} does not fit where a {_described(template)} is expected; give vectors the form of the value"
    )


def _described(tree: Any) -> str:
    if isinstance(tree, dict):
        return f"dict with keys {', '.join(map(str, tree))}"
    return f"{type(tree).__name__} of {len(tree)}" if isinstance(tree, tuple | list) else type(tree).__name__
