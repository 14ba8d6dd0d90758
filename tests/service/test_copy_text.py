"""Values as COPY reads them."""

import pytest

from pullback_service.copy_text import LINES_AT_ONCE, in_pieces, number, text


@pytest.mark.parametrize("count", [0, 1, LINES_AT_ONCE, LINES_AT_ONCE + 1])
def test_pieces_are_all_lines_and_few_at_once(count):
    pieces = list(in_pieces(b"%d\n" % each for each in range(count)))
    assert b"".join(pieces).splitlines() == [b"%d" % each for each in range(count)]
    assert all(piece.count(b"\n") <= LINES_AT_ONCE for piece in pieces)


def test_what_means_something_to_copy_is_escaped():
    assert text("a\tb\\N\r\nc") == b"a\\tb\\\\N\\r\\nc"
    assert (text(None), number(None), number(0.1)) == (b"\\N", b"\\N", b"0.1")
