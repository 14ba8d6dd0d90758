"""The API keeps what its own description promises, whatever it is sent."""

import re

import pytest

from pullback_service.access.scopes import ENDPOINTS
from pullback_service.addresses import OPENAPI
from pullback_service.application import create_service
from pullback_service.settings import Settings

# Reports made of their schema alone take seconds each and never hold together; tests/service/reports changes real ones.
NOT_MADE_UP = re.compile(r"^POST .*/reports?$")

# From the table of access and not from the description, which takes a second to write: every worker collects every test.
DESCRIBED = sorted(
    re.sub(":path}", "}", endpoint)
    for endpoint in ENDPOINTS
    if (" /api/" in endpoint or endpoint.endswith(("/healthz", "/readyz", "/metrics", " /status")))
    and not endpoint.endswith(OPENAPI)
)


@pytest.fixture(scope="module")
def description():
    return create_service(Settings(database_url="postgresql://nowhere/nothing")).openapi()


@pytest.fixture(scope="module")
def schema(description):
    import schemathesis

    return schemathesis.openapi.from_dict(description)


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("edges", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize("endpoint", [endpoint for endpoint in DESCRIBED if not NOT_MADE_UP.match(endpoint)])
def test_no_request_meets_a_server_error_or_an_undescribed_answer(endpoint, schema, send, edges):
    from tests.service.requests_as_described import try_endpoint

    try_endpoint(schema, endpoint, send, edges=edges)


def test_every_described_operation_is_tried(description):
    described = [
        f"{method.upper()} {path}" for path, operations in description["paths"].items() for method in operations
    ]
    assert sorted(described) == DESCRIBED


def test_every_operation_is_described_with_its_problems(description):
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            assert operation.get("description"), f"{method} {path}"
            problem = operation["responses"]["default"]["content"]["application/problem+json"]["schema"]
            assert problem == {"$ref": "#/components/schemas/Problem"}, f"{method} {path}"


def test_every_reference_of_the_description_leads_somewhere(description):
    def references(value):
        if isinstance(value, dict):
            if "$ref" in value:
                yield value["$ref"]
            for item in value.values():
                yield from references(item)
        elif isinstance(value, list):
            for item in value:
                yield from references(item)

    for reference in set(references(description)):
        name = reference.removeprefix("#/components/schemas/")
        assert name in description["components"]["schemas"], reference
