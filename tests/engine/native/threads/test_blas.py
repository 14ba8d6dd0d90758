import ctypes
import threading

import pytest

from pullback.backends.native.linking import load
from pullback.backends.native.threads import blas


class Blas:
    """A copy of the module over a library whose number of threads is a number here."""

    def __init__(self):
        self.threads = 3
        self._loaded = load(blas.TEXT)
        get_type, set_type = ctypes.CFUNCTYPE(ctypes.c_int), ctypes.CFUNCTYPE(None, ctypes.c_int)
        self._library = (get_type(lambda: self.threads), set_type(lambda threads: setattr(self, "threads", threads)))
        bind = ctypes.CFUNCTYPE(None, get_type, set_type)(self._loaded.address("blas_bind"))
        self.enter, self.leave, self.forget = (
            ctypes.CFUNCTYPE(None)(self._loaded.address(name))
            for name in ("pullback_blas_enter", "pullback_blas_leave", "blas_forget")
        )
        self.bind = lambda: bind(*self._library)


@pytest.fixture
def library():
    library = Blas()
    library.bind()
    return library


def test_it_has_one_thread_inside_and_those_from_before_afterwards(library):
    for threads in (3, 5):
        library.threads = threads
        library.enter()
        assert library.threads == 1
        library.leave()
        assert library.threads == threads


def test_the_last_one_who_leaves_restores(library):
    library.enter()
    library.enter()
    library.leave()
    assert library.threads == 1
    library.leave()
    assert library.threads == 3


def test_a_limit_of_one_that_others_set_stays(library):
    library.enter()
    library.leave()
    library.threads = 1
    library.enter()
    library.leave()
    assert library.threads == 1


def test_one_who_enters_while_the_last_one_restores_loses_nothing(library):
    library.enter()

    def entered_in_between(threads):
        if threads == 3:  # the one who left is about to restore, and the count is 0 already
            library.bind_as_it_was()
            library.enter()
        library.threads = threads

    in_between = ctypes.CFUNCTYPE(None, ctypes.c_int)(entered_in_between)
    get = library._library[0]
    bind = ctypes.CFUNCTYPE(None, type(get), type(in_between))(library._loaded.address("blas_bind"))
    library.bind_as_it_was = library.bind
    bind(get, in_between)
    library.leave()
    assert library.threads == 3
    library.leave()
    assert library.threads == 3


def test_many_threads_that_enter_and_leave_lose_no_setting(library):
    def work():
        for _ in range(500):
            library.enter()
            library.leave()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert library.threads == 3
    library.enter()
    assert library.threads == 1
    library.leave()
    assert library.threads == 3


def test_in_a_child_nobody_is_inside(library):
    library.enter()
    library.enter()
    library.forget()
    assert library.threads == 3
    library.forget()
    library.enter()
    assert library.threads == 1
    library.leave()
    assert library.threads == 3


def test_another_blas_is_not_told_anything():
    unbound = Blas()
    unbound.enter()
    unbound.leave()
    unbound.forget()
    assert unbound.threads == 3
