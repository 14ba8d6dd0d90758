"""The machine of a run: its description, its state, and the quality that this gives to a run."""

from pullback_runners.machine.activity import Activity, ActivityWatch
from pullback_runners.machine.facts import describe_machine
from pullback_runners.machine.host import VARIABLE as HOST_VARIABLE
from pullback_runners.machine.preflight import Preflight, cpu_to_pin, take_preflight
from pullback_runners.machine.quality import judge_quality

__all__ = [
    "HOST_VARIABLE",
    "Activity",
    "ActivityWatch",
    "Preflight",
    "cpu_to_pin",
    "describe_machine",
    "judge_quality",
    "take_preflight",
]
