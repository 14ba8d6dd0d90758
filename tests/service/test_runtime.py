"""Objects of an application, found by their types."""

import pytest

from pullback_service.request_turns import FileTurns, ReadingTurns
from pullback_service.runtime import Runtime


def test_an_object_is_found_by_its_own_type():
    reading, files = ReadingTurns(2), FileTurns()
    runtime = Runtime(files, reading)
    assert (runtime.get(ReadingTurns), runtime.get(FileTurns)) == (reading, files)


def test_a_second_object_of_a_type_is_refused():
    with pytest.raises(AssertionError):
        Runtime(ReadingTurns(1), ReadingTurns(2))
