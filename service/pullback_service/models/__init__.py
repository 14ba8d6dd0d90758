"""All tables: importing this module makes `Base.metadata` complete."""

from pullback_service.base import Base
from pullback_service.models.agents import Agent
from pullback_service.models.audit import Audit
from pullback_service.models.boards import Board, BoardChart
from pullback_service.models.commits import Branch, BranchCommit, Commit, CommitParent
from pullback_service.models.incidents import (
    Bisection,
    Incident,
    IncidentEvent,
    IncidentJob,
    SeriesSetAside,
    StoredChange,
    StoredSeriesState,
    Verdict,
)
from pullback_service.models.jobs import Attempt, Job, JobLog
from pullback_service.models.logins import Login
from pullback_service.models.machines import FactsChange, Machine
from pullback_service.models.measured_code import StoredCodeIdentity
from pullback_service.models.notifications import Channel, Delivery, Notification
from pullback_service.models.projects import Project
from pullback_service.models.readings import StoredReading
from pullback_service.models.reports import Comparison, Failure, Report
from pullback_service.models.rules import StoredRule
from pullback_service.models.series import Case, Point, Series
from pullback_service.models.steps import StoredStep
from pullback_service.models.tokens import EnrolmentCode, Token

__all__ = [
    "Agent",
    "Attempt",
    "Audit",
    "Base",
    "Bisection",
    "Board",
    "BoardChart",
    "Branch",
    "BranchCommit",
    "Case",
    "Channel",
    "Commit",
    "CommitParent",
    "Comparison",
    "Delivery",
    "EnrolmentCode",
    "FactsChange",
    "Failure",
    "Incident",
    "IncidentEvent",
    "IncidentJob",
    "Job",
    "JobLog",
    "Login",
    "Machine",
    "Notification",
    "Point",
    "Project",
    "Report",
    "Series",
    "SeriesSetAside",
    "StoredChange",
    "StoredCodeIdentity",
    "StoredReading",
    "StoredRule",
    "StoredSeriesState",
    "StoredStep",
    "Token",
    "Verdict",
]
