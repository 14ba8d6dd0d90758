"""The API keeps what its own description promises, whatever it is sent."""

import re

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.generation.feedback import FeedbackSources
from schemathesis.pytest._test_builder import build_operation_test
from schemathesis.python._constants.orchestrator import make_constants_value_source
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from pullback_service.access.table import ENDPOINTS
from pullback_service.addresses import OPENAPI
from pullback_service.application import create_service
from pullback_service.settings import Settings

# What only a worker or a waiting agent would see is not waited for.
NOTHING_QUEUED = "/api/v1/agents/{agent_id}/claim"
NOTHING_HAPPENS = "/api/v1/jobs/{job_id}/log"


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
    return schemathesis.openapi.from_dict(description)


@pytest.mark.parametrize("endpoint", [endpoint for endpoint in DESCRIBED if not NOT_MADE_UP.match(endpoint)])
def test_no_request_meets_a_server_error_or_an_undescribed_answer(endpoint, schema, send):
    # As schemathesis's own decorator does for every operation when tests are collected, which takes half a minute.
    method, path = endpoint.split(" ")
    (operation,) = (found.ok() for found in schema.include(method=method, path=path).get_all_operations())
    feedback = FeedbackSources(constants_value_source=make_constants_value_source(schema))
    build_operation_test(
        config=schema.config, operation=operation, test_func=_holds, given_kwargs={}, feedback=feedback
    )(send=send)


@settings(
    max_examples=3,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
    derandomize=True,  # a small run in every build; the long one is for the night
)
def _holds(case, send):
    if case.operation.path == NOTHING_QUEUED and isinstance(case.body, dict):
        case.body["wait_s"] = 0
    if case.operation.path == NOTHING_HAPPENS:
        case.query.pop("wait_s", None)
    request = case.as_transport_kwargs(base_url="http://127.0.0.1")
    request.pop("cookies", None)
    if isinstance(request.get("data"), (bytes, str)):
        request["content"] = request.pop("data")  # the transport's words for raw bytes are those of another client
    response = send(request.pop("method"), request.pop("url"), **request)
    case.validate_response(
        schemathesis.Response.from_any(response),
        checks=(
            not_a_server_error,
            content_type_conformance,
            response_schema_conformance,
            status_code_conformance,
        ),
    )


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
