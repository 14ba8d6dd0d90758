"""Sending one message: by HTTP to a webhook, by SMTP to a mail server. In bounded time, and reading little of what comes back."""

import asyncio
import functools
import smtplib
import ssl
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from email.message import EmailMessage
from importlib.metadata import version
from typing import Final, NamedTuple

import httpx

from pullback_service.egress import (
    Address,
    Network,
    NoAddressError,
    Resolve,
    addresses_to_connect,
    is_allowed,
    resolve,
)
from pullback_service.notifications.message import Message
from pullback_service.notifications.plain_text import one_line
from pullback_service.notifications.rendering import mail, signature, slack_body, webhook_body
from pullback_service.settings import MailServer, Settings

HTTP_S: Final = 10.0
"""Most time for everything from the name of a host to its answer."""
MAIL_S: Final = 12.0
MOST_READ: Final = 2_048
"""Bytes of an answer."""
LONGEST_ANSWER: Final = 200
_PORTS: Final = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True)
class DeliverySettings:
    """The means of a worker to send: networks that the operator allows, the mail server, and the address of the pages."""

    networks: Sequence[Network] = ()
    mail_server: MailServer | None = None
    public_url: str | None = None
    resolver: Resolve = resolve


def outside_of(settings: Settings) -> DeliverySettings:
    """The means of sending that the settings name."""
    return DeliverySettings(settings.networks(), settings.mail_server(), settings.public_url)


class DeliveryResult(NamedTuple):
    """The result of an attempt, with the answer of the other side in a line."""

    is_delivered: bool
    said: str


async def send(message: Message, outside: DeliverySettings) -> DeliveryResult:
    """Send a message; whatever goes wrong is an answer."""
    limit = MAIL_S if message.kind == "email" else HTTP_S
    try:
        async with asyncio.timeout(limit):
            if message.kind == "email":
                return await _send_mail(message, outside)
            return await _post(message, outside)
    except TimeoutError:
        return DeliveryResult(False, f"no answer within {limit:g} s")
    except NoAddressError as error:
        return _refused(error)
    except (httpx.HTTPError, httpx.InvalidURL, smtplib.SMTPException, OSError, ValueError) as error:
        return _refused(error)


def _refused(error: Exception) -> DeliveryResult:
    message = str(error) or type(error).__name__
    return DeliveryResult(False, one_line(message, LONGEST_ANSWER))


def headers_of(message: Message, body: bytes, timestamp: int) -> Mapping[str, str]:
    """Headers of a request to a webhook."""
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"Pullback/{version('pullback')}",
        "Accept-Encoding": "identity",
        "Pullback-Event": message.event,
        "Pullback-Delivery": str(message.delivery_id),
    }
    if message.secret is not None:
        headers["Pullback-Timestamp"] = str(timestamp)
        headers["Pullback-Signature"] = f"sha256={signature(message.secret, timestamp, body)}"
    return headers


async def _post(message: Message, outside: DeliverySettings) -> DeliveryResult:
    url = httpx.URL(message.target)
    port = url.port or _PORTS[url.scheme]
    # Asked for once: who answers differently the next time changes nothing.
    addresses = await addresses_to_connect(url.host, port, outside.networks, resolver=outside.resolver)
    if url.scheme != "https" and not all(is_allowed(address, outside.networks) for address in addresses):
        return DeliveryResult(False, f"{url.host} is outside of the allowed networks: use https")
    make_body = slack_body if message.kind == "slack" else webhook_body
    body = make_body(message, outside.public_url)
    headers = headers_of(message, body, int(time.time()))
    # No proxy of the environment and no redirect, which would connect to addresses that nobody checked.
    async with httpx.AsyncClient(
        verify=_trusted(), trust_env=False, follow_redirects=False, timeout=HTTP_S, headers=headers
    ) as client:
        for address in addresses[:-1]:
            with suppress(httpx.ConnectError, httpx.ConnectTimeout):
                return await _post_to(client, url, address, body)
        return await _post_to(client, url, addresses[-1], body)


async def _post_to(client: httpx.AsyncClient, url: httpx.URL, address: Address, body: bytes) -> DeliveryResult:
    """One request to an address that was checked, under the name of the host in TLS and in HTTP."""
    request = client.build_request(
        "POST",
        url.copy_with(host=str(address)),
        content=body,
        headers={"Host": url.netloc.decode("ascii")},
        extensions={"sni_hostname": url.raw_host.decode("ascii")},
    )
    answer = await client.send(request, stream=True)
    try:
        read = bytearray()
        async for piece in answer.aiter_raw():
            read += piece[: MOST_READ - len(read)]
            if len(read) >= MOST_READ:
                break
    finally:
        await answer.aclose()
    message = f"{answer.status_code} {answer.reason_phrase}".rstrip()
    if answer.is_redirect:
        return DeliveryResult(False, f"{message}: redirects are not followed; give the address that they lead to")
    if not answer.is_success and read:
        message = f"{message}: {read.decode('utf-8', 'replace')}"
    return DeliveryResult(answer.is_success, one_line(message, LONGEST_ANSWER))


@functools.cache
def _trusted() -> ssl.SSLContext:
    return httpx.create_ssl_context()


async def _send_mail(message: Message, outside: DeliverySettings) -> DeliveryResult:
    if outside.mail_server is None:
        return DeliveryResult(False, "no mail server is configured: set PULLBACK_SMTP_URL_FILE for the workers")
    made = mail(message, outside.public_url, sender=outside.mail_server.sender)
    return await asyncio.to_thread(_submit, outside.mail_server, made)


def _submit(server: MailServer, made: EmailMessage) -> DeliveryResult:
    timeout_s = MAIL_S / 2
    if server.is_encrypted:
        connection: smtplib.SMTP = smtplib.SMTP_SSL(server.host, server.port, timeout=timeout_s, context=_trusted())
    else:
        connection = smtplib.SMTP(server.host, server.port, timeout=timeout_s)
    with connection:
        if not server.is_encrypted:
            connection.ehlo()
            if connection.has_extn("starttls"):
                connection.starttls(context=_trusted())
            elif server.password is not None and not server.is_local:
                return DeliveryResult(False, f"{server.host} offers no TLS; passwords are sent encrypted only")
        if server.user is not None:
            connection.login(server.user, server.password or "")
        refused = connection.send_message(made)
    if refused:
        names = ", ".join(refused)
        return DeliveryResult(True, one_line(f"accepted, but not for {names}", LONGEST_ANSWER))
    return DeliveryResult(True, f"accepted by {server.host}")
