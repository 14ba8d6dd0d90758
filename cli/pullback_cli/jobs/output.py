"""Output of jobs: a line or some lines of text each, or JSON for programs."""

import json
from typing import TYPE_CHECKING, Any, TypeAlias

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pullback_service.client import models

    Job: TypeAlias = models.JobSummary | models.JobDetail


def show_json(answer: Any) -> None:
    """Print an answer of the service, or a list of them, unchanged."""
    shown = (
        [each.model_dump(mode="json") for each in answer]
        if isinstance(answer, list)
        else answer.model_dump(mode="json")
    )
    typer.echo(json.dumps(shown, indent=2))


def show_job(job: "Job") -> None:
    """Print one job in a line."""
    typer.echo(_line(job))


def show_jobs(jobs: "Sequence[Job]") -> None:
    """Print jobs, a line each."""
    for each in jobs:
        show_job(each)


def show_whole(job: "models.JobDetail") -> None:
    """Print a job with its attempts and its result."""
    typer.echo("\n".join(_described(job)))


def _line(job: "Job") -> str:
    state = "awaits approval" if job.awaits_approval else job.state
    against = f" against {job.reference[:10]}" if job.reference else ""
    origin = "" if job.origin == "asked" else f"  {job.origin}"
    why = f"  {job.failure_kind}: {_first_line(job.failure_message)}" if job.failure_message else ""
    return (
        f"{job.id}  {state}  {job.project}  {job.commit.sha[:10]}{against}  {job.suite}  "
        f"priority {job.priority}{origin}  {job.attempts} of {job.max_attempts} attempts{why}"
    )


def _described(job: "models.JobDetail") -> list[str]:
    lines = [_line(job), f"  commit     {job.commit.sha}  {job.commit.title or ''}".rstrip()]
    if job.requires:
        lines.append("  requires   " + ", ".join(f"{name}={value}" for name, value in job.requires.items()))
    if job.trust == "untrusted":
        lines.append(f"  trust      untrusted, approved by {job.approved_by or 'no one yet'}")
    ended = f", ended {job.finished_at.isoformat()}" if job.finished_at else ""
    lines.append(f"  asked for  {job.created_at.isoformat()}{ended}")
    for each in job.history:
        why = f"  {each.failure_kind}: {_first_line(each.failure_message)}" if each.failure_message else ""
        phase = f" ({each.phase})" if each.phase and each.ended_at is None else ""
        lines.append(
            f"  attempt {each.number}  {each.state}{phase}  machine {each.machine_id}  {each.leased_at.isoformat()}{why}"
        )
    if job.report_id:
        lines.append(f"  result     /reports/{job.report_id}")
    return lines


def _first_line(text: str) -> str:
    return text.splitlines()[0] if text else ""
