"""Channels of a project, doubles for what they lead to, and a worker that sends what waits."""

from ipaddress import ip_network

import pytest
from sqlalchemy import text, update
from tests.service.notifications.doubles import Hooks, Mailbox

from pullback_service import worker
from pullback_service.ids import ProjectId
from pullback_service.models import Channel, Project
from pullback_service.notifications import outbox
from pullback_service.notifications.delivery import send_messages
from pullback_service.notifications.events import USUAL
from pullback_service.notifications.transport import DeliverySettings

LOOPBACK = (ip_network("127.0.0.0/8"),)
FACTS = {"title": "Slower", "sentence": "It takes longer.", "url": "/projects/demo/commits/a", "severity": "worse"}


@pytest.fixture
def hooks():
    server = Hooks()
    yield server
    server.close()


@pytest.fixture
def mailbox():
    server = Mailbox()
    yield server
    server.close()


class Outbox:
    """The outbox of the project demo, from both ends."""

    def __init__(self, database, database_url, hooks):
        self.database, self._url, self._hooks = database, database_url, hooks
        self.outside = DeliverySettings(networks=LOOPBACK, public_url="https://pullback.example")

    async def make_project(self, name="demo"):
        async with self.database.writing.begin() as session:
            project = Project(name=name)
            session.add(project)
            await session.flush()
            return ProjectId(project.id)

    async def make_channel(self, project_id, name="team", **more):
        told = {"kind": "webhook", "target": self._hooks.url(f"/{name}"), "secret": "s", "events": None, **more}
        if told["kind"] != "webhook":
            told["secret"] = None
        async with self.database.writing.begin() as session:
            channel = Channel(project_id=project_id, name=name, created_by="test", **told)
            session.add(channel)
            await session.flush()
            return channel.id

    async def tell(self, project_id, key="k", event="confirmed", usual=USUAL, **facts):
        async with self.database.writing.begin() as session:
            return await outbox.enqueue(session, project_id, event, key, {**FACTS, **facts}, usual=usual)

    async def work(self, *, as_a_worker=False):
        """Send what waits, or may be tried again by the clock."""
        if as_a_worker:
            async with self.database.writing.begin() as session:
                await outbox.sweep(session)
            await worker.run_once(self._url, outside=self.outside)
            return
        for (channel_id,) in await self.rows("SELECT id FROM channel ORDER BY id"):
            await send_messages(self.database, channel_id, self.outside)

    async def pass_time(self, hours):
        """Let everything have happened so much earlier."""
        async with self.database.writing.begin() as session:
            for table, columns in (
                ("channel", ("failing_since", "retry_at", "limited_until")),
                ("delivery", ("created_at", "attempted_at", "sent_at")),
            ):
                moved = ", ".join(f"{column} = {column} - make_interval(secs => :s)" for column in columns)
                await session.execute(
                    text(f"UPDATE {table} SET {moved}"),  # noqa: S608 - our own words
                    {"s": hours * 3600},
                )

    async def retry_now(self):
        """Let the pause after a failure be over."""
        async with self.database.writing.begin() as session:
            await session.execute(update(Channel).values(retry_at=None))
        await self.work()

    async def rows(self, sql):
        async with self.database.reading() as session:
            return [tuple(row) for row in await session.execute(text(sql))]


@pytest.fixture
async def box(database, database_url, hooks):
    return Outbox(database, database_url, hooks)


@pytest.fixture
async def project_id(box):
    return await box.make_project()
