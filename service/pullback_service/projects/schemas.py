"""What the API says about projects."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict

from pullback_service.fields import Flag, PlaceName


class ProjectSummary(BaseModel):
    """A project. The counts follow an upload within moments, when a worker runs."""

    model_config = ConfigDict(from_attributes=True)

    name: str
    reports: int
    commits: int
    points: int
    last_report_at: datetime | None
    created_at: datetime
    public_read: bool


class ProjectRequest(BaseModel):
    """A project to be made."""

    model_config = ConfigDict(extra="forbid")

    name: PlaceName
    public_read: Flag = False


class ProjectChange(BaseModel):
    """What is to be different about a project; what is left out stays."""

    model_config = ConfigDict(extra="forbid")

    public_read: Flag | None = None
