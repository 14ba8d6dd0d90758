"""How often Python looks for reference cycles in a process of the service."""

import gc

# New objects before a look at the young ones, and looks before one at older ones. A report of 10,000 results is about a
# million objects, none of them in a cycle, all alive until it is stored: at Python's own 700 two thirds of the time of
# reading it went into looking at them. 50,000 objects are some 5 MB of garbage at most before they are found.
THRESHOLDS = (50_000, 20, 20)


def collect_seldom() -> None:
    """Set this process up for few large requests of many objects; call it when everything is imported."""
    gc.collect()
    gc.freeze()  # modules and routes stay anyway
    gc.set_threshold(*THRESHOLDS)
