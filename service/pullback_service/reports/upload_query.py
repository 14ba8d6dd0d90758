"""The query of an upload, checked against the report."""

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from pullback_service.errors import FieldError, InvalidInputError
from pullback_service.fields import Name, Sha, Time
from pullback_service.name_characters import SentName
from pullback_service.projects.project_names import ProjectName
from pullback_service.reports.parsing import ParsedReport
from pullback_service.reports.schemas import ReportHead

LONGEST_MACHINE = 180  # its fingerprint is a little longer than its name


def _grammar(value: str) -> Callable[[dict[str, Any]], None]:
    """Describes one value, or one for each metric, to whoever reads the schema; errors have more to say than a pattern."""
    pattern = rf"^({value}|[^,:\s]+:{value})(,[^,:\s]+:{value})*$"

    def describe(schema: dict[str, Any]) -> None:
        for option in schema["anyOf"]:
            if option.get("type") == "string":
                option["pattern"] = pattern

    return describe


class UploadParameters(BaseModel):
    """The query's statements about the report. Our own reports it only confirms; of other tools' files it completes."""

    model_config = ConfigDict(extra="ignore")

    project: ProjectName | None = None
    commit: Sha | None = None
    branch: Name | None = None
    machine: SentName | None = Field(None, max_length=LONGEST_MACHINE)
    format: Name | None = Field(None, description="The format of the file, if it cannot be detected from the content.")
    variant: Name | None = Field(None, description="Name of the variant; `external` unless the file names it.")
    unit: Name | None = Field(
        None,
        json_schema_extra=_grammar(r"[^,:\s]{1,32}"),
        description="Unit of values whose file has none: `ns`, or `latency:ns,throughput:ops/s`.",
    )
    direction: Name | None = Field(
        None,
        json_schema_extra=_grammar(r"(smaller|bigger)"),
        description="The better direction, if the file does not contain it: `smaller`, `bigger`, or one per metric.",
    )
    authored_at: Time | None = Field(
        None,
        description="The time at which the commit was authored, if unknown otherwise: it determines the commit's place in history.",
    )
    dirty: bool = Field(default=False, description="It was measured with uncommitted changes; files may say so too.")
    allow_dirty: bool = Field(
        default=False, description="Accept results measured with uncommitted changes, and mark them."
    )
    dry_run: bool = Field(default=False, description="Store nothing; return what would have been stored.")


def refuse_contradictions(parameters: UploadParameters, head: ReportHead, *, of: str = "query") -> None:
    """Raise where the query, or whatever else states it, and the report disagree."""
    machine = {head.machine.name, head.machine.fingerprint} | ({head.machine.host} if head.machine.host else set())
    both: tuple[tuple[str, str | None, set[str]], ...] = (
        ("project", parameters.project, {head.project}),
        ("commit", parameters.commit, {head.commit.sha}),
        ("branch", parameters.branch, {head.commit.branch} if head.commit.branch else set()),
        ("machine", parameters.machine, machine),
    )
    remedy = ": leave it out, or send the report it is for" if of == "query" else ""
    errors = [
        FieldError(path=f"{of}.{name}", message=f"is {value}, but the report says {' or '.join(sorted(said))}{remedy}")
        for name, value, said in both
        if value is not None and said and value not in said
    ]
    if errors:
        raise InvalidInputError(f"{errors[0]['path']} {errors[0]['message']}.", errors=errors)


def refuse_dirty(read: ParsedReport) -> None:
    """Raise where the measured tree had changes that are in no commit: the numbers are not those of the commit."""
    if read.head.commit.dirty:
        path = f"{read.root}.commit.dirty"
        message = "the tree had uncommitted changes: commit them and measure again, or send it with allow_dirty=true"
        raise InvalidInputError(
            f"{path}: {message}, which keeps it out of the history.", errors=[FieldError(path=path, message=message)]
        )
