"""How long a reader waits: until a page shows something useful, and until its charts answer to the pointer.

    python -m benchmarks.service_load --folder /tmp/load --fill-only    ten million points: ten minutes, once
    python -m benchmarks.first_paint --folder /tmp/load                 the service on them, started for this
    python -m benchmarks.first_paint --server http://127.0.0.1:8000     a service that runs already

A headless Chromium loads every page again and again; what it reports itself counts, from the beginning of the navigation
on. The first useful paint is the last of the first two kinds that browsers tell of (first and largest contentful paint):
tables, sparklines and still charts come with the page, so that nothing useful is painted later but what Plotly draws.
Plotly is in the cache, as it is from the second page of a reader's life on; what it takes without is told beside it. On a
busy machine the processor time of the page's main thread is what to compare.
"""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from statistics import median
from urllib.parse import quote, urlsplit

from benchmarks.service_load import shape
from benchmarks.service_load.figures import Figure, table
from benchmarks.service_load.processes import TOKEN, serving
from playwright.sync_api import Browser, BrowserContext, sync_playwright

from pullback_service import migrating
from pullback_service.postgres import EmbeddedPostgres

PAINT_MS, CHARTS_MS = 300.0, 1500.0
TWINS = {".json", ".csv", ".md", ".svg", ".atom"}
WORDS = {
    *("workloads", "commits", "cases", "compare", "explore", "reports"),
    *("jobs", "fleet", "machines", "boards", "pin", "settings", "tokens", "audit", "help"),
}
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
    """One page of each kind, found by following links; of the filled database those of its project."""
    context = _context(browser, address, token)
    page = context.new_page()
    front = f"/?project={quote(shape.PROJECT)}" if token is not None else "/"
    found = {_kind(front): front}
    waiting = [front]
    while waiting:
        page.goto(address + waiting.pop(0), wait_until="domcontentloaded")
        for link in page.locator("a[href^='/']").all():
            target = str(link.get_attribute("href"))
            kind = _kind(target)
            if kind is not None and kind not in found:
                found[kind] = target
                waiting.append(target)
    context.close()
    yield from found.values()


def _kind(target: str) -> tuple[str, ...] | None:
    """The words of an address that say what page it is; None for twins, feeds and what is no page."""
    path = urlsplit(target).path
    if PurePosixPath(path).suffix in TWINS or path.startswith(("/api/", "/static/", "/login")):
        return None
    return tuple(word for word in path.split("/") if word in WORDS)


def _measure(browser: Browser, address: str, token: str | None, path: str, times: int) -> Iterator[Figure]:
    context = _context(browser, address, token)
    loads: list[dict[str, float]] = []
    for _ in range(times + 1):
        page = context.new_page()
        devtools = context.new_cdp_session(page)
        devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
        page.goto(address + path)
        if page.locator("[data-figure]").count():
            page.wait_for_selector("[data-drawn=yes]", timeout=60_000)
        page.wait_for_timeout(50)
        metrics = {metric["name"]: metric["value"] for metric in devtools.send("Performance.getMetrics")["metrics"]}
        loads.append({**page.evaluate(READ), "used": 1000 * metrics["TaskDuration"]})
        page.close()
    context.close()
    first, again = loads[0], loads[1:]

    def useful(load: dict[str, float]) -> float:
        return max(load.get("first") or 0.0, load.get("largest") or 0.0)

    name = " ".join(_kind(path) or ()) or "overview"
    server, used = median(load["server"] for load in again), median(load["used"] for load in again)
    yield Figure(
        f"{name}: first useful paint", median(map(useful, again)), "ms", most=PAINT_MS,
        note=f"worst {max(map(useful, again)):.0f}, empty cache {useful(first):.0f}; the service {server:.0f}, CPU of the page {used:.0f}",
    )  # fmt: skip
    if drawn := [load["drawn"] for load in again if "drawn" in load]:
        yield Figure(
            f"{name}: interactive charts", median(drawn), "ms", most=CHARTS_MS,
            note=f"worst {max(drawn):.0f}, empty cache {first.get('drawn') or 0:.0f}",
        )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
