"""Commits and branches of a project as tables to export."""

from pullback_service.commits.schemas import BranchSummary, CommitSummary
from pullback_service.exports.tables import Column, Table


def commits_of(project: str) -> Table[CommitSummary]:
    """Commits, a row each; hashes of several parents with a space between them."""
    return Table(
        "commits",
        [
            Column("project", "text", lambda _: project),
            Column("commit", "text", lambda row: row.sha),
            Column("parents", "text", lambda row: " ".join(row.parents)),
            Column("branch", "text", lambda row: row.branch),
            Column("author", "text", lambda row: row.author),
            Column("title", "text", lambda row: row.title),
            Column("authored_at", "time", lambda row: row.authored_at),
            Column("ordered_at", "time", lambda row: row.ordered_at),
            Column("position", "integer", lambda row: row.position),
            Column("after_gap", "flag", lambda row: row.after_gap),
            Column("unknown_parents", "text", lambda row: " ".join(row.unknown_parents)),
        ],
    )


def branches_of(project: str) -> Table[BranchSummary]:
    """Branches, a row each."""
    return Table(
        "branches",
        [
            Column("project", "text", lambda _: project),
            Column("branch", "text", lambda row: row.name),
            Column("head", "text", lambda row: row.head),
            Column("commits", "integer", lambda row: row.commits),
            Column("gaps", "integer", lambda row: row.gaps),
            Column("updated_at", "time", lambda row: row.updated_at),
            Column("forced_at", "time", lambda row: row.forced_at),
            Column("forced_from", "text", lambda row: row.forced_from),
        ],
    )
