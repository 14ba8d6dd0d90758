"""The steps of CONTRIBUTING, "Add a page": each that is forgotten is named here, or where CONTRIBUTING says."""

import pkgutil
import re
from importlib import import_module

import pytest
from fastapi import APIRouter
from tests.service import test_pages
from tests.service.access.test_scopes import APP, walk

import pullback_dashboards
from pullback_dashboards import pages
from pullback_dashboards.projection_notice import note_unprojected
from pullback_dashboards.routing import RawNamesRoute

ROUTES = [
    route
    for route in walk(APP.routes)
    if route.endpoint.__module__.startswith("pullback_dashboards.") and "GET" in route.methods
]
PATHS = {route.path for route in ROUTES}
PAGES = sorted(path for path in PATHS if not re.search(r"\.[a-z]+$", path) and not path.startswith("/static/"))
CALLED = {"/": "/overview"}
"""Pages whose other forms have a name of their own."""
LEADING = {"/overview", "/compare", "/explore", "/incidents", "/projects/{project:path}"}
"""Addresses that lead to a page elsewhere, and those of a page without its project."""
FORMS_ALONE = {"/boards/pin", "/login"}
"""Pages that are a form and show nothing that was measured."""
OF_PROJECTS = sorted(path for path in PAGES if path.startswith("/projects/{project:path}/"))


def routers():
    """The routers of all files of pages."""
    for file in pkgutil.walk_packages(pullback_dashboards.__path__, "pullback_dashboards."):
        if file.name.endswith(".page"):
            for name, value in vars(import_module(file.name)).items():
                if isinstance(value, APIRouter):
                    yield f"{file.name}.{name}", value


def test_every_router_is_mounted():
    for name, router in routers():
        assert router in pages._ROUTERS, (
            f"{name} is missing in _ROUTERS of pullback_dashboards/pages.py: its pages are not served"
        )


@pytest.mark.parametrize("path", sorted(set(PAGES) - LEADING - FORMS_ALONE))
def test_every_page_is_there_as_json_and_as_markdown(path):
    for form in ("json", "md"):
        assert f"{CALLED.get(path, path)}.{form}" in PATHS, f"{path} has no .{form}: add a route to its page.py"


@pytest.mark.parametrize("path", sorted(set(PAGES) - LEADING))
def test_every_page_is_in_the_list_of_addresses(path):
    listed = pages.__doc__
    spoken = re.sub(r"{(\w+)_id}", "{id}", path.replace(":path}", "}"))
    assert re.search(rf"(?<![\w/}}]){re.escape(spoken)}(?![\w/])", listed), (
        f"{path} is missing in the docstring of pages.py"
    )


@pytest.mark.parametrize("path", sorted(path for path in PATHS if ":path}" in path))
def test_names_in_an_address_may_hold_slashes(path):
    assert all(isinstance(route, RawNamesRoute) for route in ROUTES if route.path == path), (
        f"{path} has names that may hold slashes: make its router by page_router(…, route_class=RawNamesRoute)"
    )


@pytest.mark.parametrize("path", OF_PROJECTS)
def test_a_page_of_a_project_says_what_is_not_computed_yet(path):
    for route in ROUTES:
        if route.path == path:
            asked = [dependency.call for dependency in route.dependant.dependencies]
            assert note_unprojected in asked, (
                f"{path} does not say which commits are not computed yet: make its router by page_router(note_unprojected, …)"
            )


@pytest.mark.parametrize("path", OF_PROJECTS)
def test_the_statements_of_a_page_of_a_project_are_counted(path):
    form = re.compile(re.sub(r"{\w+(:path)?}", "[^/?]+", path) + r"(\?|$)")
    assert any(form.match(address) for address in test_pages.PAGES.values()), (
        f"{path} is missing in PAGES and MOST_STATEMENTS of tests/service/test_pages.py"
    )
