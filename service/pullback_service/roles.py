"""The roles of Postgres as which the service works: see `row_security`."""

from typing import Final

SERVICE_ROLE: Final = "pullback_service"
"""Owns no table. A transaction of this role sees the projects that it names."""
ALL_PROJECTS: Final = "pullback_all"
"""Sees every project: for chores, for finding out who asks, and for callers whose rights are for all projects."""
