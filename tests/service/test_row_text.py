"""Values as a statement reads them that inserts lines."""

import pytest

from pullback_service.row_text import LINES_AT_ONCE, in_pieces, number, text


@pytest.mark.parametrize("count", [0, 1, LINES_AT_ONCE, LINES_AT_ONCE + 1])
def test_pieces_are_all_lines_and_few_at_once(count):
    pieces = [piece.split("\n") for piece in in_pieces(b"%d" % each for each in range(count))]
    assert [line for piece in pieces for line in piece] == [str(each) for each in range(count)]
    assert all(len(piece) <= LINES_AT_ONCE for piece in pieces)


def test_a_text_ends_neither_its_column_nor_its_line():
    assert text("a\tb\\N\r\nc") == b"a b\\N  c"
    assert (text(None), number(None), number(0.1)) == (b"\r", b"\r", b"0.1")
