"""The examples in the documents run, and print what they say: every block marked python, page by page from the top.

A block is plain code, or a session with `>>>` whose output is compared.
"""

import doctest
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if BLOCK.search(page.read_text())]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_the_examples_of_a_page_run(page, tmp_path, monkeypatch):
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
