import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from pullback_runners.errors import BuildError
from pullback_runners.projects import folder_cache
from pullback_runners.projects.folder_cache import kept_folder, make_no_more


def test_a_folder_is_made_once_and_again_where_it_was_not_finished(tmp_path):
    made = []

    def make(folder):
        made.append(folder.name)
        (folder / "file").write_bytes(bytes(1000))
        if len(made) == 1:
            raise BuildError("no")

    with pytest.raises(BuildError):
        kept_folder(tmp_path / "one", make, 10_000)
    assert not (tmp_path / "one").exists()
    for _ in range(2):
        assert (kept_folder(tmp_path / "one", make, 10_000) / "file").exists()
    assert made == ["one", "one"]


def test_what_was_not_used_for_longest_goes_unless_a_process_uses_it(tmp_path):
    script = (
        "import sys; from pathlib import Path; from pullback_runners.projects.folder_cache import kept_folder\n"
        f"for n in sys.argv[1:]: kept_folder(Path({str(tmp_path)!r}) / n, lambda f: (f / 'x').write_bytes(bytes(1000)), 2500)"
    )

    def other_process(*names):
        subprocess.run([sys.executable, "-c", script, *names], check=True)

    other_process("old", "older")
    os.utime(tmp_path / "older.bytes", (0, 0))
    kept_folder(tmp_path / "old", pytest.fail, 2500)
    os.utime(tmp_path / "old.bytes", (1, 1))
    other_process("new", "newer")
    # `old` is used by this process, `new` by the other one when it made `newer`.
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"old", "new", "newer"}


def test_a_size_that_is_no_number_counts_for_nothing(tmp_path):
    (tmp_path / "other.bytes").write_bytes(b"\xff{")
    assert kept_folder(tmp_path / "one", lambda folder: (folder / "x").touch(), 10_000).is_dir()


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(
        BuildError, match="^the cache .*file cannot be written .*; free some space, or set XDG_CACHE_HOME"
    ):
        kept_folder(tmp_path / "file" / "one", lambda _: None, 1)


@pytest.mark.parametrize("made", [True, False], ids=["uses", "could not make"])
def test_a_folder_that_another_process_has_asked_for_is_had_without_waiting_for_its_end(tmp_path, made):
    script = (
        "import contextlib, sys; from pathlib import Path; from pullback_runners.projects.folder_cache import kept_folder\n"
        "with contextlib.suppress(ZeroDivisionError):\n"
        f"    kept_folder(Path({str(tmp_path / 'one')!r}), lambda f: int(sys.argv[1]) / int(sys.argv[2]), 2500)\n"
        "print(flush=True); sys.stdin.read()"
    )
    start = [sys.executable, "-c", script, "1"]
    with subprocess.Popen([*start, str(int(made))], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        try:
            assert other.stdout.readline() == b"\n"
            again = subprocess.run([*start, "1"], stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=60)
            assert again.stdout == b"\n"
        finally:
            other.stdin.close()


def test_what_somebody_else_removed_is_made_again(tmp_path):
    made = []
    for _ in range(2):
        place = kept_folder(tmp_path / "one", lambda folder: made.append(folder), 10_000)
        place.rmdir()
    assert len(made) == 2


def test_what_another_process_removes_meanwhile_is_no_failure(tmp_path, monkeypatch):
    for name in ("old", "older"):
        (tmp_path / name).mkdir()
        (tmp_path / f"{name}.bytes").write_text("1000")
    read_text = Path.read_text

    def racing(path, **how):
        (tmp_path / "old.bytes").unlink(missing_ok=True)
        return read_text(path, **how)

    monkeypatch.setattr(Path, "read_text", racing)
    kept_folder(tmp_path / "new", lambda _: None, 1)
    assert (tmp_path / "new").is_dir()


def test_what_a_killed_process_has_started_is_ended(tmp_path):
    installer = (
        "import os, sys, time; from pathlib import Path; folder, beside = map(Path, sys.argv[1:])\n"
        "(beside / 'pid').write_text(str(os.getpid())); (beside / 'pid').rename(beside / 'started'); time.sleep(60)"
    )
    script = (
        "import sys; from pathlib import Path\n"
        "from pullback_runners.projects.environments import run_logged\n"
        "from pullback_runners.projects.folder_cache import kept_folder\n"
        "installer, beside = sys.argv[1:]\n"
        "def make(folder): run_logged([sys.executable, '-c', installer, str(folder), beside], folder, 'it')\n"
        "kept_folder(Path(beside) / 'one', make, 2500)"
    )
    with subprocess.Popen([sys.executable, "-c", script, installer, tmp_path]) as killed:
        _wait_for(tmp_path / "started")
        killed.kill()
    with suppress(psutil.NoSuchProcess):
        psutil.Process(int((tmp_path / "started").read_text())).wait(30)
    place = kept_folder(tmp_path / "one", lambda folder: (folder / "whole").touch(), 2500)
    assert [path.name for path in place.iterdir()] == ["whole"]


def _wait_for(file):
    while not file.exists():
        time.sleep(0.05)


def test_a_process_that_is_to_make_no_more_takes_what_is_there_and_says_what_is_not(tmp_path, monkeypatch):
    monkeypatch.setattr(folder_cache, "_only_kept", False)
    kept_folder(tmp_path / "one", lambda _: None, 1000)
    make_no_more()
    assert kept_folder(tmp_path / "one", pytest.fail, 1000).is_dir()
    with pytest.raises(BuildError, match=rf"no earlier step has made {tmp_path.name}/two"):
        kept_folder(tmp_path / "two", pytest.fail, 1000)
