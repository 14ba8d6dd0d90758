"""Requests of which the description says that they may be sent, and what must hold of their answers.

A module of its own, for importing Schemathesis takes a second, in each process that collects tests.
"""

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

# What only a worker or a waiting agent would see is not waited for.
NOTHING_QUEUED = "/api/v1/agents/{agent_id}/claim"
NOTHING_HAPPENS = "/api/v1/jobs/{job_id}/log"


def try_endpoint(schema, endpoint, send, *, edges):
    """Send made-up requests to an endpoint of the description, with the edges of every parameter too, and check its answers against it."""
    # As schemathesis's own decorator does for every operation when tests are collected, which takes half a minute.
    method, path = endpoint.split(" ")
    (operation,) = (found.ok() for found in schema.include(method=method, path=path).get_all_operations())
    feedback = FeedbackSources(constants_value_source=make_constants_value_source(schema))
    schema.config.phases.coverage.enabled = edges
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
