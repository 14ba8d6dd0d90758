"""One upload: body, parameters and answer."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from pullback_cli.services import client_of, refusal_of
from pullback_cli.usage_errors import RefusalError
from pullback_cli.wording import in_options
from pullback_service.client import ClientError, ProblemError, models

_INCOMPLETE = "incomplete-request"
_AGAIN = "check --server, or run the same command again: nothing is stored twice"


class MissingParameterError(RefusalError):
    """The service needs something said that the file leaves unsaid; `reasons` are by parameter."""

    def __init__(self, name: str, detail: str, reasons: Mapping[str, str]) -> None:
        super().__init__(f"{name}: {in_options(detail)}")
        self.name = name
        self.reasons = reasons

    def without(self, parameter: str) -> "MissingParameterError | None":
        """The options still missing when this one is known; None if there are none."""
        left = {missing: reason for missing, reason in self.reasons.items() if missing != parameter}
        detail = "; ".join(f"query.{missing} {reason}" for missing, reason in left.items())
        return MissingParameterError(self.name, detail, left) if left else None


class Uploads:
    """Uploads to one service."""

    def __init__(self, server: str, token_file: Path | None) -> None:
        self.client = client_of(server, token_file)
        self.server = server

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def send(self, body: bytes, parameters: Mapping[str, Any], *, name: str) -> models.UploadReceipt:
        """The receipt; `was_created` says whether this upload stored something."""
        try:
            return self.client.upload_report(
                body, **{key: value for key, value in parameters.items() if value is not None}
            )
        except ProblemError as problem:
            reasons = {
                error.path.removeprefix("query."): error.message
                for error in problem.errors
                if error.path.startswith("query.")
            }
            if problem.slug == _INCOMPLETE and reasons:
                raise MissingParameterError(name, str(problem), reasons) from problem
            raise refusal_of(problem, subject=f"{name}: ", remedy=_AGAIN) from problem
        except ClientError as error:
            raise refusal_of(error, subject=f"{name}: ", remedy=_AGAIN) from error
