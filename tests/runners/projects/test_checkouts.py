import pytest

from pullback_runners.errors import BuildError
from pullback_runners.projects.checkouts import copy_files, write_commit


def test_a_commit_is_written_as_it_is_stored(repository, tmp_path):
    repository.write(".gitattributes", "*.py filter=shout\nbench export-ignore\n")
    repository.git("config", "filter.shout.smudge", f"touch {tmp_path}/smudged; cat")
    repository.write("tool.sh", "#!/bin/sh\n")
    (repository.folder / "tool.sh").chmod(0o755)
    (repository.folder / "inside").symlink_to("src/waves.py")
    (repository.folder / "outside").symlink_to("/etc/passwd")
    sha = repository.commit("first")

    target = tmp_path / "files"
    target.mkdir()
    write_commit(repository.folder, sha, target)

    assert (target / "src/waves.py").read_text() == (repository.folder / "src/waves.py").read_text()
    assert (target / "bench/total.py").exists()
    assert (target / "inside").resolve() == target / "src/waves.py"
    assert not (target / "outside").is_symlink()
    assert (target / "tool.sh").stat().st_mode & 0o111
    assert not (tmp_path / "smudged").exists()


def test_a_commit_that_is_not_whole_is_one_sentence(repository, tmp_path):
    sha = repository.commit("first")
    blob = repository.git("rev-parse", f"{sha}:src/waves.py")
    (repository.folder / ".git/objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(BuildError, match=r"is not whole in .*: it lacks src/waves.py; git fetch --refetch brings it"):
        write_commit(repository.folder, sha, tmp_path)


def test_files_as_they_are_are_those_that_git_would_commit(repository, tmp_path):
    repository.write(".gitignore", "ignored\n")
    repository.commit("first")
    repository.slow_down(7)
    repository.write("new.py", "")
    repository.write("ignored", "")
    copy_files(repository.folder, tmp_path / "copy")
    assert "range(7)" in (tmp_path / "copy/src/waves.py").read_text()
    assert (tmp_path / "copy/new.py").exists()
    assert not (tmp_path / "copy/ignored").exists()
