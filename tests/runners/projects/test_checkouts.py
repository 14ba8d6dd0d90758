from pathlib import Path

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


def test_links_that_lead_out_together_are_left_out_and_those_in_a_circle_are_not_followed(repository, tmp_path):
    (repository.folder / "deep/er").mkdir(parents=True)
    for name, leads_to in {
        "deep/er/a": "b/../../secret", "deep/er/b": "../..", "round": "about", "about": "round", "through": "round/on",
    }.items():  # fmt: skip
        (repository.folder / name).symlink_to(leads_to)
    (tmp_path / "secret").write_text("")
    sha = repository.commit("first")

    for target, write in (
        (tmp_path / "a/written", lambda to: write_commit(repository.folder, sha, to)),
        (tmp_path / "b/copied", lambda to: copy_files(repository.folder, to)),
    ):
        target.mkdir(parents=True)
        write(target)
        assert (target / "deep/er/b").resolve() == target
        assert not (target / "deep/er/a").is_symlink()
        assert (target / "round").readlink() == Path("about")


@pytest.mark.parametrize("name", ["../outside", "{top}/outside", "src/.git/config"])
def test_a_commit_with_a_name_that_git_would_not_check_out_is_refused(repository, tmp_path, name):
    name = name.format(top=tmp_path)
    blob = repository.git("hash-object", "-w", "src/waves.py")
    raw = b"100644 " + name.encode() + b"\0" + bytes.fromhex(blob)
    (tmp_path / "tree").write_bytes(raw)
    tree = repository.git("hash-object", "-t", "tree", "-w", "--literally", str(tmp_path / "tree"))
    sha = repository.git("commit-tree", tree, "-m", "first")
    (tmp_path / "files").mkdir()
    with pytest.raises(BuildError, match=f"{sha[:10]} names a file {name}, which git does not check out"):
        write_commit(repository.folder, sha, tmp_path / "files")
    assert not (tmp_path / "outside").exists()


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
