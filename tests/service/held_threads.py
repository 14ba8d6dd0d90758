"""The time that a function keeps all other threads waiting."""

import sys
import time


def longest_call(function, *arguments):
    """The longest processor time of one call into C, which keeps the interpreter, and what the function returns."""
    began, longest = 0.0, 0.0

    def watch(_, event, __):
        nonlocal began, longest
        if event == "c_call":
            began = time.thread_time()
        elif event == "c_return":
            longest = max(longest, time.thread_time() - began)

    sys.setprofile(watch)
    try:
        result = function(*arguments)
    finally:
        sys.setprofile(None)
    return longest, result
