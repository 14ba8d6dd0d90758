"""Docstrings begin with what a thing is or does, and types are called what they are, as CONTRIBUTING asks."""

import ast
import re
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NO_NOUNS = {"Told", "Asked", "Found", "Said", "Stated", "Kept", "Shown"}
PARTICIPLES = ("Told", "Asked", "Found", "Said", "Stated", "Kept", "Shown")
"""No type of the service, the dashboards or the command line begins with one."""
NO_NOUNS_THERE = NO_NOUNS | {"Given", "Heard", "Met", "Known", "Counted", "Judged", "Compared", "Checked"}
PARTICIPLE_ALONE = re.compile(
    r"""_*( [A-Z][a-z]*(ed|en|wn)
      | Absent | Bent | Bound | Bought | Built | Caught | Done | Fed | Found | Gone | Heard | Held | Kept | Laid | Learnt
      | Led | Left | Lent | Lost | Made | Meant | Met | Paid | Put | Read | Said | Sent | Sold | Sought | Spent | Stood
      | Taught | Thought | Told | Torn | Understood | Won | Worn | Wound )""",
    re.VERBOSE,
)
NOUNS_THAT_END_LIKE_PARTICIPLES = {"Feed", "Need", "Screen", "Seed", "Speed", "Token"}
ALL_PARTS = ["engine", "runners", "service", "dashboards", "cli", "tools", "deploy", "benchmarks"]
QUESTIONS = ("What", "Whether", "How", "Where", "Who", "When", "Which", "Why")
DESCRIPTIONS = ROOT / "service/pullback_service/client/models.py"
"""Its docstrings are descriptions of the schemas."""


@cache
def _parsed(part):
    """Each file of a part with its tree."""
    return [(file, ast.parse(file.read_text(encoding="utf-8"))) for file in sorted((ROOT / part).rglob("*.py"))]


@pytest.mark.parametrize("part", ["engine", "runners", "service", "dashboards", "cli"])
def test_a_docstring_begins_with_no_question(part):
    found = []
    for file, tree in _parsed(part):
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                words = (ast.get_docstring(node) or "").split(maxsplit=1)
                if words and words[0] in QUESTIONS:
                    found.append(f"{file.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}: {words[0]} {words[-1][:60]}")
    assert not found, "begin these with a noun or a verb:\n" + "\n".join(found)


@pytest.mark.parametrize("part", ["engine", "runners"])
def test_a_type_is_called_by_a_noun(part):
    found = [each for name, each in _types(part) if name in NO_NOUNS]
    assert not found, "name these by a noun of docs/glossary.md:\n" + "\n".join(found)


@pytest.mark.parametrize("part", ["service", "dashboards", "cli"])
def test_no_name_of_a_type_begins_with_a_participle(part):
    found = [each for name, each in _types(part) if _is_participle(name.lstrip("_"))]
    assert not found, "name these by a noun of docs/glossary.md:\n" + "\n".join(found)


@pytest.mark.parametrize("part", ALL_PARTS)
def test_no_type_is_called_by_a_participle_alone(part):
    found = [each for name, each in _types(part) if _is_participle_alone(name)]
    assert not found, (
        "a participle does not say what the object is; name the type by a noun of docs/glossary.md, "
        "or put a noun behind the participle (`Placed`: `PlacedBuffers`):\n" + "\n".join(found)
    )


@pytest.mark.parametrize("name", ["Enrolled", "Chosen", "Drawn", "Made"])
def test_a_participle_alone_is_told_from_nouns(name):
    assert _is_participle_alone(name)
    assert not any(map(_is_participle_alone, (f"{name}Series", "Token", "Agent", "Spread", "E", "CASE_SEEN")))


def _is_participle_alone(name):
    return PARTICIPLE_ALONE.fullmatch(name) is not None and name.lstrip("_") not in NOUNS_THAT_END_LIKE_PARTICIPLES


def _is_participle(name):
    return name in NO_NOUNS_THERE or name.startswith(PARTICIPLES)


@cache
def _types(part):
    """Names of classes, also of those inside of others, and of aliases of types, with their places."""
    found = []
    for file, tree in _parsed(part):
        for node in [*tree.body, *_classes_inside(tree)]:
            names = [node.name] if isinstance(node, ast.ClassDef) else []
            if isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names = [target.id for target in targets if isinstance(target, ast.Name)]
            found += [(name, f"{file.relative_to(ROOT)}:{node.lineno}: {name}") for name in names]
    return found


def _classes_inside(tree):
    return [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node not in tree.body]


@pytest.mark.parametrize("part", ["engine", "runners", "service", "dashboards", "cli"])
def test_a_docstring_below_a_field_or_constant_begins_with_no_question(part):
    found = []
    for file, tree in _parsed(part):
        if file == DESCRIPTIONS:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                for above, below in pairwise(node.body):
                    words = _text(below).split(maxsplit=1) if isinstance(above, ast.Assign | ast.AnnAssign) else []
                    if words and words[0] in QUESTIONS:
                        found.append(f"{file.relative_to(ROOT)}:{below.lineno}: {words[0]} {words[-1][:60]}")
    assert not found, "begin these with a noun or a verb:\n" + "\n".join(found)


def _text(statement):
    """The text that a statement is; empty for others."""
    constant = statement.value if isinstance(statement, ast.Expr) else None
    return constant.value if isinstance(constant, ast.Constant) and isinstance(constant.value, str) else ""
