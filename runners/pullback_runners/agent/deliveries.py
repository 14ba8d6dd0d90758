"""Deliveries: a report or a failure in the format that the service accepts."""

import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pullback_runners.agent.claims import Lease
from pullback_runners.agent.errors import FailureKind
from pullback_runners.agent.spool import Delivery
from pullback_runners.agent.storable_text import storable, storable_text


def report_delivery(lease: Lease, key: str, report: Mapping[str, Any]) -> Delivery:
    """Package a report for the attempt that produced it."""
    return Delivery(
        key=key,
        path=f"{lease.path}/report",
        body=storable(report),
        lease_token=lease.token,
        fallback_path="/api/v1/reports",
    )


def failure_delivery(
    lease: Lease, kind: FailureKind, message: str, *, retryable: bool, agent_ended: bool = False
) -> Delivery:
    """Package the news that an attempt ended without a report, with `agent_ended` because the agent did."""
    return Delivery(
        key=str(uuid.uuid4()),
        path=f"{lease.path}/fail",
        body=_failure(lease.token, kind, message, retryable=retryable, agent_ended=agent_ended),
        lease_token=lease.token,
    )


def refusal_delivery(report: Delivery, reason: str) -> Delivery:
    """Package the news that the service refused the report of an attempt, which otherwise ends with its lease."""
    message = f"The service refused the report of this job: {reason}"
    return replace(
        report,
        key=str(uuid.uuid4()),
        path=f"{report.path.removesuffix('/report')}/fail",
        body=_failure(report.lease_token, "workload", message, retryable=False),
        fallback_path=None,
    )


def _failure(
    token: str | None, kind: FailureKind, message: str, *, retryable: bool, agent_ended: bool = False
) -> dict[str, Any]:
    return {
        "lease_token": token,
        "kind": kind,
        "message": storable_text(message)[:2000],
        "retryable": retryable,
        "agent_ended": agent_ended,
    }
