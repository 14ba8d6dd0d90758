"""A report as the event loop sees it while a thread reads it: first its head, then its points as they come."""

import asyncio
from collections.abc import AsyncIterator, Callable

from anyio import to_thread

from pullback_service.reports.gathering import Parts, Watcher
from pullback_service.reports.preparing import PreparedReport
from pullback_service.reports.schemas import ReportHead


class GrowingReport:
    """The `Watcher` of the reading, which begins at once; `prepared` is its end, or raises what is wrong."""

    def __init__(self, read: Callable[[Watcher], PreparedReport]) -> None:
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._begun: tuple[ReportHead, Parts] | None = None
        self._reading = self._loop.create_task(to_thread.run_sync(read, self))
        self._reading.add_done_callback(lambda _: self._news.set())

    def begins(self, head: ReportHead, parts: Parts) -> None:
        """Called by the thread."""
        self._begun = head, parts
        self.goes_on()

    def goes_on(self) -> None:
        """Called by the thread."""
        self._loop.call_soon_threadsafe(self._news.set)

    async def prepared(self) -> PreparedReport:
        """All of it, once it is read."""
        return await asyncio.shield(self._reading)

    async def head(self) -> ReportHead | None:
        """What it says of itself, as soon as that holds; None where that is told at its end only."""
        while self._begun is None and not self._reading.done():
            await self._news_come()
        return None if self._begun is None else self._begun[0]

    async def pieces(self) -> AsyncIterator[Parts]:
        """Points as they come, with their cases, and at the end the cases without points.

        Nothing more comes of a report that does not hold.
        """
        assert self._begun is not None  # noqa: S101 - whoever asks has its head
        parts, taken, is_read = self._begun[1], 0, False
        while not is_read:
            is_read = self._reading.done()
            if is_read:
                self._reading.result()
            points = parts.points[taken:]
            taken += len(points)
            if points:
                yield Parts(
                    cases={point.series.case: parts.cases[point.series.case] for point in points}, points=points
                )
            if not is_read:
                await self._news_come()
        spoken_of = {point.series.case for point in parts.points}
        if without_points := {identity: case for identity, case in parts.cases.items() if identity not in spoken_of}:
            yield Parts(cases=without_points)

    async def _news_come(self) -> None:
        await self._news.wait()
        self._news.clear()
