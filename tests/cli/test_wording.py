"""What the service refuses, in the words of the command line."""

import pytest

from pullback_cli.exporting.download import DownloadSize
from pullback_cli.wording import in_options


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("query.machine is needed: add machine=NAME, such as machine=ci.", "--machine is needed: add --machine NAME, such as --machine ci."),
        ("commit them, or add allow_dirty=true to keep it", "commit them, or add --allow-dirty to keep it"),
        ("make another one with force=true.", "make another one with --force."),
        ("There is no job 9: GET /api/v1/jobs lists them.", "There is no job 9: `pullback job list` lists them."),
        ("must be like unit=ns or unit=latency:ns", "must be like --unit ns or --unit latency:ns"),
        ("query.state[0]: Give 'suspected'", "--state: Give 'suspected'"),
        ("query.stateful: Give", "query.stateful: Give"),
        ("POST /api/v1/reports?project=a&commit=b", "POST /api/v1/reports?project=a&commit=b"),
        ("no case fill[machine=4,unit=2]", "no case fill[machine=4,unit=2]"),
        ("GET /api/v1/machines lists them", "GET /api/v1/machines lists them"),
    ],
)  # fmt: skip
def test_parameters_become_options_and_addresses_stay(said, shown):
    assert in_options(said) == shown


def test_rows_are_counted_over_pieces_and_line_feeds_in_texts_are_none():
    written = DownloadSize()
    for piece in (b"name,title\r\na,", b'"two\nli', b'nes ""quoted""\n"\r', b"\nb,c\r\n"):
        written.add(piece)
    assert (written.lines, written.size) == (3, 44)
