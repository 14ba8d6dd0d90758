"""Messages in the forms of the channels: signed for programs, plain for people."""

import hashlib
import json
from datetime import UTC, datetime
from uuid import UUID

import pytest

from pullback_service.notifications.events import tidied
from pullback_service.notifications.message import Message, Notice
from pullback_service.notifications.rendering import (
    LONGEST_SLACK_TEXT,
    mail,
    page_of,
    signature,
    slack_body,
    webhook_body,
)

NOW = datetime(2026, 5, 1, tzinfo=UTC)
ID = UUID(int=7)
BASE = "https://pullback.example"
EVIL = "Fix\r\nBcc: victim@evil.example\r\n\r\n<!channel> @here see http://evil.example/a [free](http://evil.example)"


def message(*titles, kind="webhook", target="https://hooks.example", **facts):
    told = [
        Notice(
            "confirmed",
            f"k{number}",
            tidied({"title": title, "sentence": f"{title} is slower.", "url": "/projects/demo/commits/a", **facts}),
            NOW,
        )
        for number, title in enumerate(titles)
    ]
    return Message(ID, "team", kind, target, "key", "demo", tuple(told), is_digest=len(told) > 1)


def hmac_by_hand(key, content):
    """RFC 2104, written down once more: what a receiver in any language does."""
    block = key.encode().ljust(64, b"\0")
    inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in block) + content).digest()
    return hashlib.sha256(bytes(byte ^ 0x5C for byte in block) + inner).hexdigest()


def test_a_signature_is_the_hmac_of_timestamp_and_body():
    body = webhook_body(message("A"), BASE)
    assert signature("key", 1_777_777_777, body) == hmac_by_hand("key", b"1777777777." + body)
    assert signature("key", 1_777_777_778, body) != signature("key", 1_777_777_777, body)


def test_a_webhook_gets_the_facts_as_they_are():
    body = json.loads(webhook_body(message("A", commit="a" * 40, cases=[{"case": "w"}]), BASE))
    assert (body["delivery"], body["event"], body["project"]) == (str(ID), "confirmed", "demo")
    assert body["facts"]["url"] == f"{BASE}/projects/demo/commits/a"
    assert (body["facts"]["commit"], body["facts"]["cases"]) == ("a" * 40, [{"case": "w"}])
    assert json.loads(webhook_body(message("A"), None))["facts"]["url"] == "/projects/demo/commits/a"
    digest = json.loads(webhook_body(message("A", "B"), BASE))
    assert (digest["event"], [each["facts"]["title"] for each in digest["notifications"]]) == ("digest", ["A", "B"])


def test_slack_gets_text_without_mentions_and_links_but_ours():
    body = json.loads(slack_body(message(EVIL, details=[EVIL]), BASE))
    text = body["text"]
    assert body["blocks"][0]["text"] == {"type": "mrkdwn", "text": text, "verbatim": True}
    assert text.count("<") == text.count("://") == 1
    assert f"<{BASE}/projects/demo/commits/a|open>" in text
    assert not any(each in text for each in ("@here", "](", "evil.example"))
    assert text.count("\n") == 3  # title, sentence, a detail, the link
    assert "<" not in json.loads(slack_body(message(EVIL), None))["text"]


COMMAND = "pullback compare --against 5d02b86 --candidate 9a1f3c7 --suite standard --case 'lstm[n=100,f4,cpu]' --variant native"


def test_how_it_was_measured_and_the_command_that_repeats_it_stand_in_every_message():
    said = message("A", evidence="Measured against its parent, taking turns, on `epyc-a`.", command=COMMAND)
    assert json.loads(webhook_body(said, BASE))["facts"]["command"] == COMMAND
    for text in (json.loads(slack_body(said, BASE))["text"], mail(said, BASE, sender="a@b.example").get_content()):
        assert "A is slower. Measured against its parent, taking turns, on `epyc-a`.\n" in text.replace("\r\n", "\n")
        assert f"The same here:{' ' if '|open>' in text else chr(10)}{COMMAND}\n" in f"{text}\n"


def test_a_command_that_a_program_would_make_a_link_of_is_sent_to_programs_alone():
    said = message("A", evidence=EVIL, command=f"pullback compare --case '{EVIL}'")
    for text in (json.loads(slack_body(said, BASE))["text"], mail(said, BASE, sender="a@b.example").get_content()):
        assert "The same here" not in text
        assert not any(each in text for each in ("@here", "](", "evil.example"))
    assert "pullback compare" in json.loads(webhook_body(said, BASE))["facts"]["command"]


def test_a_text_for_slack_fits_and_keeps_its_link():
    body = json.loads(slack_body(message("&" * 200, sentence="&" * 2000), BASE))
    assert len(body["text"]) <= LONGEST_SLACK_TEXT
    assert body["text"].endswith("|open>\n…")
    many = json.loads(slack_body(message(*("&" * 200 for _ in range(50))), BASE))
    assert len(many["text"]) <= LONGEST_SLACK_TEXT


def test_a_mail_has_headers_of_one_line_and_a_plain_body():
    made = mail(
        message(EVIL, kind="email", target="a@example.org b@example.org", thread="incident 3"),
        BASE,
        sender="p@x.example",
    )
    assert made["Bcc"] is None
    assert (made["To"], made["From"]) == ("a@example.org, b@example.org", "p@x.example")
    assert made["Message-ID"] == f"<{ID}@x.example>"
    assert (made["Pullback-Event"], made["Pullback-Delivery"]) == ("confirmed", str(ID))
    assert made["Subject"].startswith("[demo] Fix Bcc: victim@evil.example")
    assert made.get_content_type() == "text/plain"
    text = made.get_content()
    assert f"\n{BASE}/projects/demo/commits/a\n" in text
    assert text.count("://") == 1
    assert not any(each in text for each in ("@here", "victim@evil", "evil.example"))
    bytes(made)


def test_mails_of_one_thread_refer_to_the_same():
    first, second, other = (
        mail(message(title, kind="email", target="a@b.co", thread=thread), None, sender="p@x.example")["References"]
        for title, thread in (("A", "incident 3"), ("B", "incident 3"), ("C", "incident 4"))
    )
    assert first == second != other


def test_a_digest_by_mail_names_each_with_its_page():
    made = mail(message("A", "B", kind="email", target="a@b.co"), BASE, sender="p@x.example")
    assert made["Subject"] == "[demo] 2 more in demo"
    assert made.get_content().count(f"{BASE}/projects/demo/commits/a") == 2


@pytest.mark.parametrize(
    ("url", "base", "page"),
    [
        ("/a", "https://x.example/", "https://x.example/a"),
        ("/a", None, None),
        (None, "https://x.example", None),
        ("javascript:alert(1)", "https://x.example", None),
        ("https://y.example/a", "https://x.example", "https://y.example/a"),
    ],
)
def test_a_page_is_linked_by_its_whole_address_or_not(url, base, page):
    assert page_of({"url": url}, base) == page
