"""How long a reader waits: until a page shows something useful, and until its charts answer to the pointer.

    python -m benchmarks.service_load --folder /tmp/load --fill-only    ten million points: ten minutes, once
    python -m benchmarks.first_paint --folder /tmp/load                 the service on them, started for this
    python -m benchmarks.first_paint --server http://127.0.0.1:8000     a service that runs already

A headless Chromium loads every page again and again; what it reports itself counts, from the beginning of the navigation
on. The first useful paint is the last of the first two kinds that browsers tell of (first and largest contentful paint):
tables, sparklines and still charts come with the page, so that nothing useful is painted later but what Plotly draws.
Plotly is in the cache, as it is from the second page of a reader's life on; what it takes without is told beside it.
"""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from urllib.parse import quote

from benchmarks.service_load import shape
from benchmarks.service_load.figures import Figure, table
from benchmarks.service_load.processes import TOKEN, serving
from playwright.sync_api import Browser, BrowserContext, sync_playwright

from pullback_service import migrating
from pullback_service.postgres import EmbeddedPostgres

PAINT_MS, CHARTS_MS = 300.0, 1500.0
MARKS = """
window.marks = {};
new PerformanceObserver((list) => { for (const entry of list.getEntries()) window.marks.largest = entry.startTime; })
  .observe({ type: "largest-contentful-paint", buffered: true });
new MutationObserver(() => { if (!window.marks.drawn && document.querySelector("[data-drawn=yes]"))
  window.marks.drawn = performance.now(); }).observe(document, { attributes: true, subtree: true, attributeFilter: ["data-drawn"] });
"""
READ = """() => ({ ...window.marks, server: performance.getEntriesByType("navigation")[0].responseStart,
  first: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? null })"""
CHROMIUM = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync")


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; exit status 1 says that a figure was missed."""
    options = _parser().parse_args(arguments)
    with _service(options.server, options.folder) as (address, token), sync_playwright() as playwright:
        path = os.environ.get("PULLBACK_CHROMIUM") or shutil.which("chromium") or None
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM)
        pages = options.page or list(_pages(browser, address, token))
        figures = [figure for page in pages for figure in _measure(browser, address, token, page, options.times)]
        browser.close()
    print(*table(figures), sep="\n")
    if options.json:
        options.json.write_text(json.dumps([figure.as_json() for figure in figures], indent=1))
    return 1 if any(figure.met is False for figure in figures) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--server", help="address of a service that runs and needs no token")
    where.add_argument("--folder", type=Path, help="folder that benchmarks.service_load has filled")
    parser.add_argument("--page", action="append", help="path of a page; may be repeated; default: one of each kind")
    parser.add_argument("--times", type=int, default=9, help="how often each page is loaded")
    parser.add_argument("--json", type=Path, help="write the figures as JSON")
    return parser


@contextmanager
def _service(server: str | None, folder: Path | None) -> Iterator[tuple[str, str | None]]:
    """Address of the service and the token it wants."""
    if server is not None or folder is None:
        yield (server or "").rstrip("/"), None
        return
    postgres = EmbeddedPostgres(folder / "postgres")
    ours = not postgres.is_running()
    migrating.upgrade(postgres.start())
    try:
        with serving(postgres, folder / "processes", with_worker=False) as service:
            yield f"http://127.0.0.1:{service.port}", TOKEN
    finally:
        if ours:
            postgres.stop()


def _context(browser: Browser, address: str, token: str | None) -> BrowserContext:
    """A browser with an empty cache, signed in."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.add_init_script(MARKS)
    if token is not None:
        context.request.post(f"{address}/login", form={"token": token, "next": "/help"})
    return context


def _pages(browser: Browser, address: str, token: str | None) -> Iterator[str]:
    """One page of each kind, found by links; of the filled database its project."""
    context = _context(browser, address, token)
    front = f"/?project={quote(shape.PROJECT)}" if token is not None else "/"
    page = context.new_page()
    kinds = (
        "/",
        "/workloads/",
        "/commits/",
        "/cases/",
        "/compare",
        "/explore",
        "/reports/",
        "/jobs",
        "/machines",
        "/help",
    )
    found = {"/": front}
    for visited in (front, "/workloads/", "/commits/"):
        page.goto(address + found.get(visited, visited) if visited != front else address + front)
        for link in page.locator("a[href^='/']").all():
            target = str(link.get_attribute("href"))
            kind = max((kind for kind in kinds if kind in target), key=lambda kind: (kind == "/cases/", len(kind)))
            found.setdefault(kind, target)
    context.close()
    yield from found.values()


def _measure(browser: Browser, address: str, token: str | None, path: str, times: int) -> Iterator[Figure]:
    context = _context(browser, address, token)
    loads = []
    for _ in range(times + 1):
        page = context.new_page()
        page.goto(address + path)
        if page.locator("[data-figure]").count():
            page.wait_for_selector("[data-drawn=yes]", timeout=60_000)
        page.wait_for_timeout(50)
        loads.append(page.evaluate(READ))
        page.close()
    context.close()
    first, again = loads[0], loads[1:]

    def useful(load: dict[str, float | None]) -> float:
        return max(load.get("first") or 0.0, load.get("largest") or 0.0)

    server = median(float(load["server"]) for load in again)
    yield Figure(
        f"first useful paint of {path}", median(map(useful, again)), "ms", most=PAINT_MS,
        note=f"worst {max(map(useful, again)):.0f}, empty cache {useful(first):.0f}; of it the service {server:.0f}",
    )  # fmt: skip
    drawn = _known(load.get("drawn") for load in again)
    if drawn:
        yield Figure(
            f"interactive charts of {path}", median(drawn), "ms", most=CHARTS_MS,
            note=f"worst {max(drawn):.0f}, empty cache {first.get('drawn') or 0:.0f}",
        )  # fmt: skip


def _known(values: Iterator[float | None]) -> Sequence[float]:
    return [value for value in values if value is not None]


if __name__ == "__main__":
    sys.exit(main())
