"""The service that a command speaks to, as the client of the API; what it refuses is one sentence on the command line."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import typer
from stamina.instrumentation import RetryDetails, set_on_retry_hooks

from pullback_cli.credentials import token_in
from pullback_cli.usage_errors import RefusalError, UnavailableError
from pullback_cli.wording import in_options
from pullback_service.client import Client, ClientError, NoAnswerError, ProblemError
from pullback_service.client.errors import NO_TYPE

PATIENT_ATTEMPTS = 5  # a program waits, in CI: a service that restarts is asked again
PROMPT_ATTEMPTS = 1  # somebody waits at a prompt, and can ask again
TIMEOUT_S = 120.0
MOST_PORT = 65_535


def client_of(
    server: str, token_file: Path | None, *, timeout_s: float = TIMEOUT_S, attempts: int = PATIENT_ATTEMPTS
) -> Client:
    """A client of the service a person named, with the token of a file or of the environment."""
    set_on_retry_hooks([_say_again])
    return Client(address_of(server), token=token_in(token_file), timeout_s=timeout_s, attempts=attempts)


def _say_again(details: RetryDetails) -> None:
    """The message shown while a service does not answer."""
    typer.echo(f"{details.caused_by}; asking again in {details.wait_for:.1f} s", err=True)


@contextmanager
def connected_client(server: str, token_file: Path | None, *, timeout_s: float = TIMEOUT_S) -> Iterator[Client]:
    """The client for somebody at a prompt: calls are made once, and every error of them is a refusal."""
    try:
        with client_of(server, token_file, timeout_s=timeout_s, attempts=PROMPT_ATTEMPTS) as client:
            yield client
    except NoAnswerError as error:
        raise refusal_of(error, remedy="check --server, or start one with `pullback up`") from error
    except ClientError as error:
        raise refusal_of(error) from error


def refusal_of(
    error: ClientError, *, subject: str = "", remedy: str = "check --server, or try again later"
) -> RefusalError:
    """The refusal for an error of the client; the remedy is added where the same call may succeed later, and the service names none."""
    sentence = subject + in_options(str(error))
    if not error.is_transient:
        return RefusalError(sentence)
    has_remedy = isinstance(error, ProblemError) and error.type != NO_TYPE
    return UnavailableError(sentence if has_remedy else f"{sentence}: {remedy}")


def address_of(server: str) -> str:
    """The address as it was given; refused where it is none, or holds what may be a secret: addresses are printed and logged."""
    if any(mark in server for mark in "@?#"):
        raise RefusalError(
            "the address of --server or PULLBACK_SERVER has a user name, a password, a query or a fragment (@, ? or #); "
            "leave it out, and give a token by --token-file or PULLBACK_TOKEN"
        )
    try:
        url = httpx.URL(server)
    except (httpx.InvalidURL, ValueError):
        url = httpx.URL()
    if url.scheme not in {"http", "https"} or not url.host or (url.port or 1) > MOST_PORT or " " in server:
        raise RefusalError(f"--server {server!r} is not an address like http://127.0.0.1:8000")
    return server
