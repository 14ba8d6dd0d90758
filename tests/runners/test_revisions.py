import pytest

from pullback_runners.errors import BuildError, UsageError
from pullback_runners.revisions import build_engine, copy_engine, find_commit, find_commits, uncommitted_changes


def test_a_range_gives_the_commits_that_changed_the_engine_oldest_first(clone):
    assert [commit["title"] for commit in find_commits(clone, "plain..none")] == [
        "engine slow",
        "engine wrong",
        "engine none",
    ]
    assert [commit["title"] for commit in find_commits(clone, "docs")] == ["engine docs"]


@pytest.mark.parametrize("wish", ["nowhere", "nowhere..HEAD", "HEAD..nowhere", "--all", ""])
def test_what_git_does_not_know_is_named(clone, wish):
    with pytest.raises(UsageError, match="has no revision"):
        find_commits(clone, wish)


def test_a_range_without_a_new_engine_says_so(clone):
    with pytest.raises(UsageError, match=r"no commit in plain\.\.docs changes engine/"):
        find_commits(clone, "plain..docs")


def test_a_folder_without_git_is_no_clone(tmp_path):
    with pytest.raises(UsageError, match="no git clone"):
        find_commit(tmp_path, "HEAD")


def test_engines_are_built_side_by_side_with_object_code_of_their_own(clone, tmp_path):
    plain, slow = (build_engine(clone, find_commit(clone, tag), tmp_path / "built") for tag in ("plain", "slow"))
    assert "range(1)" in (plain.engine / "pullback" / "__init__.py").read_text()
    assert "range(100)" in (slow.engine / "pullback" / "__init__.py").read_text()
    assert plain.objects != slow.objects


def test_a_commit_without_an_engine_cannot_be_built(clone, tmp_path):
    with pytest.raises(BuildError, match="has no engine/ folder"):
        build_engine(clone, find_commit(clone, "none"), tmp_path)


def test_a_folder_that_cannot_be_written_is_no_traceback(clone, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(BuildError, match="free some space or set TMPDIR"):
        build_engine(clone, find_commit(clone, "plain"), tmp_path / "file")


def test_files_as_they_are_make_a_dirty_engine(clone, tmp_path):
    assert uncommitted_changes(clone) == []
    assert not copy_engine(clone, tmp_path / "clean").commit["dirty"]
    (clone / "engine" / "pullback" / "__init__.py").write_text("TIERS = ()\n")
    (clone / "engine" / "pullback" / "new.py").touch()
    assert len(uncommitted_changes(clone)) == 2
    copied = copy_engine(clone, tmp_path / "dirty")
    assert copied.commit["dirty"]
    assert (copied.engine / "pullback" / "new.py").exists()
