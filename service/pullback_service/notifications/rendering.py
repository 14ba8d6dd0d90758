"""Messages in the forms of the channels. Pure."""

import hashlib
import hmac
from collections.abc import Iterator
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any, Final
from urllib.parse import urljoin

import orjson

from pullback_service.notifications.events import Facts
from pullback_service.notifications.message import Message, Notice
from pullback_service.notifications.plain_text import neutral, neutral_in_slack, one_line

LONGEST_SLACK_TEXT: Final = 2_900  # a block of Slack takes 3,000 characters
_URL_IN_SLACK: Final = str.maketrans({"<": "%3C", ">": "%3E", "|": "%7C", " ": "%20"})


def webhook_body(message: Message, base: str | None) -> bytes:
    """The body of a request to a webhook."""
    fields: dict[str, Any] = {"delivery": str(message.delivery_id), "event": message.event, "project": message.project}
    if message.is_digest:
        notifications = [_as_json(each, base) for each in message.told]
        fields |= {"notifications": notifications, "left_out": message.left_out}
    else:
        fields |= _as_json(message.told[0], base)
    return orjson.dumps(fields)


def signature(secret: str, timestamp: int, body: bytes) -> str:
    """HMAC-SHA256 over the timestamp, a point and the body: proves who sent it, and when."""
    return hmac.new(secret.encode(), b"%d." % timestamp + body, hashlib.sha256).hexdigest()


def slack_body(message: Message, base: str | None) -> bytes:
    """The body of a request to an incoming webhook of Slack, or of a service that takes the same.

    Slack shows the block, in which it looks for nothing but the markup that stands there (`verbatim`); others show the text.
    """
    lines = [f"*{neutral_in_slack(message.title)}*"]
    for each in message.told:
        url = page_of(each.facts, base)
        link = [f"<{url.translate(_URL_IN_SLACK)}|open>"] if url else []
        if message.is_digest:
            lines.append(" ".join([f"• {neutral_in_slack(each.facts['title'])}", *link]))
        else:
            details = (f"• {neutral_in_slack(line)}" for line in each.facts.get("details", ()))
            again = [f"The same here: {neutral_in_slack(command)}" for command in _commands(each.facts)]
            lines += [neutral_in_slack(_text_of(each.facts)), *details, *link, *again]
    if message.left_out:
        lines.append(f"and {message.left_out} more")
    text = _within("\n".join(lines), LONGEST_SLACK_TEXT)
    block = {"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": True}}
    return orjson.dumps({"text": text, "blocks": [block], "unfurl_links": False, "unfurl_media": False})


def mail(message: Message, base: str | None, *, sender: str) -> EmailMessage:
    """A message as an e-mail: plain text, headers of one line."""
    made = EmailMessage(policy=SMTP)
    domain = sender.rpartition("@")[2].rstrip(">")
    made["From"] = sender
    made["To"] = ", ".join(message.target.split())
    made["Subject"] = one_line(f"[{message.project}] {message.title}", 200)
    made["Message-ID"] = f"<{message.delivery_id}@{domain}>"
    thread = None if message.is_digest else message.told[0].facts.get("thread")
    if thread is not None:  # programs show messages that refer to the same one together, be there one or not
        named = hashlib.sha256(f"{message.project}\0{thread}".encode()).hexdigest()[:32]
        made["References"] = f"<{named}@{domain}>"
    made["Auto-Submitted"] = "auto-generated"
    made["Pullback-Event"] = message.event
    made["Pullback-Delivery"] = str(message.delivery_id)
    made.set_content("\n".join(_mail_lines(message, base)))
    return made


def page_of(facts: Facts, base: str | None) -> str | None:
    """The address of the page that facts name; None where only its path is known."""
    url = facts.get("url")
    if not url:
        return None
    whole = urljoin(f"{base.rstrip('/')}/", str(url)) if base else str(url)
    return whole if whole.startswith(("https://", "http://")) else None


def _as_json(notification: Notice, base: str | None) -> dict[str, Any]:
    url = page_of(notification.facts, base) or notification.facts.get("url")
    facts = {**notification.facts, "url": url}
    return {"event": notification.event, "key": notification.key, "created_at": notification.created_at, "facts": facts}


def _text_of(facts: Facts) -> str:
    """The sentence of an event, and the way it was measured."""
    return " ".join(str(facts[name]) for name in ("sentence", "evidence") if facts.get(name))


def _commands(facts: Facts) -> Iterator[str]:
    """The command of facts, unless it holds something that programs make a mention or a link of: changed it would not work."""
    command = facts.get("command")
    if command and neutral(command) == command:
        yield command


def _mail_lines(message: Message, base: str | None) -> Iterator[str]:
    if message.is_digest:
        yield f"{neutral(message.title)}: more than a channel is sent in an hour."
        yield ""
    for each in message.told:
        yield neutral(each.facts["title"] if message.is_digest else _text_of(each.facts))
        if not message.is_digest:
            yield from (f"- {neutral(line)}" for line in each.facts.get("details", ()))
        url = page_of(each.facts, base)
        if url:
            yield f"{'' if message.is_digest else chr(10)}{url}"
        if not message.is_digest:
            yield from (f"\nThe same here:\n{command}" for command in _commands(each.facts))
    if message.left_out:
        yield f"and {message.left_out} more"
    yield ""
    yield "-- "
    yield f"Sent on the channel {neutral(message.channel)} of the project {neutral(message.project)} by Pullback."


def _within(text: str, most: int) -> str:
    """The lines of a text that fit, whole: no link is cut in two."""
    if len(text) <= most:
        return text
    kept: list[str] = []
    left = most - len("\n…")
    for line in text.split("\n"):
        if len(line) < left:
            kept.append(line)
            left -= len(line) + 1
    return "\n".join([*kept, "…"])
