import os
import shutil
import subprocess
import time
from contextlib import suppress

import psutil
import pytest
from tests.runners.projects.conftest import Repository

from pullback_runners.agent import clones
from pullback_runners.agent.clones import Repositories, resolved
from pullback_runners.agent.errors import JobFailedError, PermanentError
from pullback_runners.errors import BuildError, UsageError
from pullback_runners.git import watched_git
from pullback_runners.projects.checkouts import write_commit
from pullback_runners.projects.definitions import project_of_commit
from pullback_runners.sandbox.limits import Limits


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "waves"
    folder.mkdir()
    made = Repository(folder)
    made.first = made.commit("one")
    return made


@pytest.fixture
def mirrors(tmp_path):
    return tmp_path / "agent" / "mirrors"


def _address(repository):
    """Where a repository is fetched from as if it were on another machine."""
    return f"file://{repository.folder}"


def _has(repository, sha):
    return subprocess.run(["git", "-C", repository, "cat-file", "-e", sha], check=False, stderr=-3).returncode == 0


def test_commits_of_a_listed_address_come_into_one_bare_mirror(repository, mirrors):
    repositories = Repositories(mirrors, None, [_address(repository)])
    mirror = repositories.with_commits(_address(repository), [repository.first])
    assert _has(mirror, repository.first)
    assert list(mirrors.iterdir()) == [mirror]
    assert not (mirror / "hooks").exists()
    second = repository.commit("two")
    assert repositories.with_commits(_address(repository) + "/", [second, repository.first]) == mirror
    assert _has(mirror, second)


def test_a_commit_is_had_although_no_branch_has_it_any_more(repository, mirrors):
    repositories = Repositories(mirrors, None, [_address(repository)])
    gone = repository.commit("forced away")
    mirror = repositories.with_commits(_address(repository), [gone])
    repository.git("reset", "-q", "--hard", repository.first)
    repository.git("reflog", "expire", "--expire=now", "--all")
    repository.git("gc", "-q", "--prune=now")
    assert repositories.with_commits(_address(repository), [gone]) == mirror
    with pytest.raises(JobFailedError, match=f"push commit {'f' * 10} to the repository.*git says") as caught:
        repositories.with_commits(_address(repository), ["f" * 40])
    assert (caught.value.kind, caught.value.retryable) == ("infra", True)
    assert "/" not in str(caught.value)  # where an agent keeps things is nobody's business


def test_a_repository_that_the_operator_did_not_list_is_not_touched(repository, mirrors):
    repositories = Repositories(mirrors, repository.folder, ["https://git.example/other"])
    with pytest.raises(JobFailedError, match="--allow https://git.example/unknown") as caught:
        repositories.with_commits("https://git.example/unknown", [repository.first])
    assert (caught.value.kind, caught.value.retryable) == ("infra", True)
    assert not mirrors.exists()


@pytest.mark.parametrize(
    "listed", ["git@git.example:group/demo", "git@git.example:/group/demo.git", "ssh://git@git.example/group/demo.git/"]
)
def test_both_ways_to_write_an_ssh_address_name_one_repository(mirrors, listed):
    """The service tells `ssh://` of what was given as `git@host:path`."""
    for address in ("ssh://git@git.example/group/demo", "git@git.example:group/demo.git"):
        assert Repositories(mirrors, None, [listed]).is_allowed(address)
    assert not Repositories(mirrors, None, [listed]).is_allowed("ssh://git@git.example/group/other")
    assert not Repositories(mirrors, None, [listed]).is_allowed("ssh://git@other.example/group/demo")


def test_an_agent_without_a_clone_builds_nothing_of_an_unnamed_repository(mirrors):
    with pytest.raises(JobFailedError, match="--repository"):
        Repositories(mirrors, None).with_commits(None, ["f" * 40])


def test_what_is_listed_and_neither_address_nor_clone_is_refused(tmp_path, mirrors):
    with pytest.raises(PermanentError, match="--allow .*no git repository"):
        Repositories(mirrors, None, [str(tmp_path)])


@pytest.mark.parametrize("named", [True, False])
def test_a_folder_of_this_machine_is_read_where_it_is(repository, mirrors, named):
    repositories = Repositories(mirrors, repository.folder / "src")  # any folder of the clone may be named
    before = sorted((repository.folder / ".git").rglob("*"))
    address = str(repository.folder) if named else None
    assert repositories.with_commits(address, [repository.first]) == repository.folder
    assert sorted((repository.folder / ".git").rglob("*")) == before
    assert not mirrors.exists()


def test_a_commit_that_a_clone_lacks_is_fetched_from_its_origin(repository, mirrors, tmp_path):
    clone = tmp_path / "clone"
    repository.git("clone", "-q", str(repository.folder), str(clone))
    second = repository.commit("two")
    assert _has(Repositories(mirrors, clone).with_commits(None, [second]), second)


def test_no_hook_and_no_filter_of_a_repository_runs(repository, mirrors, tmp_path):
    ran = tmp_path / "ran"
    for name in ("post-checkout", "reference-transaction", "post-index-change", "upload-pack"):
        hook = repository.folder / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
        hook.chmod(0o755)
    repository.git("config", "filter.spy.smudge", f"touch {ran}; cat")
    repository.write(".gitattributes", "* filter=spy")
    sha = repository.commit("with a filter")
    ran.unlink(missing_ok=True)
    mirror = Repositories(mirrors, None, [_address(repository)]).with_commits(_address(repository), [sha])
    project_of_commit(mirror, sha, tmp_path / "scratch")
    assert not ran.exists()


def test_a_mirror_says_what_the_file_at_head_says_of_an_older_commit(repository, mirrors, tmp_path):
    repository.git("rm", "-q", "pullback.toml")
    without = repository.commit("nothing says how")
    repository.git("checkout", "-q", repository.first, "--", ".")
    repository.commit("said again")
    mirror = Repositories(mirrors, None, [_address(repository)]).with_commits(_address(repository), [without])
    project, files = project_of_commit(mirror, without, tmp_path / "scratch")
    assert (project.name, files) == ("waves", tmp_path / "scratch")
    assert project.workload_files(files) == [tmp_path / "scratch" / "bench" / "total.py"]
    assert project_of_commit(mirror, repository.first, tmp_path / "unused")[1] is None


def test_each_step_of_a_job_may_write_the_files_at_head(repository, mirrors, tmp_path):
    repository.git("rm", "-q", "pullback.toml")
    without = repository.commit("nothing says how")
    repository.git("checkout", "-q", repository.first, "--", ".")
    (repository.folder / "link.py").symlink_to("src/waves.py")
    repository.commit("said again, with a link")
    mirror = Repositories(mirrors, None, [_address(repository)]).with_commits(_address(repository), [without])
    first, again = (project_of_commit(mirror, without, tmp_path / "scratch") for _ in range(2))
    assert again == first
    assert (tmp_path / "scratch/link.py").resolve() == tmp_path / "scratch/src/waves.py"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_a_clone_of_another_user_is_read_all_the_same(repository, mirrors):
    for path in (repository.folder, *repository.folder.rglob("*")):
        shutil.chown(path, 65534, 65534)
    assert Repositories(mirrors, repository.folder).with_commits(None, [repository.first]) == repository.folder


def add_submodule(repository, name):
    """Add the repository of that name beside this one, told by an address relative to it."""
    address = f"file://{repository.folder.parent}/{name}"
    repository.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", address, "deps/inner")
    repository.git("config", "-f", ".gitmodules", "submodule.deps/inner.url", f"../{name}")


@pytest.fixture
def with_submodules(repository, tmp_path):
    """A repository with a submodule that has one itself, both listed."""
    for name in ("grains", "sand"):
        (tmp_path / name).mkdir()
        made = Repository(tmp_path / name)
        if name == "sand":
            add_submodule(made, "grains")
        made.commit("one")
    add_submodule(repository, "sand")
    repository.write("pullback.toml", '[build]\nsubmodules = ["deps/inner", "deps/inner/deps/inner"]\n')
    return repository


def test_a_mirror_has_listed_submodules_of_repositories_that_may_be_built(with_submodules, mirrors, tmp_path):
    sha = with_submodules.commit("two")
    allowed = [f"file://{tmp_path}/{name}" for name in ("waves", "sand", "grains")]
    mirror = Repositories(mirrors, None, allowed).with_commits(allowed[0], [sha, with_submodules.first])
    project, _ = project_of_commit(mirror, sha, tmp_path / "scratch")
    empty = write_commit(mirror, sha, tmp_path / "files", project.build.submodules)
    assert empty == []
    assert (tmp_path / "files/deps/inner/deps/inner/src/waves.py").is_file()


def test_a_submodule_of_a_repository_that_is_not_allowed_is_not_fetched(with_submodules, mirrors, tmp_path):
    sha = with_submodules.commit("two")
    repositories = Repositories(mirrors, None, [_address(with_submodules), f"file://{tmp_path}/sand"])
    with pytest.raises(JobFailedError, match=f"start the agent with --allow file://{tmp_path}/grains: submodule"):
        repositories.with_commits(_address(with_submodules), [sha])


@pytest.mark.parametrize("file", ["pullback.toml", ".gitmodules"])
def test_a_file_of_megabytes_is_not_read_by_the_agent(with_submodules, mirrors, tmp_path, file):
    allowed = [f"file://{tmp_path}/{name}" for name in ("waves", "sand", "grains")]
    with (with_submodules.folder / file).open("a") as listed:
        listed.write("#" * (256 << 10))
    sha = with_submodules.commit("large")
    mirror = Repositories(mirrors, None, allowed).with_commits(allowed[0], [sha])
    assert not (mirror / "modules").exists()
    if file == "pullback.toml":
        with pytest.raises(UsageError, match=r"^pullback.toml of \w{10} is larger than 256 KiB; shorten it$"):
            project_of_commit(mirror, sha, tmp_path / "scratch")
    else:
        with pytest.raises(
            BuildError, match="of submodule deps/inner, which pullback.toml lists, is not in this clone"
        ):
            write_commit(mirror, sha, tmp_path / "files", ["deps/inner"])


@pytest.mark.parametrize(
    ("told", "above", "address"),
    [
        ("https://a.test/x.git", "https://b.test/g/r", "https://a.test/x.git"),
        ("../x.git", "https://b.test/g/r.git", "https://b.test/g/x.git"),
        ("../../h/x", "ssh://git@b.test/g/r/", "ssh://git@b.test/h/x"),
        ("../x", "git@b.test:r", "git@b.test:x"),
        ("./x", "https://b.test/r", "https://b.test/r/x"),
    ],
)
def test_the_address_of_a_submodule_may_be_relative_as_git_reads_it(told, above, address):
    assert resolved(told, above) == address


def test_commits_of_a_repository_whose_head_names_no_branch_are_had(repository, mirrors, tmp_path):
    """As of one made by `git init --bare` on a server where new repositories begin with another branch."""
    bare = tmp_path / "bare.git"
    repository.git("init", "-q", "--bare", "-b", "master", str(bare))
    repository.git("push", "-q", str(bare), "main")
    address = f"file://{bare}"
    mirror = Repositories(mirrors, None, [address]).with_commits(address, [repository.first])
    assert _has(mirror, repository.first)


def test_a_repository_that_does_not_answer_is_a_fault_of_the_agent(repository, mirrors, monkeypatch):
    repositories = Repositories(mirrors, None, [_address(repository)])
    monkeypatch.setattr(clones, "_FETCH_TIMEOUT_S", 0.001)
    with pytest.raises(JobFailedError, match=r"git fetch did not end in 0\.001 s") as caught:
        repositories.with_commits(_address(repository), [repository.first])
    assert (caught.value.kind, caught.value.retryable) == ("infra", True)


def test_a_repository_that_fills_the_disk_is_fetched_no_further_and_leaves_nothing(repository, mirrors, monkeypatch):
    monkeypatch.setattr("pullback_runners.git._LOOK_S", 0.002)
    for name, value in (("core.compression", "0"), ("core.bigFileThreshold", "1m")):
        repository.git("config", name, value)
    (repository.folder / "large").write_bytes(os.urandom(48 << 20))
    sha = repository.commit("large")
    few = Repositories(mirrors, None, [_address(repository)], Limits(disk_bytes=8 << 20))
    with pytest.raises(
        JobFailedError, match=r"see how large the repository.* is.*: the disk has .* GiB less"
    ) as caught:
        few.with_commits(_address(repository), [sha])
    assert (caught.value.kind, caught.value.retryable) == ("infra", True)
    (mirror,) = mirrors.iterdir()
    assert sum(each.stat().st_size for each in mirror.rglob("*")) < 1 << 20
    assert _has(Repositories(mirrors, None, [_address(repository)]).with_commits(_address(repository), [sha]), sha)


def test_git_has_tidied_up_a_mirror_when_the_fetch_ends(repository, mirrors):
    repositories = Repositories(mirrors, None, [_address(repository)])
    mirror = repositories.with_commits(_address(repository), [repository.first])
    for name in ("fetch.unpackLimit", "gc.autoPackLimit"):
        subprocess.run(["git", "-C", mirror, "config", name, "1"], check=True)
    for message in ("two", "three"):
        repositories.with_commits(_address(repository), [repository.commit(message)])
    assert len(list(mirror.glob("objects/pack/*.pack"))) == 1
    assert not (mirror / "gc.log").exists()


def test_a_fetch_that_is_ended_ends_with_all_that_it_has_started(repository, tmp_path, monkeypatch):
    marker = tmp_path / "ssh"
    marker.write_text("#!/bin/sh\ntrap '' TERM\necho $$ > \"$0.pid\"\nwhile :; do sleep 1; done\n")
    marker.chmod(0o755)
    pid_file = tmp_path / "ssh.pid"

    def look():
        if pid_file.exists() and pid_file.read_text():
            raise InterruptedError

    monkeypatch.setenv("GIT_SSH_COMMAND", str(marker))
    with pytest.raises(InterruptedError):
        watched_git(repository.folder, "fetch", "ssh://nowhere.test/x", watch=look, timeout_s=60)
    with suppress(psutil.NoSuchProcess):
        started = psutil.Process(int(pid_file.read_text()))
        deadline = time.monotonic() + 60
        while started.status() != psutil.STATUS_ZOMBIE:  # nobody may reap it
            assert time.monotonic() < deadline
            time.sleep(0.01)
