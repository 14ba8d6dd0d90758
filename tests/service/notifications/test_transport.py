"""A message goes to where its channel leads and nowhere else, in bounded time, whatever answers there."""

import asyncio
import json
import ssl
import time
from dataclasses import replace
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest
from tests.service.notifications.doubles import Hooks
from tests.service.notifications.test_rendering import hmac_by_hand, message

from pullback_service.notifications import transport
from pullback_service.notifications.transport import DeliverySettings, send
from pullback_service.settings import Settings

pytestmark = pytest.mark.anyio

CERTIFICATE = Path(__file__).parents[2] / "data" / "notifications" / "hooks.example.pem"
LOOPBACK = DeliverySettings(networks=(ip_network("127.0.0.0/8"),), public_url="https://pullback.example")


def resolving(*answers):
    """A resolver that answers differently each time, and what it was asked."""
    asked, left = [], list(answers)

    async def resolve(host, port):
        asked.append((host, port))
        return [ip_address(each) for each in left.pop(0)]

    return resolve, asked


async def test_a_webhook_can_tell_who_sent_it_and_when(hooks):
    began = int(time.time())
    answer = await send(message("A", target=hooks.url("/a?b=c")), LOOPBACK)
    assert answer == (True, "200 OK")
    (request,) = hooks.received
    assert (request.path, request.headers["content-type"]) == ("/a?b=c", "application/json")
    assert request.headers["host"] == f"127.0.0.1:{hooks.port}"
    timestamp = request.headers["pullback-timestamp"]
    assert began <= int(timestamp) <= time.time()
    signed = hmac_by_hand("key", timestamp.encode() + b"." + request.body)
    assert request.headers["pullback-signature"] == f"sha256={signed}"
    assert request.headers["pullback-delivery"] == json.loads(request.body)["delivery"]


async def test_slack_gets_no_signature(hooks):
    assert (await send(message("A", kind="slack", target=hooks.url())._replace(secret=None), LOOPBACK)).is_delivered
    assert hooks.received[0].headers["pullback-signature"] is None
    assert set(json.loads(hooks.received[0].body)) == {"text", "blocks", "unfurl_links", "unfurl_media"}


async def test_without_an_allowed_network_nothing_inside_is_connected_to(hooks):
    answer = await send(message("A", target=hooks.url()), DeliverySettings())
    assert not answer.is_delivered
    assert answer.said.startswith("127.0.0.1 is at 127.0.0.1, which is a private address")
    assert hooks.received == []


async def test_a_second_answer_of_the_resolver_changes_nothing():
    inside = Hooks("127.0.0.2")
    try:
        hook = Hooks("127.0.0.1")
        resolve, asked = resolving(["127.0.0.1"], ["127.0.0.2"])
        outside = DeliverySettings(networks=(ip_network("127.0.0.1/32"),), resolver=resolve)
        url = hook.url(host="hooks.example")
        assert (await send(message("A", target=url), outside)).is_delivered
        assert asked == [("hooks.example", hook.port)]
        second = await send(message("A", target=inside.url(host="hooks.example")), outside)
        assert "hooks.example is at 127.0.0.2" in second.said
        assert len(hook.received) == 1
        assert hook.received[0].headers["host"] == f"hooks.example:{hook.port}"
        hook.close()
    finally:
        inside.close()
    assert inside.received == []


async def test_a_redirect_is_not_followed():
    inside = Hooks("127.0.0.2")
    hook = Hooks("127.0.0.1")
    hook.answers = [(status, {"location": inside.url()}, b"") for status in (301, 302, 303, 307, 308)]
    try:
        for _ in range(5):
            answer = await send(message("A", target=hook.url()), LOOPBACK)
            assert not answer.is_delivered
            assert "redirects are not followed" in answer.said
    finally:
        hook.close()
        inside.close()
    assert (len(hook.received), inside.received) == (5, [])


@pytest.mark.parametrize("addresses", [["127.0.0.3", "127.0.0.1"], ["127.0.0.1", "127.0.0.3"]])
async def test_the_next_address_is_tried_where_one_does_not_answer(hooks, addresses):
    resolve, _ = resolving(addresses)
    url = hooks.url(host="hooks.example")
    assert (await send(message("A", target=url), replace(LOOPBACK, resolver=resolve))).is_delivered


async def test_by_http_only_allowed_networks_are_told():
    resolve, _ = resolving(["1.1.1.1"])
    answer = await send(message("A", target="http://hooks.example/"), replace(LOOPBACK, resolver=resolve))
    assert answer == (False, "hooks.example is outside of the allowed networks: use https")


@pytest.fixture
def encrypted(monkeypatch):
    """A receiver of https://hooks.example, whose certificate is trusted here."""
    hook = Hooks()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    hook.names = []
    context.sni_callback = lambda _, name, __: hook.names.append(name)
    hook.socket = context.wrap_socket(hook.socket, server_side=True, do_handshake_on_connect=False)
    trusting = ssl.create_default_context(cafile=str(CERTIFICATE))
    monkeypatch.setattr(transport, "_trusted", lambda: trusting)
    yield hook
    hook.close()


async def test_tls_is_with_the_host_that_was_named_and_not_with_its_address(encrypted):
    resolve, _ = resolving(["127.0.0.1"], ["127.0.0.1"])
    outside = replace(LOOPBACK, resolver=resolve)
    answer = await send(message("A", target=f"https://hooks.example:{encrypted.port}/a"), outside)
    assert answer.is_delivered, answer
    assert encrypted.names == ["hooks.example"]
    assert encrypted.received[0].headers["host"] == f"hooks.example:{encrypted.port}"
    answer = await send(message("A", target=f"https://other.example:{encrypted.port}/a"), outside)
    assert not answer.is_delivered
    assert "certificate verify failed" in answer.said
    assert len(encrypted.received) == 1


async def test_whoever_does_not_answer_is_waited_for_a_bounded_time(hooks, monkeypatch):
    monkeypatch.setattr(transport, "HTTP_S", 0.3)

    def drip(handler):
        handler.send_response(200)
        handler.end_headers()
        for _ in range(100):
            handler.wfile.write(b".")
            handler.wfile.flush()
            time.sleep(0.05)

    hooks.answers = [drip]
    assert await send(message("A", target=hooks.url()), LOOPBACK) == (False, "no answer within 0.3 s")


async def test_of_a_long_answer_little_is_read(hooks):
    written = []

    def flood(handler):
        handler.send_response(500)
        handler.end_headers()
        try:
            for _ in range(100_000):
                handler.wfile.write(b"<b>@all</b>" * 1000)
                written.append(1)
        except OSError:
            written.append("cut")

    hooks.answers = [flood]
    answer = await send(message("A", target=hooks.url()), LOOPBACK)
    assert not answer.is_delivered
    assert len(answer.said) <= 200
    deadline = time.monotonic() + 30
    while "cut" not in written:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


async def test_nobody_at_the_address_is_an_answer(hooks):
    url = hooks.url()
    hooks.close()
    answer = await send(message("A", target=url), LOOPBACK)
    assert not answer.is_delivered
    assert "attempts failed" in answer.said or "refused" in answer.said.lower()


def by_mail(url, **more):
    server = Settings(smtp_url=url, mail_from="Pullback <pullback@x.example>", **more).mail_server()
    return replace(LOOPBACK, mail_server=server)


async def test_a_mail_arrives_at_everybody(mailbox):
    answer = await send(message("Ä\r\nBcc: c@b.co", kind="email", target="a@b.co d@b.co"), by_mail(mailbox.url))
    assert answer == (True, "accepted by 127.0.0.1")
    (made,) = mailbox.mails
    assert mailbox.envelopes == [["a@b.co", "d@b.co"]]
    assert (made["Subject"], made["To"], made["Bcc"]) == ("[demo] Ä Bcc: c@b.co", "a@b.co, d@b.co", None)
    assert "https://pullback.example/projects/demo/commits/a" in made.get_content()
    assert mailbox.logins == []


async def test_a_password_goes_to_a_server_on_this_machine_or_by_tls(mailbox):
    url = mailbox.url.replace("//", "//me:p%40ss@")
    assert (await send(message("A", kind="email", target="a@b.co"), by_mail(url))).is_delivered
    assert len(mailbox.logins) == 1
    server = replace(by_mail(url).mail_server, host="localhost.example")
    assert not server.is_local


async def test_a_password_is_not_sent_without_tls_to_another_machine(mailbox, monkeypatch):
    outside = by_mail(mailbox.url.replace("//", "//me:secret@"))
    monkeypatch.setattr(type(outside.mail_server), "is_local", False)
    answer = await send(message("A", kind="email", target="a@b.co"), outside)
    assert (answer.is_delivered, "offers no TLS" in answer.said, mailbox.logins) == (False, True, [])


async def test_recipients_whom_nobody_knows_are_named(mailbox):
    mailbox.unknown = {"d@b.co"}
    answer = await send(message("A", kind="email", target="a@b.co d@b.co"), by_mail(mailbox.url))
    assert answer == (True, "accepted, but not for d@b.co")
    mailbox.unknown = {"a@b.co"}
    answer = await send(message("A", kind="email", target="a@b.co"), by_mail(mailbox.url))
    assert not answer.is_delivered
    assert "nobody of that name" in answer.said


@pytest.mark.long
async def test_a_mail_that_is_refused_for_now_is_no_delivery(mailbox):
    mailbox.refusals = 1
    answer = await send(message("A", kind="email", target="a@b.co"), by_mail(mailbox.url))
    assert (answer.is_delivered, "later" in answer.said) == (False, True)
    assert (await send(message("A", kind="email", target="a@b.co"), by_mail(mailbox.url))).is_delivered


async def test_without_a_mail_server_the_remedy_is_said():
    answer = await send(message("A", kind="email", target="a@b.co"), LOOPBACK)
    assert answer == (False, "no mail server is configured: set PULLBACK_SMTP_URL_FILE for the workers")
