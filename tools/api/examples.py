"""Recording one request and one answer of every operation from a service on an empty database.

The steps below are a story that can be read: a project, a history, reports, a job and its agent. What differs from one
recording to the next (times, ids, secrets) is replaced, so that a recording differs only where the API does.
"""

import asyncio
import json
import logging
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import structlog

from pullback_service import migrations
from pullback_service.application import create_service
from pullback_service.database import Database
from pullback_service.ids import ProjectId
from pullback_service.incidents.detection import detect
from pullback_service.postgres import EmbeddedPostgres
from pullback_service.roles import ALL_PROJECTS
from pullback_service.runtime import runtime_of
from pullback_service.settings import Settings

BOOTSTRAP = "the-bootstrap-token"
SHA, PARENT, ROOT = "9a1f" + "3c7e" * 9, "5d02" + "b86a" * 9, "1e44" + "07f9" * 9
MOST_CHARACTERS = 4_000
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(Z|\+00:00)")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_SECRET = re.compile(r"plb_(enroll_|hook_)?[\w-]{32}")
_PREFIX = re.compile(r'"prefix": "plb_[\w-]{6}"')
_REQUEST = re.compile(r'"request_id": "[0-9a-f]{32}"')
_WAITING = re.compile(r'"waiting_s": [\d.]+')

HYPERFINE = {
    "results": [
        {
            "command": "parse big.json",
            "mean": 0.1012,
            "stddev": 0.0004,
            "median": 0.1011,
            "user": 0.09,
            "system": 0.01,
            "min": 0.1008,
            "max": 0.1017,
            "times": [0.1008, 0.1011, 0.1017],
            "exit_codes": [0, 0, 0],
        }
    ]
}
REPORT = {
    "format": "pullback-report",
    "version": 1,
    "id": "6f1c7c1e-93cf-4f0e-9a6a-2d1f0f6f2b11",
    "started_at": "2026-02-01T12:00:00Z",
    "duration_s": 41.5,
    "project": "demo",
    "commit": {"sha": SHA, "parents": [PARENT], "branch": "main", "authored_at": "2026-01-31T18:20:00Z"},
    "machine": {"fingerprint": "b0c4…", "name": "box", "facts": {"cpu": "EPYC 9655", "cores": 2}},
    "harness": {"version": "0.1", "suite": "quick", "quality": "clean"},
    "cases": [
        {
            "case": {"workload": "dense_bias_act", "params": {"n": 100}, "dtype": "f4", "device": "cpu"},
            "gradient": {"ok": True, "max_rel_error": 1e-7, "oracle": "closed form"},
            "variants": [
                {
                    "variant": "unfused",
                    "kind": "tier",
                    "metrics": {"time": {"unit": "s", "clock": "cpu", "processes": [2.1e-5, 2.2e-5, 2.1e-5]}},
                },
                {
                    "variant": "native",
                    "kind": "tier",
                    "metrics": {"time": {"unit": "s", "clock": "cpu", "processes": [0.9e-5, 0.9e-5, 1.0e-5]}},
                },
            ],
            "paired": [
                {
                    "variant": "native",
                    "baseline": "unfused",
                    "metric": "time",
                    "log_ratio": -0.83,
                    "low": -0.85,
                    "high": -0.81,
                    "n": 20,
                    "outcome": "faster",
                }
            ],
        }
    ],
    "comparisons": [
        {
            "case": {"workload": "dense_bias_act", "params": {"n": 100}, "dtype": "f4", "device": "cpu"},
            "variant": "native",
            "metric": "time",
            "reference": ROOT,
            "candidate": SHA,
            "log_ratio": 0.26,
            "low": 0.25,
            "high": 0.27,
            "n": 20,
            "outcome": "slower",
        }
    ],
}
COMMITS = [
    {"sha": SHA, "parents": [PARENT], "author": "A. Author", "authored_at": "2026-01-31T18:20:00Z", "title": "Fuse"},
    {"sha": PARENT, "parents": [ROOT], "author": "A. Author", "authored_at": "2026-01-30T09:00:00Z", "title": "Tidy"},
    {"sha": ROOT, "parents": [], "author": "A. Author", "authored_at": "2026-01-29T09:00:00Z", "title": "Begin"},
]


@dataclass(frozen=True)
class Step:
    """One call: `{name}` in the path and in parameters is filled from earlier answers."""

    operation: str
    query: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    path: Mapping[str, Any] = field(default_factory=dict)
    learn: Mapping[str, str] = field(default_factory=dict)
    """Members of the answer to remember, by the name they get."""
    media_type: str = "application/json"
    token: str | None = None
    """Another secret than the bootstrap token, remembered before."""


STORY = (
    Step("create_project", body={"name": "demo"}),
    Step("change_project", path={"name": "demo"}, body={"public_read": True}),
    Step("list_projects"),
    Step("read_project", path={"name": "demo"}),
    Step("tell_log", body={"project": "demo", "branch": "main", "commits": COMMITS}),
    Step(
        "upload_report",
        query={"project": "demo", "commit": SHA, "branch": "main", "machine": "ci"},
        headers={"Idempotency-Key": "run-1742"},
        body=HYPERFINE,
        media_type="application/octet-stream",
        learn={"report": "id"},
    ),
    Step("list_reports", query={"project": "demo", "limit": 10}),
    Step("read_report", path={"report_id": "{report}"}),
    Step("read_body_of_report", path={"report_id": "{report}"}),
    Step("list_commits", query={"project": "demo", "branch": "main"}),
    Step("list_branches", query={"project": "demo"}),
    Step("find_merge_base", query={"project": "demo", "one": SHA, "other": PARENT}),
    Step("list_machines", learn={"machine": "items.0.id"}),
    Step("change_machine", path={"machine_id": "{machine}"}, body={"accepts": "untrusted"}),
    Step("read_noise", path={"machine_id": "{machine}"}, query={"days": 30}),
    Step("list_series", query={"project": "demo", "metric": ["time"]}, learn={"series": "items.0.id"}),
    Step("count_series", query={"project": "demo", "metric": ["time"]}),
    Step("list_points", path={"series_id": "{series}"}),
    Step("list_points_of_series", query={"project": "demo", "metric": ["time"], "last": 20}),
    Step("compare_commits", query={"project": "demo", "head": SHA, "base": ROOT}),
    Step("check_commit", query={"project": "demo", "head": SHA, "base": "main"}),
    Step("read_matrix", query={"project": "demo"}),
    Step("create_board", body={"name": "Dense layers"}, learn={"board": "id"}),
    Step(
        "pin_chart",
        path={"board_id": "{board}"},
        body={"kind": "explore", "project": "demo", "query": {"workload": ["dense_bias_act"], "metric": ["time"]}},
        learn={"chart": "chart.id"},
    ),
    Step("change_chart", path={"board_id": "{board}", "chart_id": "{chart}"}, body={"title": "Time of dense layers"}),
    Step("rename_board", path={"board_id": "{board}"}, body={"name": "Layers"}),
    Step("list_boards"),
    Step("read_board", path={"board_id": "{board}"}),
    Step("remove_chart", path={"board_id": "{board}", "chart_id": "{chart}"}),
    Step("remove_board", path={"board_id": "{board}"}),
    Step(
        "create_job",
        body={"project": "demo", "commit": COMMITS[0], "suite": "quick", "requires": {"gpu": False}, "timeout_s": 900},
        learn={"job": "id"},
    ),
    Step("change_job", path={"job_id": "{job}"}, body={"priority": 50}),
    Step("approve_job", path={"job_id": "{job}"}),
    Step("cancel_job", path={"job_id": "{job}"}),
    Step("retry_job", path={"job_id": "{job}"}),
    Step("list_jobs", query={"project": "demo", "state": "queued"}),
    Step("create_enrolment_code", body={"expires_in_minutes": 30}, learn={"code": "code"}),
    Step(
        "enroll_agent",
        body={
            "name": "box-1",
            "labels": {"gpu": False},
            "machine": {"fingerprint": "b0c4…", "name": "box", "facts": {"cpu": "EPYC 9655", "cores": 4}},
        },
        token="code",  # noqa: S106 - the name of what was remembered
        learn={"agent": "agent_id", "secret": "secret"},
    ),
    Step("list_machine_changes", path={"machine_id": "{machine}"}),
    Step("list_agents"),
    Step(
        "claim_job",
        path={"agent_id": "{agent}"},
        body={"wait_s": 30, "labels": {"gpu": False}},
        token="secret",  # noqa: S106 - as above
        learn={"lease": "lease_token"},
    ),
    Step(
        "heartbeat",
        path={"job_id": "{job}", "number": 1},
        body={"lease_token": "{lease}", "phase": "measure", "progress": {"done": 3, "total": 20, "message": "poly9"}},
    ),
    Step(
        "append_log",
        path={"job_id": "{job}", "number": 1},
        query={"offset": 0},
        headers={"Pullback-Lease": "{lease}"},
        body="measuring poly9\n",
        media_type="application/octet-stream",
    ),
    Step("read_log", path={"job_id": "{job}"}, query={"offset": 0, "wait_s": 30}),
    Step(
        "report_result",
        path={"job_id": "{job}", "number": 1},
        headers={"Pullback-Lease": "{lease}", "Idempotency-Key": str(REPORT["id"])},
        body=REPORT,
    ),
    Step("read_job", path={"job_id": "{job}"}),
    Step("list_incidents", query={"project": "demo", "limit": 10}, learn={"incident": "items.0.id"}),
    Step("read_incident", path={"incident_id": "{incident}"}),
    Step(
        "give_verdict",
        path={"incident_id": "{incident}"},
        body={"verdict": "expected", "note": "Exact sums take longer."},
    ),
    Step("revoke_verdict", path={"incident_id": "{incident}"}),
    Step("assign_incident", path={"incident_id": "{incident}"}, body={"assignee": "ada"}),
    Step("confirm_incident", path={"incident_id": "{incident}"}),
    Step("bisect_incident", path={"incident_id": "{incident}"}),
    Step(
        "replace_rules",
        query={"project": "demo", "dry_run": True},
        body={"rules": [{"at_least": 0.02}, {"metric": "time", "variant": "native", "budget": 0.5}], "commit": SHA},
    ),
    Step("read_accuracy", query={"project": "demo"}),
    Step("read_rules", query={"project": "demo"}),
    Step("withdraw_report", path={"report_id": "{report}"}),
    Step(
        "fail_attempt",
        path={"job_id": "{job}", "number": 1},
        body={"lease_token": "{lease}", "kind": "infra", "message": "The disk is full.", "retryable": True},
    ),
    Step(
        "create_token",
        body={"name": "ci", "scopes": ["upload"], "project": "demo", "expires_in_days": 90},
        learn={"token": "id"},
    ),
    Step("create_backfill", body={"project": "demo", "branch": "main", "suite": "standard", "dry_run": True}),
    Step("list_tokens", query={"limit": 1}),
    Step("revoke_token", path={"token_id": "{token}"}),
    Step("tell_who_asks"),
    Step(
        "create_channel",
        body={"project": "demo", "name": "team", "kind": "webhook", "url": "https://hooks.example/pullback"},
        learn={"channel": "id"},
    ),
    Step("test_channel", path={"channel_id": "{channel}"}),
    Step("list_channels", query={"project": "demo"}),
    Step("list_deliveries", path={"channel_id": "{channel}"}),
    Step("remove_channel", path={"channel_id": "{channel}"}),
    Step("list_audit_lines", query={"project": "demo", "limit": 3}),
    Step("report_liveness"),
    Step("report_readiness"),
    Step("report_metrics"),
    Step("report_status"),
)


def record(file: Path) -> None:
    """Play the story and write its requests and responses."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    with tempfile.TemporaryDirectory(prefix="pullback-examples-") as folder:
        Path(folder).chmod(0o755)  # where root records, the server's own account must reach its data
        server = EmbeddedPostgres(Path(folder) / "postgres", settings={"fsync": "off"})
        url = server.start()
        try:
            migrations.upgrade(url)
            secret = Path(folder) / "token"
            secret.write_text(BOOTSTRAP)
            settings = Settings(database_url=url, auth="token", token_file=secret)
            recorded = asyncio.run(_play(settings))
        finally:
            server.destroy()
    file.write_text(_steady(json.dumps(recorded, indent=1, ensure_ascii=False)) + "\n")


async def _play(settings: Settings) -> dict[str, Any]:
    app = create_service(settings)
    places = {
        operation["operationId"]: (method, path)
        for path, operations in app.openapi()["paths"].items()
        for method, operation in operations.items()
    }
    known: dict[str, Any] = {}
    recorded = {}
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as http,
    ):
        for step in STORY:
            method, path = places[step.operation]
            query, headers, body, of_path = (
                _filled(part, known) for part in (step.query, step.headers, step.body, step.path)
            )
            sent = None if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
            secret = known[step.token] if step.token else BOOTSTRAP
            if step.operation == "list_incidents":  # as a worker does
                async with runtime_of(app).get(Database).seeing(ALL_PROJECTS).writing.begin() as session:
                    await detect(session, ProjectId(1))
            content = {"Content-Type": step.media_type} if sent is not None else {}
            answer = await http.request(
                method,
                path.format(**of_path),
                params=query,
                content=sent,
                headers={"Authorization": f"Bearer {secret}", **content, **headers},
            )
            if not answer.is_success:
                raise SystemExit(f"{step.operation} was refused: {answer.text}")
            recorded[step.operation] = {
                "parameters": {
                    f"{place}.{name}": value
                    for place, values in (("path", of_path), ("query", query), ("header", headers))
                    for name, value in values.items()
                },
                "body": None if body is None else {"media_type": step.media_type, "content": body},
                "status": answer.status_code,
                "answer": _content(answer),
            }
            for name, member in step.learn.items():
                found = answer.json()
                for part in member.split("."):
                    found = found[int(part) if part.isdigit() else part]
                known[name] = found
    return recorded


def _content(answer: httpx.Response) -> dict[str, Any] | None:
    media_type = answer.headers.get("content-type", "").partition(";")[0]
    if not answer.content:
        return None
    if media_type == "application/json":
        return {"media_type": media_type, "content": answer.json()}
    text = answer.text
    if len(text) > MOST_CHARACTERS:  # the figures, of which those with a meaning here and no time in them are shown
        text = "".join(line for line in text.splitlines(keepends=True) if "pullback_jobs" in line)
    return {"media_type": media_type, "content": text}


def _filled(value: Any, known: Mapping[str, Any]) -> Any:
    """A value with names replaced from earlier answers; a whole `{name}` keeps its type."""
    if isinstance(value, Mapping):
        return {name: _filled(item, known) for name, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, known) for item in value]
    if isinstance(value, str) and value.startswith("{") and value.endswith("}"):
        return known[value[1:-1]]
    return value


def _steady(text: str) -> str:
    """The same text at every recording."""
    ids: dict[str, str] = {}

    def numbered(match: re.Match[str]) -> str:
        return ids.setdefault(match[0], f"{len(ids) + 1:08x}-0000-4000-8000-{len(ids) + 1:012x}")

    text = _TIME.sub("2026-02-01T12:00:00Z", text)
    text = _UUID.sub(numbered, text)
    text = _SECRET.sub(lambda match: f"plb_{match[1] or ''}{'x' * 32}", text)
    text = _REQUEST.sub('"request_id": "4c1f13f0095848e3ae08dc1e825e9a64"', text)
    text = _WAITING.sub('"waiting_s": 0.25', text)
    return _PREFIX.sub('"prefix": "plb_xxxxxx"', text)
