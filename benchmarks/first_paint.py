"""Time until a page shows something useful, and until its charts answer to the pointer.

    python -m benchmarks.service_load --folder /tmp/load --fill-only    ten million points: ten minutes, once
    python -m benchmarks.first_paint --folder /tmp/load                 the service on them, started for this
    python -m benchmarks.first_paint --server http://127.0.0.1:8000     a service that runs already

A headless Chromium loads every page again and again; what it reports itself counts, from the beginning of the navigation
on. The first useful paint is the last of the first two kinds that browsers tell of (first and largest contentful paint):
tables, sparklines and still charts come with the page, so that nothing useful is painted later but what Plotly draws.
What Plotly draws answers to the pointer once `data-drawn` says so: all that is in the window, and a window's height on.

The browser has a profile, as a reader's has, and each page is loaded three times before it counts: by then Plotly lies in
the cache together with what was compiled of it, which Chromium keeps of scripts that it meets a second time. What it takes
with an empty cache, and in a private window, where every page compiles Plotly again, is told beside it. On a busy machine
the processor time of the page's main thread is what to compare.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from statistics import median
from urllib.parse import quote, urlsplit

from benchmarks.service_load import shape
from benchmarks.service_load.pages import make
from benchmarks.service_load.processes import TOKEN, serving
from benchmarks.service_load.thresholds import Figure, table
from playwright.sync_api import BrowserContext, BrowserType, ViewportSize, sync_playwright

from pullback_service import migrations
from pullback_service.postgres import EmbeddedPostgres

PAINT_MS, CHARTS_MS = 300.0, 1500.0
READ_BEFORE = 3
"""Loads of a page until Chromium has met its scripts, compiled them to keep, and taken that from its cache once."""
LOOKED_AT_MS = 1000
"""Time that a page stays open while it is read before: compiled code is written a little after the page has loaded."""
PRIVATE_TIMES = 3
WINDOW: ViewportSize = {"width": 1440, "height": 900}
FORMATS = {".json", ".csv", ".md", ".svg", ".atom"}
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
    with _service(options.server, options.folder) as (address, token, fronts), sync_playwright() as playwright:
        browser = _Browser(playwright.chromium, address, token)
        pages = options.page or list(_pages(browser, fronts))
        figures = [figure for page in pages for figure in _measure(browser, page, options.times)]
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
def _service(server: str | None, folder: Path | None) -> Iterator[tuple[str, str | None, Sequence[str]]]:
    """Address of the service, the token it wants, and pages whose links lead to the others.

    Of ten million points only rows are stored; commits, reports and cases are looked at where whole reports are behind them.
    """
    if server is not None or folder is None:
        yield (server or "").rstrip("/"), None, ["/"]
        return
    postgres = EmbeddedPostgres(folder / "postgres")
    ours = not postgres.is_running()
    migrations.upgrade(postgres.start())
    try:
        with serving(postgres, folder / "processes", with_worker=False) as service:
            shown = make(service.connect())
            fronts = [f"/?project={quote(shape.PROJECT)}", f"/projects/{quote(shown.project)}/commits/{shown.sha}"]
            yield f"http://127.0.0.1:{service.port}", TOKEN, fronts
    finally:
        if ours:
            postgres.stop()


@dataclass(frozen=True)
class _Browser:
    """Chromium, and what it is to look at."""

    chromium: BrowserType
    address: str
    token: str | None

    @contextmanager
    def profile(self) -> Iterator[BrowserContext]:
        """The browser of a reader who has never been here, signed in. It keeps what it caches on the disk."""
        with tempfile.TemporaryDirectory() as folder:
            context = self.chromium.launch_persistent_context(
                folder, executable_path=_executable(), args=CHROMIUM, viewport=WINDOW
            )
            yield self._signed_in(context)
            context.close()

    @contextmanager
    def private(self) -> Iterator[BrowserContext]:
        """A private window, signed in. It caches in memory, and compiled code not at all."""
        browser = self.chromium.launch(executable_path=_executable(), args=CHROMIUM)
        yield self._signed_in(browser.new_context(viewport=WINDOW))
        browser.close()

    def _signed_in(self, context: BrowserContext) -> BrowserContext:
        context.add_init_script(MARKS)
        if self.token is not None:
            context.request.post(f"{self.address}/login", form={"token": self.token, "next": "/help"})
        return context


def _executable() -> str | None:
    """The browser of the system, where it has one."""
    return os.environ.get("PULLBACK_CHROMIUM") or shutil.which("chromium") or None


def _pages(browser: _Browser, fronts: Sequence[str]) -> Iterator[str]:
    """One page of each kind, found by following links from the first ones, level by level."""
    found = {_kind(front): front for front in fronts}
    waiting = [*fronts]
    with browser.private() as context:
        page = context.new_page()
        while waiting:
            page.goto(browser.address + waiting.pop(0), wait_until="domcontentloaded")
            for link in page.locator("a[href^='/']").all():
                target = str(link.get_attribute("href"))
                kind = _kind(target)
                if kind is not None and kind not in found:
                    found[kind] = target
                    waiting.append(target)
    yield from found.values()


def _kind(target: str) -> tuple[str, ...] | None:
    """The words of an address that say what page it is; None for other formats, feeds and what is no page."""
    path = urlsplit(target).path
    if PurePosixPath(path).suffix in FORMATS or path.startswith(("/api/", "/static/", "/login")):
        return None
    return tuple(word for word in path.split("/") if word in WORDS)


def _measure(browser: _Browser, path: str, times: int) -> Iterator[Figure]:
    with browser.profile() as context:
        first, *_ = [_load(context, browser.address + path, LOOKED_AT_MS) for _ in range(READ_BEFORE)]
        again = [_load(context, browser.address + path) for _ in range(times)]

    name = " ".join(_kind(path) or ()) or "overview"
    server, used = median(load["server"] for load in again), median(load["used"] for load in again)
    yield Figure(
        f"{name}: first useful paint", median(map(_useful, again)), "ms", most=PAINT_MS,
        note=f"worst {max(map(_useful, again)):.0f}, empty cache {_useful(first):.0f}; "
        f"the service {server:.0f}, CPU of the page {used:.0f}",
    )  # fmt: skip
    if drawn := [load["drawn"] for load in again if "drawn" in load]:
        with browser.private() as context:
            _, *private = [_load(context, browser.address + path) for _ in range(PRIVATE_TIMES + 1)]
        yield Figure(
            f"{name}: interactive charts", median(drawn), "ms", most=CHARTS_MS,
            note=f"worst {max(drawn):.0f}, empty cache {first.get('drawn') or 0:.0f}, CPU of the page {first['used']:.0f}; "
            f"private window {median(load['drawn'] for load in private):.0f}, "
            f"CPU of the page {median(load['used'] for load in private):.0f}",
        )  # fmt: skip


def _load(context: BrowserContext, address: str, looked_at_ms: float = 0) -> dict[str, float]:
    """Load a page until everything stands there; milliseconds since the navigation began, and `used` of its main thread."""
    page = context.new_page()
    devtools = context.new_cdp_session(page)
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
    answer = page.goto(address)
    if answer is None or not answer.ok:
        raise SystemExit(f"{address} is no page to measure: it was answered with {answer and answer.status}.")
    if page.locator("[data-figure]").count():
        page.wait_for_selector("[data-drawn=yes]", timeout=60_000)
    page.wait_for_timeout(50)
    metrics = {metric["name"]: metric["value"] for metric in devtools.send("Performance.getMetrics")["metrics"]}
    load = {**page.evaluate(READ), "used": 1000 * metrics["TaskDuration"]}
    page.wait_for_timeout(looked_at_ms)
    page.close()
    return load


def _useful(load: dict[str, float]) -> float:
    return max(load.get("first") or 0.0, load.get("largest") or 0.0)


if __name__ == "__main__":
    sys.exit(main())
