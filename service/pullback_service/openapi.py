"""The OpenAPI description: FastAPI's own, with the parts that it cannot know.

Added are the schemas of bodies and events it does not parse, who may ask (`access/scopes.py`), which writes are safe to repeat, the
problems every operation may answer with, and examples: `examples.json`, recorded from a service by `make api`.
"""

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from importlib.resources import files
from typing import Any

import orjson
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from pullback_service.access.scopes import need_of
from pullback_service.errors import AuthenticationError, ForbiddenError, TooManyRequestsError
from pullback_service.field_descriptions import FIELD_WORDS, OTHERWISE
from pullback_service.fields import LARGEST_ID
from pullback_service.problems import CONTENT, Problem, documented
from pullback_service.reports.schemas import ReportDocument

SCHEMA_REFERENCE = "#/components/schemas/{model}"
EXAMPLES = "examples.json"

# Writes whose repetition changes nothing and gets the same answer, so that a client may repeat what got none. Others
# make something new each time (tokens, forced jobs) or refuse the second one (projects).
REPEATABLE = frozenset(
    {
        "append_log",
        "approve_job",
        "cancel_job",
        "change_chart",
        "change_job",
        "change_machine",
        "change_project",
        "claim_job",
        "create_backfill",
        "fail_attempt",
        "give_verdict",
        "heartbeat",
        "pin_chart",
        "rename_board",
        "report_result",
        "retry_job",
        "revoke_token",
        "revoke_verdict",
        "tell_log",
        "upload_report",
    }
)

# What of an answer leads on to which operations: parameters by their places in the body of the answer.
_JOB = {"job_id": "/id"}
_LEASE = {"path.job_id": "/job/id", "path.number": "/attempt"}
LINKS: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "create_project": {"read_project": {"name": "/name"}, "list_commits": {"project": "/name"}},
    "upload_report": {"read_report": {"report_id": "/id"}, "read_body_of_report": {"report_id": "/id"}},
    "list_reports": {"read_report": {"report_id": "/items/0/id"}, "read_body_of_report": {"report_id": "/items/0/id"}},
    "list_series": {"list_points": {"series_id": "/items/0/id"}},
    "list_incidents": {"read_incident": {"incident_id": "/items/0/id"}},
    "create_board": {"read_board": {"board_id": "/id"}, "pin_chart": {"board_id": "/id"}},
    "create_job": {"read_job": _JOB, "cancel_job": _JOB, "read_log": _JOB},
    "enroll_agent": {"claim_job": {"agent_id": "/agent_id"}},
    "claim_job": {
        "heartbeat": _LEASE,
        "append_log": {**_LEASE, "header.Pullback-Lease": "/lease_token"},
        "report_result": {**_LEASE, "header.Pullback-Lease": "/lease_token"},
        "fail_attempt": _LEASE,
    },
    "create_token": {"revoke_token": {"token_id": "/id"}},
    "create_channel": {
        "test_channel": {"channel_id": "/id"},
        "list_deliveries": {"channel_id": "/id"},
        "remove_channel": {"channel_id": "/id"},
    },
}

BEARER = {"type": "http", "scheme": "bearer", "description": "A token of `pullback token create`; see docs/access.md."}
COOKIE = {"type": "apiKey", "in": "cookie", "name": "pullback_session", "description": "A login of the pages."}
_UNAVAILABLE = {
    HTTPStatus.SERVICE_UNAVAILABLE.value: {
        "description": "The database does not answer; the same request again, in a moment",
        "content": CONTENT,
    }
}


def describe(app: FastAPI) -> dict[str, Any]:
    """The whole description; made once."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, summary=app.summary, version=app.version, routes=app.routes, description=app.description
        )
        schemas = document["components"]["schemas"]
        for model in (ReportDocument, Problem):
            schema = model.model_json_schema(ref_template=SCHEMA_REFERENCE)
            schemas.update(schema.pop("$defs", {}))
            schemas[model.__name__] = schema
        _describe_fields(schemas)
        document["components"]["securitySchemes"] = {"token": BEARER, "login": COOKIE}
        examples = orjson.loads(files("pullback_service").joinpath(EXAMPLES).read_bytes())
        for method, path, operation in operations_of(document):
            _say_who_may(method, path, operation)
            operation["x-repeatable"] = method == "GET" or operation["operationId"] in REPEATABLE
            _exemplify(operation, examples.get(operation["operationId"]))
            _lead_on(operation)
        app.openapi_schema = _with_whole_bounds(document)
    return app.openapi_schema


def _describe_fields(schemas: dict[str, Any]) -> None:
    for model, schema in schemas.items():
        for name, field in schema.get("properties", {}).items() if model not in OTHERWISE else ():
            if name in FIELD_WORDS and "$ref" not in field:
                field.setdefault("description", FIELD_WORDS[name])


def _with_whole_bounds(node: Any) -> Any:
    """Bounds of whole numbers as such: FastAPI makes them floats, and the largest of 64 bits one too large."""
    if isinstance(node, list):
        return [_with_whole_bounds(item) for item in node]
    if not isinstance(node, dict):
        return node
    results = {key: _with_whole_bounds(value) for key, value in node.items()}
    if results.get("type") == "integer":
        for bound in ("minimum", "maximum"):
            if isinstance(results.get(bound), float):
                results[bound] = min(int(results[bound]), LARGEST_ID)
    return results


def operations_of(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Method, path and operation, in the order of the description."""
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            yield method.upper(), path, operation


def _say_who_may(method: str, path: str, operation: dict[str, Any]) -> None:
    need = need_of(method, path.replace("/projects/{name}", "/projects/{name:path}"))
    operation["x-scope"] = need.scope
    tokens: list[dict[str, list[str]]] = [{"token": []}, {"login": []}]
    anybody: list[dict[str, list[str]]] = [{}]
    operation["security"] = anybody if need.scope is None else [*tokens, *(anybody if need.public else [])]
    problems = documented(AuthenticationError, ForbiddenError, TooManyRequestsError) | _UNAVAILABLE
    for status, described in problems.items():
        operation["responses"].setdefault(str(status), described)


def _exemplify(operation: dict[str, Any], example: dict[str, Any] | None) -> None:
    if example is None:
        return
    for parameter in operation.get("parameters", ()):
        value = example["parameters"].get(f"{parameter['in']}.{parameter['name']}")
        if value is not None:
            parameter["example"] = value
    if example["body"] is not None:
        content = operation["requestBody"]["content"]
        content.setdefault(example["body"]["media_type"], {})["example"] = example["body"]["content"]
    answer = operation["responses"][str(example["status"])]
    if example["answer"] is not None:
        answer.setdefault("content", {}).setdefault(example["answer"]["media_type"], {})["example"] = example["answer"][
            "content"
        ]


def _lead_on(operation: dict[str, Any]) -> None:
    for status, answer in operation["responses"].items():
        if status.startswith("2") and "application/json" in answer.get("content", {}):
            for following, parameters in LINKS.get(operation["operationId"], {}).items():
                answer.setdefault("links", {})[following] = {
                    "operationId": following,
                    "parameters": {name: f"$response.body#{place}" for name, place in parameters.items()},
                }
