"""Types of ids, so that a series is never asked for by the id of a case."""

from typing import NewType
from uuid import UUID

ProjectId = NewType("ProjectId", int)
CommitId = NewType("CommitId", int)
MachineId = NewType("MachineId", int)
AgentId = NewType("AgentId", int)
CaseId = NewType("CaseId", int)
SeriesId = NewType("SeriesId", int)
JobId = NewType("JobId", int)
LeaseToken = NewType("LeaseToken", UUID)
TokenId = NewType("TokenId", int)
