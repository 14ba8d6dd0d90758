"""Where a report may be written to."""

import json
import os

from pullback_runners.report.pyperf_file import KEY, write_report


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_report({"cases": []}, pipe)
        said = os.read(reader, 65536)
    finally:
        os.close(reader)
    assert json.loads(said)[KEY] == {"cases": []}
    assert pipe.is_fifo()


def test_a_link_stays_a_link_to_the_new_report(tmp_path):
    (tmp_path / "link.json").symlink_to(tmp_path / "report.json")
    write_report({"cases": []}, tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert json.loads((tmp_path / "report.json").read_text())[KEY] == {"cases": []}
