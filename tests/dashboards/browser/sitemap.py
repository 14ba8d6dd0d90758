"""Which pages there are: those the application has routes for, at addresses that following links finds.

Nobody keeps a list that a new page could be missing from: a page that no link leads to is found out, and so is a link
that leads nowhere.
"""

import re
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import PurePosixPath
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

import httpx
from fastapi.routing import APIRoute
from starlette.routing import Match

from pullback_cli.app import create_app
from pullback_service.settings import Settings

HTML = {"accept": "text/html"}
MOST = {False: 6, True: 2}  # addresses of one route that are followed: of plain names, of those that try to break out


APP = create_app(Settings(DATABASE_URL="postgresql://nowhere/nothing"))
ROUTES = [route for route in APP.routes if isinstance(route, APIRoute)]


def is_page(route):
    """True of a page that people look at: neither another format of one nor an asset."""
    return (
        route.endpoint.__module__.startswith("pullback_dashboards.")
        and "GET" in route.methods
        and not PurePosixPath(route.path).suffix
        and not route.path.startswith("/static/")
    )


PAGES = [route.path for route in ROUTES if is_page(route)]


def route_of(address, method="GET"):
    """The route that answers at an address, or None."""
    path = httpx.URL(address).path  # unquoted, as a server hands it on
    scope = {"type": "http", "method": method, "path": path, "root_path": "", "headers": []}
    return next((route for route in ROUTES if route.matches(scope)[0] is Match.FULL), None)


class Html(HTMLParser):
    """What of a page leads elsewhere, and the places on it that can be led to."""

    def __init__(self, text):
        super().__init__()
        self.links, self.forms, self.ids = [], [], set()
        self.title = ""
        self._in_title = False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        """Note links, forms with their fields, and ids."""
        found = dict(attributes)
        if "id" in found:
            self.ids.add(found["id"])
        if tag == "title":
            self._in_title = not self.title  # drawings have titles too
        elif "href" in found and (tag == "a" or found.get("rel") == "alternate"):
            self.links.append(found["href"])
        elif tag == "form":
            self.forms.append(Form(found.get("method", "get").upper(), found.get("action")))
        elif self.forms and tag == "input" and found.get("name") and found.get("type") not in {"checkbox", "radio"}:
            self.forms[-1].fields[found["name"]] = found.get("value") or ""
        elif self.forms and tag == "button" and found.get("type", "submit") == "submit":
            self.forms[-1].submits += 1

    def handle_endtag(self, tag):
        """Leave the title."""
        if tag == "title":
            self._in_title = False

    def handle_data(self, data):
        """Keep the title."""
        if self._in_title:
            self.title += data


@dataclass
class Form:
    """A form as a browser without scripts sends it."""

    method: str
    action: str | None
    fields: dict[str, str] = field(default_factory=dict)
    submits: int = 0


@dataclass
class Sitemap:
    """What following links found."""

    base: str
    addresses: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))
    """Of every page's route the addresses and how many bytes they are."""
    titles: dict[str, str] = field(default_factory=dict)
    redirected: set[str] = field(default_factory=set)
    """The routes that only point to another."""
    broken: list[str] = field(default_factory=list)

    def worth_a_look(self):
        """Of every kind of page the first that was found, the largest, and one with names that try to break out.

        One page of them all has such a name only in its bar, which is the same on every page.
        """
        chosen, in_bar = {}, None
        for found in self.addresses.values():
            own = [address for address in found if not _is_wild_in_bar(address)] or list(found)
            largest = max(own, key=found.__getitem__)
            wild = next((address for address in own if "wild%2F" in address), None)
            in_bar = in_bar or next(filter(_is_wild_in_bar, found), None)
            chosen |= dict.fromkeys(address for address in (own[0], largest, wild) if address)
        return [*chosen, *filter(None, [in_bar])]


def _is_wild_in_bar(address):
    """True if the name of the project that the reader comes from is all that is wild."""
    return "wild%2F" in address and "wild%2F" not in re.sub(r"via=[^&]*", "", address)


def explore(base, starts=("/",)):
    """Follow every kind of link from the front page on, and send every form that only reads."""
    with httpx.Client(base_url=base, headers=HTML, timeout=60) as client:
        return _Explorer(client, Sitemap(base)).explore(starts)


class _Explorer:
    def __init__(self, client, site):
        self._client, self._site = client, site
        self._fetched = {}  # address -> its page, or None for what is none
        self._kinds, self._followed = set(), Counter()
        self._named = defaultdict(set)  # address -> (a place on it, who leads there)

    def explore(self, starts):
        queue = deque((start, "the start") for start in starts)
        while queue:
            target, whence = queue.popleft()
            address, place = self._inside(target)
            if address is None:
                continue
            if place:
                self._named[address].add((place, whence))
            route = route_of(address)
            if route is None:
                if not address.startswith("/api/"):  # the API's own tests see to its addresses
                    self._site.broken.append(f"{whence} leads to {target}, where nothing is")
            elif self._is_new(address, route):
                queue.extend(self._fetch(address, route, whence))
        self._site.broken.extend(self._places_that_are_not())
        return self._site

    def _inside(self, target):
        """The address on this service, and the place on the page."""
        parts = urlsplit(target)
        if f"{parts.scheme}://{parts.netloc}" not in {"://", self._site.base}:
            return None, None
        return parts._replace(scheme="", netloc="", fragment="").geturl(), parts.fragment

    def _is_new(self, address, route):
        """Whether it tells more than what was fetched: other parameters, other names."""
        wild = "wild%2F" in address
        kind = (route.path, wild, *sorted(name for name, _ in parse_qsl(urlsplit(address).query)))
        if kind in self._kinds or self._followed[route.path, wild] >= MOST[wild]:
            return False
        self._kinds.add(kind)
        self._followed[route.path, wild] += 1
        return True

    def _fetch(self, address, route, whence):
        """What the page at an address leads to."""
        answer = self._client.get(address)
        self._fetched[address] = None
        if answer.is_redirect:
            self._site.redirected.add(route.path)
            yield urljoin(address, answer.headers["location"]), whence
        elif answer.is_error:
            self._site.broken.append(f"{whence} leads to {address}, which answers {answer.status_code}")
        elif answer.headers["content-type"].startswith("text/html"):
            html = self._fetched[address] = Html(answer.text)
            if is_page(route):
                self._site.addresses[route.path][address] = len(answer.content)
                self._site.titles[address] = html.title
            yield from ((urljoin(address, link), address) for link in html.links)
            for form in html.forms:
                self._site.broken.extend(_unsendable(form, address))
                if form.method == "GET" and form.action:
                    yield f"{form.action}?{urlencode(form.fields)}", f"the form of {address}"

    def _places_that_are_not(self):
        for address, places in self._named.items():
            html = self._fetched.get(address)
            yield from (
                f"{whence} leads to #{place} of {address}, which has no such place"
                for place, whence in places
                if html is not None and place not in html.ids
            )


def _unsendable(form, address):
    """What keeps a form from being sent without a script."""
    if not form.submits:
        yield f"a form of {address} has no button that sends it"
    if form.action is None or route_of(urljoin(address, form.action), form.method) is None:
        yield f"a form of {address} is sent to {form.action}, which takes no {form.method}"
