"""The machine a run happens on: what it is, and whether it is quiet enough to be believed."""

from pullback_runners.machine.facts import describe_machine
from pullback_runners.machine.preflight import Preflight, cpu_to_pin, judge_preflight, take_preflight

__all__ = ["Preflight", "cpu_to_pin", "describe_machine", "judge_preflight", "take_preflight"]
