"""Groups until the question is answered: a fixed number first, more while the answer is ambiguous."""

import time
from collections.abc import Callable, Sequence

from pullback_runners.measurement.lockstep import Group, Lineup, run_group
from pullback_runners.measurement.member import Member
from pullback_runners.measurement.worker_process import Surroundings
from pullback_runners.suites import Suite
from pullback_runners.workloads import Case


def collect_groups(
    groups: list[Group],
    case: Case,
    members: Callable[[], Sequence[Member]],
    suite: Suite,
    surroundings: Surroundings,
    *,
    is_ambiguous: Callable[[], bool],
    tell: Callable[[int, int], None],
    most_s: float | None = None,
) -> None:
    """Add groups to `groups` until the suite is satisfied, or no member is left to be timed.

    What has been measured is in `groups` at any moment, so that an interruption loses one group at most. `tell` gets the
    number of the group that begins and how many are wanted by then. With `most_s` no group is begun that would end later,
    once there are as many as the suite wants at least. While a group takes its turns the processes of the next one start.
    """
    wanted = suite.groups
    began = time.monotonic()
    coming: Lineup | None = None
    try:
        while len(groups) < wanted and members():
            tell(len(groups) + 1, wanted)
            lineup, coming = coming or Lineup(case, members(), surroundings), None
            if len(groups) + 1 < wanted:
                coming = Lineup(case, members(), surroundings)
            groups.append(run_group(lineup, suite.slices))
            if len(groups) == wanted and is_ambiguous():
                wanted = min(wanted + suite.more_groups, suite.most_groups)
            passed_s = time.monotonic() - began
            if (
                most_s is not None
                and len(groups) >= suite.fewest_groups
                and passed_s * (len(groups) + 1) / len(groups) > most_s
            ):
                break
    finally:
        if coming is not None:
            coming.end()
