"""The facts of a notification, and the body of a webhook that docs/notifications.md shows."""

import json
import re
from datetime import UTC, datetime
from math import log
from pathlib import Path
from uuid import UUID

from pullback_service.incidents.changes import Change
from pullback_service.incidents.payload import facts_in
from pullback_service.incidents.queries import Detail, NamedChange, NamedCommit
from pullback_service.models.incidents import Incident
from pullback_service.notifications.events import tidied
from pullback_service.notifications.message import Message, Notice
from pullback_service.notifications.rendering import webhook_body

PAGE = Path(__file__).parents[3] / "docs" / "notifications.md"
BLOCK = re.compile(r"(?<=```json\n).*?(?=\n```)", re.DOTALL)


def sample():
    """A gradient that got slower in two sizes of a workload, with one array more."""
    reference = NamedCommit(1, "5d02b86a5" + "0" * 31, "Add a test", "Ada", None)
    commit = NamedCommit(2, "3f2a91c07" + "0" * 31, "Unfuse the gate", "Ada", reference.sha)
    time = Change(
        *(1, 1, 1, "native", "step", True, "paired", "claimed", 1, 2),
        log_ratio=log(1.041), low=log(1.036), high=log(1.047), n=40, before=1e-3, after=1.041e-3,
    )  # fmt: skip
    count = time._replace(
        series_id=2, evidence="exact", log_ratio=log(4 / 3), low=None, high=None, n=None, before=3.0, after=4.0
    )
    changes = [
        NamedChange(change, "lstm", f"lstm[n={size},f4,cpu]", "cpu", "epyc-a", metric, unit, "smaller", reference, commit, None)
        for size in (100, 200)
        for change, metric, unit in ((time, "time", "s"), (count, "array_allocs", "1"))
    ]  # fmt: skip
    incident = Incident(id=7, project_id=1, kind="worse", state="confirmed", seen=False, asked=1)
    return Detail(incident, "demo", reference, commit, None, changes, None)


def test_the_body_that_the_documentation_shows_is_what_a_webhook_gets(renew_golden):
    facts = tidied(facts_in(sample(), is_measured_here=True) | {"severity": "worse"})
    told = Notice("confirmed", "incident 7, event 31", facts, datetime(2026, 2, 1, 12, tzinfo=UTC))
    id_ = UUID("0b7e6a52-5d3c-4f5f-9d6e-3f1f6f2b1101")
    message = Message(id_, "team", "webhook", "https://hooks.example", "key", "demo", (told,))
    body = json.loads(webhook_body(message, "https://pullback.example"))
    page = PAGE.read_text()
    shown = json.dumps(body, indent=2, ensure_ascii=False)
    if renew_golden:
        PAGE.write_text(BLOCK.sub(lambda _: shown, page, count=1))
        page = PAGE.read_text()
    assert json.loads(BLOCK.search(page)[0]) == body, "renew it: pytest --renew-golden"
