"""Groups until the question is answered: fewer if the answer is plain, more while it is ambiguous and there is time."""

import time
from collections import deque
from collections.abc import Callable, Sequence

from pullback_runners.measurement.affinity import off_the_measured_cpu
from pullback_runners.measurement.lockstep import FEWEST_ROUNDS, Group, GroupProcesses, run_group
from pullback_runners.measurement.member import Member
from pullback_runners.measurement.worker_process import WorkerSettings
from pullback_runners.suites import Suite
from pullback_runners.workloads import Case

FEWEST_GROUPS = 2
"""An interval needs so many, and of a case that an interruption cut short so many are worth keeping."""

EARLY_GROUPS = 12
"""Fewest groups after which a plain answer ends a comparison; with fewer the noise floor is not known."""

EARLY_STEP = 2
"""Groups from one early look to the next."""


def collect_groups(
    groups: list[Group],
    case: Case,
    members: Callable[[], Sequence[Member]],
    suite: Suite,
    settings: WorkerSettings,
    *,
    is_ambiguous: Callable[[], bool],
    tell: Callable[[int, int], None],
    deadline: float | None = None,
    is_plain: Callable[[], bool] = lambda: False,
    at_last: Callable[[], None] = lambda: None,
) -> None:
    """Add groups to `groups` until the suite is satisfied, or no member is left to be timed.

    From `EARLY_GROUPS` on, every second group, `is_plain` says whether the answer is plain enough to end before the number
    that the suite wants.

    `members` are those of the next group, by what failed in `groups`. What has been measured is in `groups` at any moment, so that an interruption loses one group at most. `tell` gets the
    number of the group that begins and how many are wanted by then. While a group takes its turns on the CPU the processes of the next
    one start; on a device they would compute there as well. While the last one does, `at_last` may start others. It is called again
    where more groups are wanted then.

    With a `deadline` (by the monotonic clock) the time left is shared among the groups wanted at first, so that a busy
    machine or a slow program makes turns fewer rather than groups. Turns go on while the next group's processes start on other
    CPUs, which takes seconds where they import JAX. No group is begun that would end later, if it takes as long as the longest
    of the last three; and one that takes longer ends then, and is left out if its turns are too few. Two groups there are in
    any case, since fewer have no interval.
    """
    group_count = suite.groups
    group_s = None if deadline is None else (deadline - time.monotonic()) / suite.groups
    took_s: deque[float] = deque(maxlen=3)
    # The first processes start on all CPUs: nothing takes turns yet.
    coming = GroupProcesses(case, members(), settings) if len(groups) < group_count and members() else None
    try:
        with off_the_measured_cpu(settings.cpu) as apart:

            def start_following() -> "GroupProcesses | None":
                nonlocal coming
                if len(groups) + 1 < group_count:
                    coming = GroupProcesses(case, members(), settings) if settings.device is None else None
                elif apart:
                    at_last()
                return coming if apart else None

            while len(groups) < group_count and members():
                began = time.monotonic()
                if deadline is not None and len(groups) >= FEWEST_GROUPS and began + max(took_s) > deadline:
                    break
                tell(len(groups) + 1, group_count)
                lineup, coming = coming or GroupProcesses(case, members(), settings), None
                ends = deadline if len(groups) >= FEWEST_GROUPS else None
                group = run_group(lineup, suite.slices, group_s, ends, start_following)
                if ends is not None and group.rounds() < min(FEWEST_ROUNDS, suite.slices) and not group.failures:
                    break
                groups.append(group)
                members()  # a member that failed in this group is left out of all that is estimated
                took_s.append(time.monotonic() - began)
                if _is_early_look(len(groups), suite) and is_plain():
                    break
                if len(groups) == group_count and is_ambiguous():
                    group_count = min(group_count + suite.more_groups, suite.most_groups)
    finally:
        if coming is not None:
            coming.end()


def _is_early_look(groups: int, suite: Suite) -> bool:
    return EARLY_GROUPS <= groups < suite.groups and (groups - EARLY_GROUPS) % EARLY_STEP == 0
