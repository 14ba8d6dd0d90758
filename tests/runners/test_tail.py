"""The end of a process's output in a file."""

from pullback_runners.tail import tail_of


def test_of_a_long_file_the_end_is_read_and_of_a_short_one_all(tmp_path):
    written = tmp_path / "errors"
    for before in (b"x" * (1 << 20), b""):
        written.write_bytes(before + b"\nthe last words\n")
        with written.open("rb") as file:
            found = tail_of(file)
        assert found == written.read_bytes()[-(1 << 16) :]
