"""The noise of machines, remembered between requests.

It is made of some ten thousand ratios a machine, and changes when another A/A comparison arrives, twice a day, and with
the day, when the window moves on. A page about twenty machines would read and sort them all anew each time: a second.
What is remembered holds until one of the two is another; a project that is deleted takes its share away by the next day.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.caller import caller_of
from pullback_service.ids import MachineId, ProjectId
from pullback_service.machines.noise import Noise, noise_in
from pullback_service.machines.queries import comparisons_with_itself, newest_self_comparisons
from pullback_service.request_work import in_thread

MOST_REMEMBERED = 500


@dataclass(frozen=True, slots=True)
class WindowNoise:
    """The noise of a machine in one metric; `truncated` where the window held more comparisons than are looked at."""

    noise: Noise
    truncated: bool


_Key = tuple[MachineId, int, str, str | None, frozenset[ProjectId] | None]
_Stamp = tuple[int, date]


class NoiseMemory:
    """A cache of noise in one process. Callers who see other projects see other noise."""

    def __init__(self) -> None:
        self._known: OrderedDict[_Key, tuple[_Stamp, WindowNoise]] = OrderedDict()

    async def of(
        self,
        session: AsyncSession,
        machine_ids: Sequence[MachineId],
        *,
        days: int,
        metric: str = "time",
        device: str | None = None,
    ) -> Mapping[MachineId, WindowNoise]:
        """The noise of machines on one of their devices, or on all; those without any A/A comparison included."""
        newest = await newest_self_comparisons(session, machine_ids)
        caller = caller_of(session)
        own = None if caller is None else caller.projects
        results = {}
        for machine_id in machine_ids:
            key = (machine_id, days, metric, device, own)
            stamp = (newest.get(machine_id, 0), datetime.now(UTC).date())
            known = self._known.pop(key, None)
            if known is None or known[0] != stamp:
                noise = (
                    await _listen(session, machine_id, days=days, metric=metric, device=device)
                    if stamp[0] > 0
                    else WindowNoise(noise_in([]), truncated=False)
                )
                known = (stamp, noise)
            self._known[key] = known  # youngest last
            results[machine_id] = known[1]
        while len(self._known) > MOST_REMEMBERED:
            self._known.popitem(last=False)
        return results


async def _listen(
    session: AsyncSession, machine_id: MachineId, *, days: int, metric: str, device: str | None
) -> WindowNoise:
    result = await comparisons_with_itself(session, machine_id, days=days, metric=metric, device=device)
    return WindowNoise(await in_thread(noise_in, result.comparisons), result.truncated)
