"""The time that a function keeps all other threads waiting."""

import sys
import threading
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


def longest_wait(function):
    """The longest processor time in which another thread got no turn while a function ran: calls into C, and garbage looked for."""
    longest, done = 0.0, threading.Event()

    def wait():
        nonlocal longest
        while not done.is_set():
            began = time.process_time()
            time.sleep(0.0005)
            longest = max(longest, time.process_time() - began)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(0.001)
    waiting = threading.Thread(target=wait)
    waiting.start()
    try:
        function()
    finally:
        done.set()
        waiting.join()
        sys.setswitchinterval(interval)
    return longest
