import pytest
from starlette.requests import Request

from pullback_dashboards.errors import error_view, wants_page


def request(path, accept="text/html"):
    return Request({"type": "http", "path": path, "headers": [(b"accept", accept.encode())], "query_string": b""})


@pytest.mark.parametrize(
    ("path", "accept", "page"),
    [
        ("/", "text/html,*/*", True),
        ("/nothing", "*/*", True),
        ("/overview.json", "text/html", False),
        ("/jobs.csv", "text/html", False),
        ("/api/v1/jobs", "text/html", False),
        ("/metrics", "text/html", False),
        ("/nothing", "application/json", False),
    ],
)
def test_only_a_page_that_is_asked_for_fails_as_a_page(path, accept, page):
    assert wants_page(request(path, accept)) is page


def test_the_words_are_those_of_the_problem():
    problem = {
        "title": "No such thing",
        "detail": "There is no case.",
        "errors": [{"path": "query.y", "message": "no"}],
    }
    view = error_view(404, problem)
    assert (view.title, view.detail, view.remedy) == ("No such thing", "There is no case.", "query.y: no")


@pytest.mark.parametrize("broken", [None, [], "text", {"title": 3}, {"errors": "x"}])
def test_an_answer_that_is_no_problem_document_still_makes_a_page(broken):
    assert error_view(500, broken).title == "The page answered 500"
