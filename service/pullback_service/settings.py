"""Every setting of the service, by environment. Secrets may come by file, so that they are in no process listing."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from pydantic import Field, ValidationError, field_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, SettingsConfigDict

from pullback_service.egress import Network, read_networks
from pullback_service.errors import SetupError
from pullback_service.validation_errors import message_of

MIB = 1024 * 1024
_SCHEME = re.compile(r"(?P<backend>\w+)(?P<driver>\+\w*)?://")
_MAIL_PORTS = {"smtp": 587, "smtps": 465}


@dataclass(frozen=True, slots=True)
class MailServer:
    """The server that takes mail: `smtps` is encrypted from the first byte on, `smtp` as soon as the server offers it."""

    host: str
    port: int
    is_encrypted: bool
    user: str | None
    password: str | None
    sender: str

    @property
    def is_local(self) -> bool:
        """True if it is on this machine."""
        return _is_loopback(self.host)


class Settings(BaseSettings):
    """Read from `PULLBACK_*` and `DATABASE_URL`; build with `load_settings` for errors in one sentence."""

    model_config = SettingsConfigDict(
        env_prefix="PULLBACK_", extra="ignore", frozen=True, populate_by_name=True, use_attribute_docstrings=True
    )

    database_url: str | None = Field(None, validation_alias="DATABASE_URL")
    """Address of the database, `postgresql://user@host/name`; unset, `pullback up` starts the embedded one."""
    database_url_file: Path | None = Field(None, validation_alias="DATABASE_URL_FILE")
    """A file whose content is `DATABASE_URL`."""
    auth: Literal["token"] | None = None
    """`token`: every request needs a token with the scope for it. Unset: local mode, loopback only."""
    token_file: Path | None = None
    """File with the bootstrap token, which has all scopes and is used to create the other tokens."""
    token_work: float = Field(4.0, gt=0)
    """Seconds of work that one token may ask of a process each second; what it leaves is kept for a minute."""
    address_work: float = Field(0.5, gt=0)
    """The same for an address without a valid token."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Lowest level that is logged."""
    log_format: Literal["json", "text"] = "json"
    """`json`: one object per line. `text`: for reading."""
    pool_size: int = Field(10, ge=1, le=200)
    """Database connections of one process."""
    max_report_bytes: int = Field(64 * MIB, ge=1024)
    """Largest upload, as sent and after decompression."""
    max_log_bytes: int = Field(16 * MIB, ge=1024)
    """Largest log of one attempt."""
    max_streams: int = Field(200, ge=1, le=10_000)
    """Requests for logs that may wait for more output at the same time in one process; others are answered at once."""
    drain_s: float = Field(0.0, ge=0, le=300)
    """Seconds for which a stopping process of the service continues to answer, while `/readyz` returns 503: for proxies that poll it, and would otherwise send requests to a process that has exited."""
    lease_s: float = Field(90.0, gt=0)
    """The time that an agent may be silent before its job goes back to the queue."""
    retry_pause_s: float = Field(30.0, ge=0, le=3600)
    """Pause before a job is retried after a failure of its agent; four times as long after each further one."""
    heartbeat_s: float = Field(15.0, gt=0)
    """Interval of the heartbeats of agents."""
    idle_noise_hours: float = Field(12.0, ge=0)
    """Shortest interval between A/A comparisons of an idle machine; 0: no such comparisons."""
    incident_minutes: float = Field(120.0, ge=0)
    """Minutes a day (of UTC) that a machine spends on confirming and bisecting incidents; 0: none."""
    public_url: str | None = None
    """Address at which people reach the pages, `https://pullback.example`: for every link that leaves the service. Unset, messages have paths, and pages the address that was asked."""
    smtp_url: str | None = None
    """Mail server of notifications, `smtps://user:password@host` or `smtp://host:587`, which is encrypted where the server offers it."""
    smtp_url_file: Path | None = None
    """A file whose content is `PULLBACK_SMTP_URL`."""
    mail_from: str | None = None
    """Sender of notifications by mail; unset, `pullback@` and the host of `PULLBACK_PUBLIC_URL`."""
    alive_file: Path | None = None
    """A file that a worker touches every 5 s as long as it works, for health checks."""
    allow_networks: str = ""
    """Networks that are not public and that webhooks may be in, `10.0.0.0/8, fd00::/8`."""

    @field_validator("public_url")
    @classmethod
    def _is_address_of_host(cls, url: str | None) -> str | None:
        if not url:  # compose files give a variable that is not set as an empty one
            return None
        if not re.fullmatch(r"https?://[^\s/?#@]+/?", url):
            raise PydanticCustomError(
                "address", "give the address of a host, like https://pullback.example, without a path."
            )
        return url

    def named_database_url(self) -> str | None:
        """Address of the database, from the variable or the file it names; None where neither says anything."""
        if self.database_url:
            return _postgres_address("DATABASE_URL", self.database_url)
        if self.database_url_file:
            address = _read_secret("DATABASE_URL_FILE", self.database_url_file)
            return _postgres_address(f"DATABASE_URL_FILE names {self.database_url_file}, whose content", address)
        return None

    def require_database_url(self) -> str:
        """The same where there must be one."""
        named = self.named_database_url()
        if named is None:
            raise SetupError("No database is configured: set DATABASE_URL, or use `pullback up`, which starts its own.")
        return named

    def networks(self) -> Sequence[Network]:
        """The networks that webhooks may be in beside public ones."""
        try:
            return read_networks(self.allow_networks)
        except ValueError as error:
            raise SetupError(
                f"PULLBACK_ALLOW_NETWORKS is not valid ({error}): give networks like 10.0.0.0/8, with commas between them."
            ) from error

    def mail_server(self) -> MailServer | None:
        """The server that notifications are mailed by; None where none is set."""
        if self.smtp_url:
            return self._mail_server("PULLBACK_SMTP_URL", self.smtp_url)
        if self.smtp_url_file:
            url = _read_secret("PULLBACK_SMTP_URL_FILE", self.smtp_url_file)
            return self._mail_server(f"PULLBACK_SMTP_URL_FILE names {self.smtp_url_file}, whose content", url)
        return None

    def _mail_server(self, where: str, url: str) -> MailServer:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), None
        if parts.scheme not in _MAIL_PORTS or not parts.hostname:
            raise SetupError(f"{where} is not an address like smtps://user:password@host or smtp://host:587.")
        host = urlsplit(self.public_url or "").hostname
        sender = self.mail_from or (f"pullback@{host}" if host else "")
        if not re.fullmatch(r"[^\s@<>,]+@[^\s@<>,]+|[^<>,\r\n\"]* <[^\s@<>,]+@[^\s@<>,]+>", sender):
            raise SetupError("PULLBACK_MAIL_FROM must be the sender of mails, like pullback@example.org.")
        return MailServer(
            host=parts.hostname,
            port=port or _MAIL_PORTS[parts.scheme],
            is_encrypted=parts.scheme == "smtps",
            user=unquote(parts.username) if parts.username else None,
            password=unquote(parts.password) if parts.password else None,
            sender=sender,
        )

    def token(self) -> str | None:
        """The bootstrap token, or None where none is set."""
        if self.token_file is not None:
            return _read_secret("PULLBACK_TOKEN_FILE", self.token_file)
        if self.auth == "token":
            raise SetupError("PULLBACK_AUTH=token needs a secret: set PULLBACK_TOKEN_FILE to a file that holds one.")
        return None


def load_settings() -> Settings:
    """Settings of this process; a value that does not hold is a `SetupError` naming its variable."""
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors(include_input=False)[0]  # what was given may be a secret in the wrong place
        name = str(first["loc"][0]) if first["loc"] else "a setting"
        variable = name if name.isupper() else f"PULLBACK_{name.upper()}"
        raise SetupError(f"{variable} is not valid: {message_of(first)}") from error


def refuse_open_bind(host: str, settings: Settings) -> None:
    """Refuse to be reachable from other machines without authentication."""
    if settings.auth is None and not _is_loopback(host):
        raise SetupError(
            f"Refusing to listen on {host} without authentication: "
            "set PULLBACK_AUTH=token and PULLBACK_TOKEN_FILE, or listen on 127.0.0.1."
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False  # another name may resolve to anything, now or later


def _read_secret(variable: str, path: Path) -> str:
    try:
        secret = path.read_text().strip()
    except OSError as error:
        raise SetupError(f"{variable} names {path}, which cannot be read ({error.strerror}).") from error
    except UnicodeDecodeError as error:
        raise SetupError(f"{variable} names {path}, which is not text: put the secret into it.") from error
    if not secret:
        raise SetupError(f"{variable} names {path}, which is empty: put the secret into it.")
    return secret


def _postgres_address(where: str, url: str) -> str:
    """The address as libpq reads it, where it can be that of a database of ours; it is never shown, for the password in it.

    SQLAlchemy's form names a driver, `postgresql+psycopg://`: ours are chosen, and Postgres's own programs know of none.
    """
    parts = _SCHEME.match(url)
    if parts is None:
        raise SetupError(f"{where} is not an address like postgresql://user@host/name.")
    if parts["backend"] not in {"postgresql", "postgres"}:
        raise SetupError(
            f"{where} names {parts['backend']}, but Pullback stores everything in Postgres: "
            "give an address like postgresql://user@host/name."
        )
    import psycopg  # noqa: PLC0415 - a quarter of `pullback status`, which names no database
    from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415 - the same

    address = url if parts["driver"] is None else parts["backend"] + url[parts.end("driver") :]
    try:
        port = str(conninfo_to_dict(address).get("port", ""))
    except (psycopg.ProgrammingError, UnicodeDecodeError):
        port = "unreadable"
    if not re.fullmatch(r"[0-9,]*", port):
        raise SetupError(f"{where} is not an address like postgresql://user@host/name.")
    return address
