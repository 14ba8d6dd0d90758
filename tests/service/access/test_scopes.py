"""Every endpoint is in the table, and the table has no line without an endpoint."""

import inspect

import pytest
from fastapi.routing import APIRoute

from pullback_cli.app import create_app
from pullback_dashboards.address_limits import bounded
from pullback_service.access.scopes import ADMIN, ENDPOINTS, OPEN, READ, need_of, page_of
from pullback_service.addresses import API, OPENAPI
from pullback_service.routers import LazyRoute
from pullback_service.settings import Settings

APP = create_app(Settings(database_url="postgresql://nowhere/nothing"))


def walk(routes):
    """Every endpoint."""
    return [route for route in routes if isinstance(route, APIRoute)]


ROUTES = sorted((method, route.path) for route in walk(APP.routes) for method in route.methods - {"HEAD"})


def test_the_walk_finds_what_the_description_lists():
    described = {(method.upper(), path) for path, methods in APP.openapi()["paths"].items() for method in methods}
    assert {(method, path.replace(":path}", "}")) for method, path in ROUTES} > described


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_an_endpoint_says_what_it_needs(method, path):
    listed = f"{method} {path}" in ENDPOINTS or (method == "GET" and f"GET {page_of(path)}" in ENDPOINTS)
    assert listed, (
        f"{method} {path} is missing in access/scopes.py: until it has a line there, only administrators see it"
    )


def test_every_endpoint_asks_first_who_calls():
    assert [route.path for route in walk(APP.routes) if not isinstance(route, LazyRoute)] == []


def test_every_page_has_its_limits_asked_next():
    pages = [route for route in walk(APP.routes) if route.endpoint.__module__.startswith("pullback_dashboards.")]
    assert pages
    assert [route.path for route in pages if route.dependant.dependencies[0].call is not bounded] == []


def test_no_line_is_about_an_endpoint_that_is_gone():
    known = {f"{method} {form}" for method, path in ROUTES for form in (path, page_of(path))} | {f"GET {OPENAPI}"}
    assert set(ENDPOINTS) - known == set()


def test_whatever_is_not_listed_is_for_administrators():
    for method, path in (
        ("POST", "/api/v1/forgotten"),
        ("POST", "/forgotten"),
        ("GET", "/forgotten"),
        ("GET", "/new.json"),
    ):
        assert need_of(method, path) == ADMIN
    assert need_of("GET", "/projects/{project:path}/workloads/{workload:path}.figure.json") == READ
    assert need_of("HEAD", "/healthz") == OPEN


def test_writes_are_never_public():
    assert [line for line, need in ENDPOINTS.items() if need.public and not line.startswith("GET ")] == []


def calls_of(dependant):
    for dependency in dependant.dependencies:
        yield dependency.call
        yield from calls_of(dependency)


def test_no_endpoint_of_the_api_waits_for_a_thread():
    """FastAPI runs plain functions in threads, one after the other: 0.3 ms each of a small upload's few."""
    plain = {
        f"{call.__module__}.{call.__qualname__}"
        for route in walk(APP.routes)
        if route.path.startswith(API)
        for call in (route.endpoint, *calls_of(route.dependant))
        if not (inspect.iscoroutinefunction(call) or inspect.isasyncgenfunction(call))
    }
    assert plain == set()
