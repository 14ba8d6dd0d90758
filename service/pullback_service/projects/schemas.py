"""What the API says about projects."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict


class ProjectSummary(BaseModel):
    """A project. The counts follow an upload within moments, when a worker runs."""

    model_config = ConfigDict(from_attributes=True)

    name: str
    reports: int
    commits: int
    points: int
    last_report_at: datetime | None
    created_at: datetime
