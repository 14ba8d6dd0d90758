"""Machines, and how their facts changed, as tables to export."""

from pullback_service.exports.tables import Column, Table, written
from pullback_service.machines.schemas import FactsChange, MachineSummary
from pullback_service.models.machines import Machine

MACHINES: Table[MachineSummary] = Table(
    "machines",
    [
        Column("machine_id", "integer", lambda row: row.id),
        Column("machine", "text", lambda row: row.name),
        Column("machine_fingerprint", "text", lambda row: row.fingerprint),
        Column("accepts", "text", lambda row: row.accepts),
        Column("first_seen_at", "time", lambda row: row.first_seen_at),
        Column("last_seen_at", "time", lambda row: row.last_seen_at),
        Column("facts", "text", lambda row: written(row.facts)),
        Column("machine_host", "text", lambda row: row.host),
    ],
)


def facts_of(machine: Machine) -> Table[FactsChange]:
    """The changes of one machine's facts, a row a change."""
    return Table(
        "facts",
        [
            Column("machine_id", "integer", lambda _: machine.id),
            Column("machine", "text", lambda _: machine.name),
            Column("machine_fingerprint", "text", lambda _: machine.fingerprint),
            Column("change_id", "integer", lambda row: row.id),
            Column("at", "time", lambda row: row.at),
            Column("before", "text", lambda row: written(row.before)),
            Column("after", "text", lambda row: written(row.after)),
        ],
    )
