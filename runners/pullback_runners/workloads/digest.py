"""The digest of a workload's text: what one of its variants executes and is compared with, but for what is measured.

It is made of the text of the workload's file without what belongs to other workloads there, without other variants than the one
and the baseline, and without comments and blank lines. So a workload that is added to a file, a variant or a size that is
added to a workload, and a sentence that is corrected leave the digests of all others as they are; another constant, another
way to draw inputs, or another function that they call does not. What a file imports is not looked at.
"""

import ast
import hashlib
import io
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pullback_runners.workloads.registry import Workload

_PARTS = frozenset({"inputs", "oracle", "derivative", "variant", "peer"})
"""Decorators of a workload, by their names."""
_OF_VARIANTS = frozenset({"variant", "peer"})
ANY = ""
"""Stands for every variant that the workload does not declare itself: tiers, and peers of Pullback's own."""


def digests_of(workload: Workload) -> Mapping[str, str]:
    """The digest of each variant that a workload declares, and of `ANY` other one; none where its text cannot be read."""
    try:
        text = Path(workload.file).read_text(encoding="utf-8")
        tree = ast.parse(text)
    except (OSError, ValueError, SyntaxError):
        return {}
    lines = _lines_of_code(text)
    return {variant: _digest(workload, variant, tree, lines) for variant in (ANY, *workload.variants)}


def _digest(workload: Workload, variant: str, tree: ast.Module, lines: Mapping[int, str]) -> str:
    facts = (workload.name, workload.wrt, workload.derivatives, workload.has_numpy, workload.baseline)
    digest = hashlib.sha256(repr(facts).encode())
    for first, last in _kept(tree, workload.name, {variant, workload.baseline}):
        for number in range(first, last + 1):
            if number in lines:
                digest.update(lines[number].encode() + b"\n")
    return digest.hexdigest()[:16]


def _kept(tree: ast.Module, name: str, variants: set[str | None]) -> Iterator[tuple[int, int]]:
    """First and last lines of the statements that count."""
    declared = {each.name for each in tree.body if isinstance(each, ast.FunctionDef) and _declares(each)}
    for statement in tree.body:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue  # what the module says of itself
        first = statement.lineno
        if isinstance(statement, ast.FunctionDef):
            if _declares(statement):
                if statement.name != name:
                    continue
            elif statement.decorator_list:
                owners = [*_owners(statement.decorator_list, declared)]
                if owners and not any(owner == name and of in {None, *variants} for owner, of in owners):
                    continue
                first = statement.decorator_list[0].lineno
        yield first, statement.end_lineno or first


def _declares(function: ast.FunctionDef) -> bool:
    """True if a function is decorated by a call of `workload`. Its sizes are not part of its text."""
    calls = [each.func for each in function.decorator_list if isinstance(each, ast.Call)]
    return any("workload" in {getattr(call, "id", None), getattr(call, "attr", None)} for call in calls)


def _owners(decorators: Sequence[ast.expr], declared: set[str]) -> Iterator[tuple[str, str | None]]:
    """Workloads that a function is a part of, each with the variant that it is, if it is one."""
    for each in decorators:
        called = each.func if isinstance(each, ast.Call) else each
        if not isinstance(called, ast.Attribute) or not isinstance(called.value, ast.Name):
            continue
        if called.value.id in declared and called.attr in _PARTS:
            named = each.args[0] if isinstance(each, ast.Call) and each.args else None
            is_variant = called.attr in _OF_VARIANTS and isinstance(named, ast.Constant)
            yield called.value.id, str(named.value) if is_variant and isinstance(named, ast.Constant) else None


def _lines_of_code(text: str) -> Mapping[int, str]:
    """The lines of a file by their numbers, without those that hold a comment or nothing."""
    lines = text.split("\n")  # as Python counts them: a form feed ends none
    written: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}:
            written.update(range(token.start[0], token.end[0] + 1))
    return {number: line.rstrip() for number, line in enumerate(lines, start=1) if number in written}
