"""Answers of the audit log."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict


class AuditLine(BaseModel):
    """A write: who, when, from where, what about. `action` is the operation's name in the API's description."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    at: datetime
    actor: str
    token_id: int | None
    action: str
    subject: str
    project: str | None
    address: str | None
    request_id: str | None
    details: dict[str, Any]
