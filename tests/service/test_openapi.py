"""The API keeps what its own description promises, whatever it is sent."""

import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from pullback_service.application import create_service
from pullback_service.settings import Settings

# What only a worker or a waiting agent would see is not waited for.
NOTHING_QUEUED = "/api/v1/agents/{agent_id}/claim"
NOTHING_HAPPENS = "/api/v1/jobs/{job_id}/log/stream"


def _description():
    app = create_service(Settings(database_url="postgresql://nowhere/nothing"))
    return app.openapi()


DESCRIPTION = _description()
# Reports made of their schema alone take seconds each and never hold together; tests/service/reports changes real ones.
schema = schemathesis.openapi.from_dict(DESCRIPTION).exclude(path_regex="/reports?$", method="POST")


@schema.parametrize()
@settings(
    max_examples=6,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
    derandomize=True,  # a small run in every build; the long one is for the night
)
def test_no_request_meets_a_server_error_or_an_undescribed_answer(case, send):
    if case.operation.path == NOTHING_QUEUED and isinstance(case.body, dict):
        case.body["wait_s"] = 0
    if case.operation.path == NOTHING_HAPPENS and case.query.get("wait_s", 600) == 600:
        case.query["wait_s"] = 0
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


def test_every_operation_is_described_with_its_problems():
    for path, operations in DESCRIPTION["paths"].items():
        for method, operation in operations.items():
            assert operation.get("description"), f"{method} {path}"
            problem = operation["responses"]["default"]["content"]["application/problem+json"]["schema"]
            assert problem == {"$ref": "#/components/schemas/Problem"}, f"{method} {path}"


def test_every_reference_of_the_description_leads_somewhere():
    def references(value):
        if isinstance(value, dict):
            if "$ref" in value:
                yield value["$ref"]
            for item in value.values():
                yield from references(item)
        elif isinstance(value, list):
            for item in value:
                yield from references(item)

    for reference in set(references(DESCRIPTION)):
        name = reference.removeprefix("#/components/schemas/")
        assert name in DESCRIPTION["components"]["schemas"], reference
