"""The examples in the README and in docs run, and print what they say: every block marked python, page by page from the top.

A block is plain code, or a session with `>>>` whose output is compared.
"""

import doctest
import re
from pathlib import Path

import pytest

from pullback_runners.workloads import registry

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)")
PYTHON_FILE = re.compile(r"`([\w./-]+\.py)`")
FOLDERS = ("engine", "runners", "service", "dashboards", "cli", "migrations", "tools", "deploy", "benchmarks", "tests")
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
PAGES = [page for page in DOCUMENTS if BLOCK.search(page.read_text())]


@pytest.fixture
def own_registry(monkeypatch):
    """What examples declare is known to their own test only."""
    registry.known_workloads()
    monkeypatch.setattr(registry, "_workloads", dict(registry._workloads))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_examples_of_a_page_run(page, tmp_path, monkeypatch, own_registry):
    monkeypatch.chdir(tmp_path)
    text = page.read_text()
    namespace = {"__name__": "example"}
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start(1))
        if ">>>" in block[1]:
            _run_session(block[1], namespace, f"{page.name}:{line + 1}")
        else:
            exec(compile("\n" * line + block[1], str(page), "exec"), namespace)  # noqa: S102 (our own pages)


def _run_session(text, namespace, name):
    example = doctest.DocTestParser().get_doctest(text, namespace, name, name, 0)
    complaints = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    results = runner.run(example, out=complaints.append, clear_globs=False)
    namespace.update(example.globs)
    assert results.failed == 0, "".join(complaints)


def test_guides_call_a_busy_machine_busy():
    assert not [page.name for page in DOCS.glob("*.md") if "contaminated" in page.read_text()]


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_to_a_heading_in_it(page):
    for place, heading in LINK.findall(re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)):
        target = page.parent / place if place else page
        assert target.exists(), place
        if heading:
            headings = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
            assert heading in {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in headings}, heading


def test_the_python_files_that_decisions_name_exist():
    files = {f"/{path.relative_to(ROOT)}" for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")}
    missing = [
        f"{page.relative_to(ROOT)}: `{name}`"
        for page in sorted((DOCS / "decisions").glob("*.md"))
        for name in PYTHON_FILE.findall(page.read_text())
        if not any(file.endswith(f"/{name}") for file in files)
    ]
    assert not missing, (
        "bring these names up to date; of a file that is gone, say what it did without its name:\n" + "\n".join(missing)
    )


def test_the_index_lists_every_document():
    index = (DOCS / "README.md").read_text()
    listed = {place for place, _ in LINK.findall(index)}
    assert listed == {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} - {"README.md"}


def test_the_figures_of_the_readme_are_those_of_the_documents():
    readme = (ROOT / "README.md").read_text()
    names = re.search(r"^(\d+) names of NumPy", (DOCS / "numpy-coverage.md").read_text(), re.MULTILINE)
    assert f"{names[1]} functions of NumPy" in readme, "bring the number in README.md up to date"
    rates = re.findall(
        r"^\| (HIPS autograd|pymanopt) .*\| ([\d.]+ %) \|$", (DOCS / "autograd-compat.md").read_text(), re.MULTILINE
    )
    assert len(rates) == 2
    assert all(rate in readme for _, rate in rates), "bring the rates in README.md up to date"
