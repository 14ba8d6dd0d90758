"""Deliveries: a report or a failure in the form the service takes it."""

import uuid
from collections.abc import Mapping
from typing import Any

from pullback_runners.agent.client import Lease
from pullback_runners.agent.errors import FailureKind
from pullback_runners.agent.spool import Delivery


def report_delivery(lease: Lease, key: str, report: Mapping[str, Any]) -> Delivery:
    """Package a report for the attempt that produced it."""
    return Delivery(
        key=key,
        path=f"{lease.path}/report",
        body=report,
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
        body={
            "lease_token": lease.token,
            "kind": kind,
            "message": message[:2000],
            "retryable": retryable,
            "agent_ended": agent_ended,
        },
        lease_token=lease.token,
    )
