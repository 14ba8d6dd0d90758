"""A ratio with its interval is one type: in the service, in the runner, and where it crosses a border."""

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent
PRODUCT = (
    "engine/pullback", "runners/pullback_runners", "service/pullback_service", "dashboards/pullback_dashboards", "cli/pullback_cli",
)  # fmt: skip
GENERATED = ROOT / "service/pullback_service/client"
MOST = 10


def declaring_an_interval():
    """The classes written by hand that declare both ends of an interval; beside quartiles these are ends of something else."""
    for part in PRODUCT:
        for file in sorted((ROOT / part).rglob("*.py")):
            text = file.read_text()
            if file.is_relative_to(GENERATED) or "high" not in text:
                continue
            for node in ast.walk(ast.parse(text)):
                fields = fields_of(node) if isinstance(node, ast.ClassDef) else set()
                if {"low", "high"} <= fields and "q25" not in fields:
                    yield f"{file.relative_to(ROOT)}:{node.lineno} {node.name}"


def fields_of(node):
    """The annotated names in the body of a class."""
    return {
        each.target.id for each in node.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }


def test_few_classes_declare_a_ratio_with_its_interval():
    found = list(declaring_an_interval())
    assert "service/pullback_service/ratio.py" in {each.split(":")[0] for each in found}
    assert len(found) <= MOST, f"Hold a Ratio instead of its fields: {found}"
