"""Rendering of a view as a page, JSON or CSV. The only file that knows templates and headers."""

import csv
import io
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from http import HTTPStatus
from typing import Annotated, Any, TypeVar
from urllib.parse import quote

import orjson
from fastapi import APIRouter, Query, Request, Response
from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context
from jinja2.ext import Extension
from jinja2.runtime import Context
from markupsafe import Markup, escape

from pullback_dashboards import links
from pullback_dashboards.assets import asset
from pullback_dashboards.charts.noise import Floor, noise
from pullback_dashboards.charts.palette import line_style_of
from pullback_dashboards.charts.raster import png
from pullback_dashboards.charts.static_chart import COLOURS_HASH, NARROWEST, WIDEST
from pullback_dashboards.charts.strip import Groups, strip
from pullback_dashboards.history import metric_label
from pullback_dashboards.markdown_pages import markdown_of
from pullback_dashboards.projection_notice import notice_of
from pullback_dashboards.threaded_response import ThreadedResponse
from pullback_dashboards.wording import factors, units
from pullback_dashboards.wording.facts import Fact, ReadableFact, in_groups
from pullback_dashboards.wording.markdown import markdown_text
from pullback_dashboards.wording.moments import duration, moment
from pullback_dashboards.wording.plurals import counted, noun
from pullback_service.current_settings import base_of
from pullback_service.exports.comma_separated import tame
from pullback_service.logins.cookies import COOKIE, masked_csrf_of
from pullback_service.visible_text import visible

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
Width = Annotated[int, Query(ge=NARROWEST, le=WIDEST, description="Of the chart; text keeps its size.")]

_MARKDOWN = ".md"
_EVERYWHERE = ("theme.js", "times.js")
_THEME = "pullback_theme"  # the cookie in which `theme.js` keeps the reader's choice
_THEMES = frozenset({"light", "dark"})
_INDENTATION = re.compile(r"^[ \t]+", re.MULTILINE)
_INTERVAL = re.compile(r"[\d.,e+]*\d–\d[\d.,e+]*")
_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cache-control": "no-cache",
    "vary": "cookie",  # the button Back shows what was kept: not once the theme is another, or the reader signed out
}


def _policy(styles: str) -> str:
    """The content security policy of a page: nothing from elsewhere, and scripts from files of ours alone."""
    return (
        f"default-src 'none'; script-src 'self'; style-src {styles}; img-src 'self' data: blob:; "
        "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )


_PAGE = _HEADERS | {"content-security-policy": _policy("'self'")}
# Plotly writes style attributes, and so does the page for the room that a figure will take.
_PAGE_WITH_FIGURE = _HEADERS | {"content-security-policy": _policy("'self' 'unsafe-inline'")}
# A chart opened by itself has its colours in it, and nothing else.
_CHART_POLICY = f"default-src 'none'; style-src '{COLOURS_HASH}'; frame-ancestors 'none'"


def page(
    request: Request,
    template: str,
    *,
    title: str,
    figure: Mapping[str, int] | None = None,
    formats: Sequence[str] = (),
    scripts: Sequence[str] = (),
    status: int = 200,
    project: str | None = None,
    machine: str | None = None,
    coming_from: str | None = None,
    **parts: Any,
) -> ThreadedResponse:
    """The page of a view, or its Markdown where that is asked for. `formats` names the other formats of the same address.

    `figure` is the height of the interactive figure that the page's script fetches from the `.figure.json` beside it;
    `scripts` are those that this page needs and others do not.
    `project`, and perhaps `machine`, say what it speaks of: feed readers are led to what changed there. `coming_from` is the
    project that the bar keeps on a page that speaks of none.
    """
    is_markdown = wants_markdown(request)

    def made() -> str:
        path, query = address_of(request), request.url.query
        bar_project = project or coming_from
        body = (
            _templates()
            .get_template(template)
            .render(
                title=title,
                theme=theme if (theme := request.cookies.get(_THEME)) in _THEMES else None,
                path=path,
                address=None
                if status >= HTTPStatus.BAD_REQUEST
                else f"{path}?{query}"
                if query
                else path,  # to be shared
                feed=links.feed(project, machine=machine) if project is not None else None,
                project=project,
                unprojected=notice_of(request),
                machine=machine,
                bar_project=bar_project,
                compare=links.compare(bar_project) if bar_project else "/compare",
                explore=links.explore(bar_project) if bar_project else "/explore",
                incidents=links.incidents(bar_project) if bar_project else "/incidents",
                figure=figure,
                figure_href=links.in_format(path, query, "figure.json") if figure else None,
                formats={suffix: links.in_format(path, query, suffix) for suffix in formats},
                now=datetime.now(UTC),
                base=base_of(request),
                scripts=[*_EVERYWHERE, *(["figures.js"] if figure else []), *scripts],
                csrf=masked_csrf_of(request.cookies[COOKIE]) if request.cookies.get(COOKIE) else None,
                **parts,
            )
        )
        if not is_markdown:
            return body
        here = base_of(request) + path
        return markdown_of(body, f"{here}?{query}" if query else here)

    if is_markdown:
        return markdown_response(made)
    return ThreadedResponse(
        made, media_type="text/html", status_code=status, headers=headers_of(figure=figure is not None)
    )


def headers_of(*, figure: bool) -> Mapping[str, str]:
    """The headers of a page, with an interactive figure or without."""
    return _PAGE_WITH_FIGURE if figure else _PAGE


class _IndentationRemover(Extension):
    """Templates are indented for those who write them, pages are not: it would add up to 8 % to their bytes.

    A break of a line stays, which browsers read as a blank; no text in which every blank counts is indented.
    """

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:  # noqa: ARG002 - as Jinja calls it
        """The source without it."""
        return _INDENTATION.sub("", source)


def address_of(request: Request) -> str:
    """The path of a page as an address has it: names with a question mark or a slash in them stay whole."""
    raw = request.scope.get("raw_path")
    path = raw.decode("ascii") if raw else quote(request.url.path)
    return path.removesuffix(_MARKDOWN) if wants_markdown(request) else path


def wants_markdown(request: Request) -> bool:
    """True if the route is that of Markdown: a workload may be called `notes.md` as well."""
    return getattr(request.scope.get("route"), "path", "").endswith(_MARKDOWN)


def markdown_response(write: Callable[[], str]) -> ThreadedResponse:
    """Markdown, shown by browsers as it is and pasted into a pull request as it is."""
    headers = {"cache-control": "no-cache", "x-content-type-options": "nosniff"}
    return ThreadedResponse(write, media_type="text/markdown; charset=utf-8", headers=headers)


def json_response(view: object) -> ThreadedResponse:
    """A view as JSON: the same values, in words and in numbers."""
    write = partial(orjson.dumps, view, default=_plain, option=orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS)
    return ThreadedResponse(write, media_type="application/json", headers={"cache-control": "no-cache"})


def _plain(part: object) -> object:
    """A part of a view that makes its words when they are asked for: all of them."""
    plain = getattr(part, "plain", None)
    if plain is None:
        raise TypeError(f"{type(part).__name__} is no part of a view.")
    return plain()


def csv_response(filename: str, rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> ThreadedResponse:
    """A table as CSV. Text that a spreadsheet would run as a formula is quoted with an apostrophe."""
    return csv_file(filename, lambda: csv_of(columns, ([_tamed(row.get(name)) for name in columns] for row in rows)))


def add_formats(router: APIRouter, path: str, view: Any, csv: Callable[[Any], Response] | None = None) -> None:
    """Add the JSON of a page at `path`.json and, with `csv`, its table at `path`.csv; `view` is the dependency that makes its view."""
    for suffix, answer in (("json", json_response), ("csv", csv)):
        if answer is not None:
            router.get(f"{path}.{suffix}")(_in_format(answer, view))


def page_at(
    router: APIRouter, path: str, view: Any, csv: Callable[[Any], Response] | None = None, *, also: Sequence[str] = ()
) -> Callable[[Endpoint], Endpoint]:
    """Put a page at `path`, as Markdown at `path`.md and as it is with the suffixes in `also`, and in its other formats."""

    def put(endpoint: Endpoint) -> Endpoint:
        add_formats(router, path, view, csv)
        for suffix in (_MARKDOWN, *also, ""):
            router.get(path + suffix)(endpoint)
        return endpoint

    return put


def _in_format(answer: Callable[[Any], Response], view: Any) -> Callable[..., Awaitable[Response]]:
    async def in_format(view: Any) -> Response:
        return answer(view)

    in_format.__annotations__["view"] = view
    return in_format


def csv_of(columns: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """The rows as CSV, their text as it is: `tame` it before."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def csv_file(filename: str, write: Callable[[], str]) -> ThreadedResponse:
    """CSV that `write` returns, as a file to be saved."""
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in filename)
    headers = {"content-disposition": f'attachment; filename="{safe}.csv"', "cache-control": "no-cache"}
    return ThreadedResponse(write, media_type="text/csv; charset=utf-8", headers=headers)


# Who asks decides what is shown: not once the reader has signed out, or in as somebody else.
_KEPT_BY_THE_READER = {"cache-control": "private, max-age=300", "vary": "Cookie, Authorization"}


def svg_response(draw: Callable[[], str]) -> ThreadedResponse:
    """An image that other sites embed; kept for five minutes by the reader's own browser, for the project may be private."""
    headers = {
        **_KEPT_BY_THE_READER,
        "content-security-policy": _CHART_POLICY,
        "x-content-type-options": "nosniff",
    }
    return ThreadedResponse(draw, media_type="image/svg+xml", headers=headers)


def png_response(draw: Callable[[], str], width: int) -> ThreadedResponse:
    """The same as pixels, twice as many as it is wide for those who look closely; kept as long."""
    headers = {**_KEPT_BY_THE_READER, "x-content-type-options": "nosniff"}
    return ThreadedResponse(lambda: png(draw(), width), media_type="image/png", headers=headers)


@pass_context
def _onward(context: Context, address: str) -> str:
    """An address of a page that speaks of no project, with the one that this page speaks of or its reader comes from."""
    return links.via(address, context["bar_project"])


def _noise(days: Sequence[Floor]) -> Markup:
    return Markup(noise(days))  # noqa: S704 - numbers only


def _strip(now: Groups, before: Groups | None, tone: str) -> Markup:
    return Markup(strip(now, before, tone=tone))  # noqa: S704 - numbers only


def _drawing(svg: str) -> Markup:
    return Markup(svg)  # noqa: S704 - made by charts/, which escapes names


def _tamed(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    return tame(value) if isinstance(value, str) else value


def _breakable(label: str) -> Markup:
    """A case's label, which a narrow page may break behind its commas instead of inside a word."""
    parts = [Markup("{}").format(part) for part in re.split(r"(?<=[,\[_])", visible(label))]
    return Markup("<wbr>").join(parts)


def _whole_words(text: str) -> Markup:
    """A command that a narrow page breaks at blanks: behind the hyphen of an option it would read as another command."""
    words = (Markup(word) if isinstance(text, Markup) else word for word in re.split(r"(\s+)", visible(text)))  # noqa: S704 - it is one
    return Markup("").join(Markup("<span>{}</span>").format(word) if "-" in word else word for word in words)


def unbroken(text: str) -> Markup:
    """Text that a narrow page does not break within an interval: behind a dash a browser may."""
    shown = escape(visible(text))
    return Markup(_INTERVAL.sub(_whole, shown)) if "–" in text else shown  # noqa: S704 - escaped


def _whole(interval: re.Match[str]) -> str:
    return f'<span class="whole">{interval[0]}</span>'


def _with_code(text: str) -> Markup:
    """Text in which what stands between backticks is code."""
    parts = visible(text).split("`")
    return Markup("").join(Markup("<code>{}</code>").format(part) if n % 2 else part for n, part in enumerate(parts))


def _seen(value: object) -> object:
    """Text of a template value, before it is escaped. Values that are HTML already have passed through this, or a filter of ours."""
    return visible(value) if type(value) is str else value


def _in_groups(facts: Iterable[Fact]) -> tuple[tuple[str, tuple[ReadableFact, ...]], ...]:
    return in_groups(fact.read for fact in facts)


def _address_of_asset(name: str) -> str:
    return asset(name).address


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("pullback_dashboards"),
        autoescape=True,
        finalize=_seen,
        undefined=StrictUndefined,
        trim_blocks=True,
        extensions=[_IndentationRemover],
    )
    environment.globals |= {"links": links, "asset": _address_of_asset, "line_style_of": line_style_of}
    environment.filters |= {
        "asset": _address_of_asset,
        "moment": moment,
        "counted": counted,
        "noun": noun,
        "duration": duration,
        "onward": _onward,
        "sign": factors.sign,
        "quantity": units.quantity,
        "in_groups": _in_groups,
        "metric_label": metric_label,
        "strip": _strip,
        "noise": _noise,
        "drawing": _drawing,
        "markdown_text": markdown_text,
        "breakable": _breakable,
        "with_code": _with_code,
        "whole_words": _whole_words,
        "unbroken": unbroken,
    }
    return environment
