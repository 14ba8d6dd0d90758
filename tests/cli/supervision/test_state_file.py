import os
import subprocess
import sys

import pytest

from pullback_cli.supervision.state_file import UpState, find_up, forget_state, only_up_on, read_state, write_state
from pullback_cli.usage_errors import RefusalError
from pullback_runners.agent.process_mark import ProcessMark


def test_what_was_written_is_read_back(tmp_path):
    state = UpState(ProcessMark.of(os.getpid()), "http://127.0.0.1:1", embedded_postgres=True)
    state = state.with_child("api", ProcessMark(2, 3.0))
    write_state(tmp_path, state)
    assert read_state(tmp_path) == state
    forget_state(tmp_path)
    assert read_state(tmp_path) is None


@pytest.mark.parametrize("content", ["", "{", "{}", "[]", "5", '{"up": 1}', '{"up": {"pid": 1}}'])
def test_a_damaged_file_reads_as_nothing(tmp_path, content):
    (tmp_path / "up.json").write_text(content)
    assert read_state(tmp_path) is None


def test_two_on_one_folder_are_refused_with_the_address_of_the_first(tmp_path):
    write_state(tmp_path, UpState(ProcessMark.of(os.getpid()), "http://127.0.0.1:4711", embedded_postgres=True))
    program = (
        "import sys; from pathlib import Path; from pullback_cli.supervision.state_file import only_up_on\n"
        "with only_up_on(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(RefusalError, match="4711.*pullback down"), only_up_on(tmp_path):
            raise AssertionError
        assert find_up(tmp_path).pid == holder.pid
        (tmp_path / "up.json").write_text("{")
        assert find_up(tmp_path).process().pid == holder.pid  # by its lock
        holder.stdin.close()
        holder.wait()
    assert find_up(tmp_path) is None
    with only_up_on(tmp_path):
        pass
    assert find_up(tmp_path / "nowhere") is None


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RefusalError, match="--data"), only_up_on(tmp_path / "file" / "data"):
        raise AssertionError


def test_an_up_that_is_refused_leaves_nothing_behind(tmp_path):
    with pytest.raises(RefusalError, match="in use"), only_up_on(tmp_path / "new"):
        raise RefusalError("the port is in use")
    assert not (tmp_path / "new").exists()
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    with pytest.raises(RefusalError, match="in use"), only_up_on(tmp_path / "kept"):
        raise RefusalError("the port is in use")
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["file"]
