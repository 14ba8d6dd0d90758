import subprocess

import pytest

from pullback_runners.commits import describe_commit, describe_revision


def git(folder, *arguments):
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", folder, *identity, *arguments], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path):
    git(tmp_path, "init", "--initial-branch=trunk")
    (tmp_path / "file").write_text("one")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "--message", "First: a file\n\nWith a body.")
    return tmp_path


def test_a_commit_is_described_as_git_knows_it(repository):
    first = describe_commit(repository)
    assert (first["title"], first["author"], first["branch"]) == ("First: a file", "Ada", "trunk")
    assert (first["parents"], first["dirty"]) == ([], False)
    (repository / "file").write_text("two")
    assert describe_commit(repository)["dirty"]
    git(repository, "commit", "--all", "--message", "Second")
    second = describe_commit(repository)
    assert second["parents"] == [first["sha"]]
    assert len(second["sha"]) == 40
    assert second["authored_at"][10] == "T"


def test_a_folder_inside_a_checkout_and_a_detached_head_will_do(repository):
    (repository / "inner").mkdir()
    git(repository, "checkout", "--detach")
    assert describe_commit(repository / "inner")["branch"] is None


def test_without_git_or_repository_there_is_no_commit(tmp_path, monkeypatch):
    assert describe_commit(tmp_path) is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert describe_commit(tmp_path) is None


def test_a_commit_of_old_is_described_whatever_its_author_wrote_in(repository):
    raw = subprocess.check_output(["git", "-C", repository, "cat-file", "commit", "HEAD"])
    written = subprocess.run(
        ["git", "-C", repository, "hash-object", "-t", "commit", "-w", "--stdin"],
        input=raw.replace(b"First: a file", "Gr\xf6\xdfe".encode("latin-1")),
        capture_output=True,
        check=True,
    )
    assert describe_revision(repository, written.stdout.decode().strip())["title"] == "Gr��e"


def test_a_title_that_is_a_whole_text_is_cut(repository):
    git(repository, "commit", "--allow-empty", "--message", "word " * 5000)
    assert len(describe_commit(repository)["title"]) < 2001
