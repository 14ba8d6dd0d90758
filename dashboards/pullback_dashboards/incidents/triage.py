"""Triage of incidents by forms: the verdicts that people give, and who may give them."""

from collections.abc import Mapping
from dataclasses import dataclass

from pullback_dashboards.forms import Form, checked
from pullback_service.caller import Caller
from pullback_service.errors import FieldError, InvalidInputError, MissingObject, NotFoundError
from pullback_service.fields import LARGEST_ID
from pullback_service.incidents.schemas import VerdictRequest
from pullback_service.models import Project
from pullback_service.models.incidents import Incident

REVOKED = "none"
"""The answer that takes back what was said."""
_BOX = "incident-"


@dataclass(frozen=True)
class Answer:
    """A verdict as a button: the key that presses it, and the effect."""

    word: str
    key: str
    effect: str


ANSWERS = (
    Answer("real", "r", "it is remembered, and decides nothing"),
    Answer("noise", "n", "it is refuted, and these series are suspected again only of twice its size"),
    Answer("expected", "e", "the new level is accepted, and the incident resolved"),
    Answer("fixed", "f", "the code is fixed, and the incident resolved"),
)


@dataclass(frozen=True)
class Triage:
    """The decisions that are open to a reader, and a sentence for those that the reader's token does not allow."""

    may: bool
    me: str
    """The name of the reader, as incidents have it of whoever is in charge."""
    explained: str | None


def triage_for(caller: Caller) -> Triage:
    """The decisions open to a reader."""
    if caller.has("upload"):
        return Triage(may=True, me=caller.name, explained=None)
    who = "you are not signed in" if caller.anonymous else f"you are signed in as {caller.name}"
    return Triage(may=False, me=caller.name, explained=f"Triage needs a token with the scope upload; {who}.")


def verdict_of(form: Form) -> VerdictRequest | None:
    """The verdict in a form; None where it takes one back."""
    word = form.choice("verdict", *(answer.word for answer in ANSWERS), REVOKED)
    if word == REVOKED:
        return None
    given = {"verdict": word, "note": form.text("note") or None, "link": form.text("link") or None}
    return checked(VerdictRequest, given)


def box_of(incident_id: int) -> str:
    """The name of the box that chooses an incident of a list."""
    return f"{_BOX}{incident_id}"


def chosen_in(fields: Mapping[str, str]) -> tuple[int, ...]:
    """The incidents whose boxes are ticked; none is refused."""
    numbers = (name.removeprefix(_BOX) for name in fields if name.startswith(_BOX))
    chosen = tuple(
        sorted({int(number) for number in numbers if number.isascii() and number.isdecimal() and len(number) < 20})
    )
    if not chosen or chosen[-1] > LARGEST_ID:
        message = "No incident is chosen: tick the boxes of those that the verdict is about."
        raise InvalidInputError(message, errors=[FieldError(path="incident", message=message)])
    return chosen


def incident_of(project: Project, incident: Incident) -> Incident:
    """An incident that belongs to a project; another project has none of that number."""
    if incident.project_id != project.id:
        raise NotFoundError(
            f"Project {project.name!r} has no incident {incident.id}.",
            missing=MissingObject("incident", str(incident.id)),
        )
    return incident
