"""Requests and answers about tokens and enrolment codes."""

from datetime import datetime
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field

from pullback_service.caller import Scope
from pullback_service.fields import Name
from pullback_service.name_characters import ChosenName
from pullback_service.rows_to_models import filled
from pullback_service.tokens.queries import StoredToken

Days = Annotated[float, Field(gt=0, le=3650)]


class TokenRequest(BaseModel):
    """A token to be made."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"name": "ci", "scopes": ["upload"]}]})

    name: ChosenName
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=4)]
    project: Name | None = Field(None, description="Left out, the token is for all projects.")
    expires_in_days: Days | None = Field(None, description="Left out, the token ends when it is revoked.")


class TokenSummary(BaseModel):
    """A token, without its secret. `last_used_at` is right to a minute."""

    id: int
    name: str
    prefix: str
    scopes: list[str]
    project: str | None
    agent_id: int | None
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None

    @classmethod
    def of(cls, stored: StoredToken) -> Self:
        """A stored token."""
        return filled(cls, stored, stored.token)


class NewToken(TokenSummary):
    """A token that was just made. `token` is the secret, shown this once."""

    token: str


class CodeRequest(BaseModel):
    """An enrolment code to be made."""

    model_config = ConfigDict(extra="forbid")

    project: Name | None = Field(None, description="Left out, the agent takes jobs of all projects.")
    expires_in_minutes: Annotated[float, Field(gt=0, le=7 * 24 * 60)] = 60


class NewCode(BaseModel):
    """An enrolment code, shown this once. It enrols one agent."""

    code: str
    expires_at: datetime


class Whoami(BaseModel):
    """The caller, by the credentials of the request."""

    name: str
    scopes: list[str]
    projects: list[str] | None = Field(description="Null is all of them.")
