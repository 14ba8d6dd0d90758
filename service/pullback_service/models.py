"""Every table in one place, so that `Base.metadata` is whole for whoever imports this."""

from pullback_service.agents.models import Agent
from pullback_service.audit.models import Audit
from pullback_service.base import Base
from pullback_service.boards.models import Board, BoardChart
from pullback_service.commits.models import Branch, BranchCommit, Commit, CommitParent
from pullback_service.jobs.models import Attempt, Job, JobLog
from pullback_service.logins.models import Login
from pullback_service.machines.models import FactsChange, Machine
from pullback_service.measured.models import StoredMeasured
from pullback_service.projects.models import Project
from pullback_service.readings.models import StoredReading
from pullback_service.reports.models import Comparison, Failure, Report
from pullback_service.series.models import Case, Point, Series
from pullback_service.steps.models import StoredStep
from pullback_service.tokens.models import EnrolmentCode, Token

__all__ = [
    "Agent",
    "Attempt",
    "Audit",
    "Base",
    "Board",
    "BoardChart",
    "Branch",
    "BranchCommit",
    "Case",
    "Commit",
    "CommitParent",
    "Comparison",
    "EnrolmentCode",
    "FactsChange",
    "Failure",
    "Job",
    "JobLog",
    "Login",
    "Machine",
    "Point",
    "Project",
    "Report",
    "Series",
    "StoredMeasured",
    "StoredReading",
    "StoredStep",
    "Token",
]
