"""Storage of uploads: those that come while another is being stored wait for it, and are then stored together.

A transaction costs about the same for one small report as for ten: looking up what is there, the commit's place, the
audit log, the chore that follows, and waiting for the disk. So nobody waits who comes alone, and the more come at once,
the less each of them costs. An answer is sent when the transaction is stored, as it is for an upload alone.
"""

import asyncio
from collections.abc import Sequence
from contextvars import Context
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from pullback_service.audit.trail import Line, write_lines
from pullback_service.caller import Caller, database_of
from pullback_service.database import AWAY, Database
from pullback_service.reports.storage import StorageResult, Upload, keep_together, try_out
from pullback_service.request_work import RequestWork, current, in_thread, serve

MOST_TOGETHER = 32
LARGEST_TOGETHER_BYTES = 64 * 1024
"""The largest report that is stored together with others: a larger one would delay them."""
APART_BYTES = 1024 * 1024
"""A larger report is stored by an event loop of its own: rows are made of it for seconds, in which nobody else would be answered."""
MOST_LONG = 2
"""The most long bodies at once: more would find no idle processor, and would take the connections of all others."""


class _Lane(NamedTuple):
    """Uploads that may be stored together: of one project by one caller, whose session sees what that caller may see."""

    project: str
    caller: Caller


@dataclass(frozen=True, slots=True, eq=False)
class _WaitingUpload:
    upload: Upload
    line: Line
    kept: asyncio.Future[StorageResult]
    work: RequestWork | None


class UploadQueue:
    """The uploads of one process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lanes: dict[_Lane, list[_WaitingUpload]] = {}
        self._storing: set[asyncio.Task[None]] = set()
        self.long = asyncio.Semaphore(MOST_LONG)
        """The turns of those who bring a long body: whoever has none yet holds no connection, and is not read."""

    async def keep(self, upload: Upload, line: Line) -> StorageResult:
        """Store a report, or find that it is stored; with a line in the audit log where it is new."""
        if upload.prepared.body_bytes > LARGEST_TOGETHER_BYTES:
            return (await self._store(line.caller, [(upload, line)]))[0]
        waiting = _WaitingUpload(upload, line, asyncio.get_running_loop().create_future(), current())
        lane = _Lane(upload.head.project, line.caller)
        if lane in self._lanes:
            self._lanes[lane].append(waiting)
        else:
            self._lanes[lane] = [waiting]
            # In a context of its own: what is logged on the way is no single request's.
            task = asyncio.get_running_loop().create_task(self._work_off(lane), context=Context())
            self._storing.add(task)
            task.add_done_callback(self._storing.discard)
        return await waiting.kept

    async def try_out(self, caller: Caller, upload: Upload) -> StorageResult:
        """The effect of keeping a report, with every check of the database, undone."""
        async with database_of(self._database, caller).writing.begin() as session:
            return await try_out(session, upload)

    async def close(self) -> None:
        """Wait until what was begun is stored."""
        await asyncio.gather(*self._storing)

    async def _work_off(self, lane: _Lane) -> None:
        """Store until nobody waits."""
        waiting = self._lanes[lane]
        try:
            while waiting:
                together = _those_to_store_together(waiting)
                await self._settle(lane.caller, together)
                for one in together:
                    waiting.remove(one)
        finally:
            del self._lanes[lane]
            for one in waiting:  # nobody, unless this process is being ended
                one.kept.cancel()

    async def _settle(self, caller: Caller, together: Sequence[_WaitingUpload]) -> None:
        """Store uploads and tell those who wait for them; where one of them is refused, each is stored for itself."""
        try:
            stored = await self._share(caller, together)
        except Exception as error:  # noqa: BLE001 - whoever waits is told whatever it is
            if len(together) > 1 and not isinstance(error, AWAY):
                for waiting in together:
                    await self._settle(caller, [waiting])
                return
            for waiting in together:
                if not waiting.kept.done():
                    waiting.kept.set_exception(error)
        else:
            for waiting, result in zip(together, stored, strict=True):
                if not waiting.kept.done():  # whoever waited may have been cut off
                    waiting.kept.set_result(result)

    async def _share(self, caller: Caller, together: Sequence[_WaitingUpload]) -> list[StorageResult]:
        """Store uploads, and divide the work among those who wait."""
        shared = RequestWork()
        try:
            return await serve(shared, self._store(caller, [(waiting.upload, waiting.line) for waiting in together]))
        finally:
            for waiting in together:
                if waiting.work is not None:
                    waiting.work.spend(shared.seconds / len(together))

    async def _store(self, caller: Caller, uploads: Sequence[tuple[Upload, Line]]) -> list[StorageResult]:
        if uploads[0][0].prepared.body_bytes > APART_BYTES:
            return await in_thread(self._store_apart, caller, uploads)
        return await _stored(self._database, caller, uploads)

    def _store_apart(self, caller: Caller, uploads: Sequence[tuple[Upload, Line]]) -> list[StorageResult]:
        """Store by an event loop of this thread, with a connection of its own."""

        async def store() -> list[StorageResult]:
            database = Database(self._database.url, pool_size=1)
            try:
                return await _stored(database, caller, uploads)
            finally:
                await database.close()

        return asyncio.run(store())


async def _stored(database: Database, caller: Caller, uploads: Sequence[tuple[Upload, Line]]) -> list[StorageResult]:
    # Of a small upload planning its statements for its values is half of what Postgres does (docs/decisions/0158).
    is_small = uploads[0][0].prepared.body_bytes <= LARGEST_TOGETHER_BYTES
    async with database_of(database, caller).writing.begin(plan_once=is_small) as session:
        stored = await keep_together(session, [upload for upload, _ in uploads])
        lines = [line for (_, line), result in zip(uploads, stored, strict=True) if result.created]
        if lines:
            await write_lines(session, lines)
    return stored


def _those_to_store_together(waiting: Sequence[_WaitingUpload]) -> list[_WaitingUpload]:
    """The first of them, without those who repeat a report or a key: they find it stored when their turn comes.

    What is stored together comes at one time, so of a machine they all tell the same (`machines/software.py`).
    """
    ids, keys, together = set(), set(), []
    facts: dict[tuple[str, str | None], object] = {}
    for one in islice(waiting, MOST_TOGETHER):
        report_id, key, machine = one.upload.head.id, one.upload.key, one.upload.head.machine
        if report_id not in ids and key not in keys:
            if facts.setdefault((machine.fingerprint, machine.host), machine.facts) != machine.facts:
                continue
            together.append(one)
        ids.add(report_id)
        keys.add(key)
    return together
