"""A download to a file that is written completely or not at all."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import httpx

from pullback_cli.credentials import token_in
from pullback_cli.services import address_of
from pullback_cli.usage_errors import RefusalError, UnavailableError
from pullback_cli.wording import in_options
from pullback_service.client.errors import is_transient

_TIMEOUT_S = 120
PIPE_CLOSED = 141


@dataclass(slots=True)
class DownloadSize:
    """The size of a download. A line ends at a line feed that is not inside quotes, in which CSV puts those of texts."""

    size: int = 0
    lines: int = 0
    _quotes: int = 0

    def add(self, piece: bytes) -> None:
        """Count the next piece."""
        self.size += len(piece)
        for place, part in enumerate(piece.split(b'"')):
            self._quotes += place > 0
            self.lines += 0 if self._quotes % 2 else part.count(b"\n")


def download(
    server: str, token_file: Path | None, address: str, parameters: Sequence[tuple[str, str]], output: Path | None
) -> DownloadSize:
    """Write an answer to a file, or to standard output."""
    what = "the file is incomplete" if output is None else "nothing was written"
    again = f"{what}; run the same command again"
    token = token_in(token_file)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    timeout = httpx.Timeout(_TIMEOUT_S, connect=10)
    try:
        with (
            httpx.Client(base_url=address_of(server), headers=headers, timeout=timeout) as client,
            client.stream("GET", address, params=list(parameters)) as answer,
        ):
            if not answer.is_success:
                kind = UnavailableError if is_transient(answer.status_code) else RefusalError
                raise kind(f"{server} refused: {_detail(answer)}")
            with opened(output) as file:
                written = DownloadSize()
                for piece in answer.iter_bytes():
                    file.write(piece)
                    written.add(piece)
                return written
    except httpx.RemoteProtocolError as error:
        raise UnavailableError(f"{server} closed the connection early ({error}); {again}") from error
    except httpx.TransportError as error:
        raise UnavailableError(f"{server} does not answer ({error}): check --server; {again}") from error
    except BrokenPipeError:
        # Who reads has enough, as `head` has; what Python still holds for it goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(PIPE_CLOSED) from None


@contextmanager
def opened(output: Path | None) -> Iterator[BinaryIO]:
    """The file to write: it takes its name, in the place of what had it before, when all of it is on the disk.

    A pipe or a device, as in `-o /dev/stdout`, is written to: it must not be replaced by a file.
    """
    if output is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        output = output.resolve()
        if output.exists() and not output.is_file():
            with output.open("wb") as file:
                yield file
            return
        unfinished = output.with_name(f".{output.name}.{os.getpid()}.part")
        try:
            with unfinished.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(output)
        finally:
            unfinished.unlink(missing_ok=True)
    except BrokenPipeError:
        raise
    except (OSError, RuntimeError) as error:  # a loop of links is no OSError in every Python
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise RefusalError(f"{output} cannot be written ({reason}): name a file in a writable folder") from error


def _detail(answer: httpx.Response) -> str:
    answer.read()
    try:
        return in_options(str(answer.json()["detail"]))
    except (ValueError, KeyError, TypeError):
        remedy = (
            "check --server, or try again later" if is_transient(answer.status_code) else "is it a Pullback service?"
        )
        return f"it answered {answer.status_code} ({answer.reason_phrase}): {remedy}"
