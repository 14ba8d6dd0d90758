"""When waiting jobs begin, and why they wait."""

import pytest

from pullback_service.jobs.forecast import QueueMachine, WaitingJob, forecast, remaining_s

QUICK, LONG = (1, "quick", "run"), (1, "standard", "run")
CPU = {"device": "cpu"}


def job(number, work=QUICK, **changes):
    return WaitingJob(number, work, changes.pop("requires", {}), **changes)


def bench(machine_id, offers=(CPU,), **changes):
    return QueueMachine(machine_id, f"lab-{machine_id}", tuple(offers), **changes)


def test_one_machine_does_one_job_after_the_other():
    told = forecast([job(1), job(2, LONG), job(3)], [bench(7, free_in_s=30)], {(7, QUICK): 60, (7, LONG): 600})
    assert [told[n].starts_in_s for n in (1, 2, 3)] == [30, 90, 690]
    assert [told[n].takes_s for n in (1, 2, 3)] == [60, 600, 60]
    assert [told[n].ahead for n in (1, 2, 3)] == [0, 1, 2]
    assert {each.machine for each in told.values()} == {"lab-7"}
    assert told[3].why == "2 jobs are before it."


def test_projects_take_turns_and_negative_priorities_come_behind_all():
    other = (2, "quick", "run")
    queue = [
        job(1, priority=9),
        job(2),
        job(3),
        job(4, other),
        job(5, other),
        job(6, (3, "quick", "run"), priority=-100),
    ]
    told = forecast(queue, [bench(7)], {(7, QUICK): 60, (7, other): 100}, {(7, 1): 30.0})
    assert [*told] == sorted(told, key=lambda number: told[number].ahead) == [4, 1, 2, 5, 3, 6]
    assert [told[n].starts_in_s for n in (4, 1, 2, 5, 3, 6)] == [0, 100, 160, 220, 320, 380]


def test_machines_take_what_fits_them_whenever_they_are_free():
    gpu = bench(8, [{"gpu": "h200", "device": "cuda"}], free_in_s=5)
    queue = [job(1), job(2, requires={"device": "cuda"}), job(3, requires=CPU)]
    told = forecast(queue, [bench(7), gpu], {(7, QUICK): 100, (8, QUICK): 10})
    assert (told[1].machine, told[1].starts_in_s) == ("lab-7", 0)
    assert (told[2].machine, told[2].starts_in_s) == ("lab-8", 5)
    assert (told[3].machine, told[3].starts_in_s) == ("lab-7", 100)


def test_jobs_come_in_the_order_in_which_they_are_taken_and_last_what_nobody_can_take():
    queue = [
        job(1, requires={"gpu": "h200"}),
        job(2, LONG),
        job(3),
        job(4, pauses_s=30),
        job(5, machine_id=8),
        job(6, machine_id=8),
    ]
    told = forecast(queue, [bench(7), bench(8)], {(8, QUICK): 10})
    assert [(number, each.starts_in_s) for number, each in told.items()] == [
        (2, 0),
        (3, 0),
        (5, 10),
        (6, 20),
        (4, 30),
        (1, None),
    ]


def test_what_is_not_known_is_not_guessed():
    told = forecast([job(1, LONG), job(2)], [bench(7)], {(7, QUICK): 60})
    assert (told[1].starts_in_s, told[1].takes_s) == (0, None)
    assert (told[2].starts_in_s, told[2].takes_s) == (None, 60)
    busy = forecast([job(1)], [bench(7, free_in_s=None)], {(7, QUICK): 60})
    assert (busy[1].starts_in_s, busy[1].why) == (None, "Next in the queue.")


@pytest.mark.parametrize(
    ("wanted", "benches", "reason", "words"),
    [
        (job(1, trusted=False, approved=False), [bench(7)], "approval", "administrator"),
        (job(1), [], "nobody", "start one"),
        (job(1, machine_id=9), [bench(7)], "nobody", "the machine that it requires"),
        (job(1, machine_id=7), [bench(7, (), away=(CPU,))], "silent", "Only lab-7 may take it, and it is silent."),
        (job(1), [bench(7, (), away=(CPU,)), bench(8, (), away=(CPU,))], "silent", "lab-7, lab-8"),
        (job(1, requires={"gpu": "h200"}), [bench(7)], "labels", "gpu=h200"),
        (job(1), [bench(7, [{"device": "cuda"}])], "labels", "requires: device=cpu."),
        (job(1, requires={"gpu": "h200"}, machine_id=7), [bench(7)], "labels", "lack the labels device=cpu, gpu=h200"),
        (job(1, trusted=False), [bench(7)], "trust", "accepts jobs of forks"),
        (
            job(1, trusted=False),
            [bench(7, accepts_untrusted=True)],
            "trust",
            "No suitable agent has a sandbox, which jobs of forks need",
        ),
        (
            job(1, trusted=False, machine_id=7),
            [bench(7, accepts_untrusted=True)],
            "trust",
            "Only lab-7 may take it, and its agent has no sandbox",
        ),
        (job(1), [bench(7, (), refusal="the disk is full")], "refused", "lab-7 takes no jobs: the disk is full"),
    ],
)
def test_a_job_that_nobody_will_take_says_why(wanted, benches, reason, words):
    told = forecast([wanted], benches, {})[1]
    assert (told.reason, told.starts_in_s) == (reason, None)
    assert words in told.why


def test_an_approved_job_of_a_fork_goes_where_such_are_accepted():
    told = forecast(
        [job(1, trusted=False)],
        [bench(7), bench(8, [{**CPU, "isolation": "sandbox"}], accepts_untrusted=True)],
        {(8, QUICK): 1},
    )
    assert (told[1].reason, told[1].machine) == ("turn", "lab-8")


def test_a_running_job_ends_when_its_like_did_and_after_that_by_its_own_progress():
    assert remaining_s(elapsed_s=40, takes_s=60, done=1, total=100) == 20
    assert remaining_s(elapsed_s=90, takes_s=60, done=30, total=40) == 30
    assert remaining_s(elapsed_s=90, takes_s=60) is None
    assert remaining_s(elapsed_s=90, takes_s=None, done=0, total=40) is None


def test_five_hundred_jobs_on_twenty_machines_are_all_told():
    queue = [job(n, QUICK if n % 3 else LONG) for n in range(500)]
    benches = [bench(n) for n in range(20)]
    durations = {(n, work): seconds for n in range(20) for work, seconds in ((QUICK, 60 + n), (LONG, 600))}
    told = forecast(queue, benches, durations)
    starts = [told[n].starts_in_s for n in range(500)]
    assert starts == sorted(starts)
    assert starts[19] == 0 < starts[20]
