"""What the API says about machines."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict

from pullback_service.fields import JsonObject, Name


class MachineStatement(BaseModel):
    """A machine as an agent describes it."""

    model_config = ConfigDict(extra="allow")

    fingerprint: Name
    name: Name
    facts: JsonObject = {}


class MachineSummary(BaseModel):
    """A machine."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    name: str
    fingerprint: str
    facts: dict[str, Any]
    first_seen_at: datetime
    last_seen_at: datetime
