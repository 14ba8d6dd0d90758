"""`pullback log` tells a running service of a real repository."""

import json
import os
import subprocess

import httpx
import pytest

AUTHOR = {f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


@pytest.fixture
def clone(tmp_path):
    repository = tmp_path / "clone"
    repository.mkdir()

    def git(*arguments):
        identity = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *identity, "-C", str(repository), *arguments], check=True, capture_output=True)

    git("init", "--quiet", "--initial-branch=main")
    for title in ("one", "two", "three"):
        git("commit", "--quiet", "--allow-empty", "-m", title)
    return repository


@pytest.fixture
def pullback_log(command):
    def run(*arguments, folder):
        return command("log", "--project", "demo", *arguments, folder=folder, COLUMNS="200")

    return run


def test_a_branch_is_told_and_told_again(pullback_log, service, clone, tmp_path):
    first = pullback_log("--server", service, "--json", folder=clone)
    assert first.returncode == 0, first.stderr
    (receipt,) = json.loads(first.stdout)
    assert (receipt["new_commits"], receipt["branch"]["commits"], receipt["branch"]["gaps"]) == (3, 3, 0)
    again = pullback_log("--server", service, folder=clone)
    assert again.stdout == "main: 0 new commits, 3 known\n"
    titles = [
        commit["title"] for commit in httpx.get(f"{service}/api/v1/commits?project=demo&branch=main").json()["items"]
    ]
    assert titles == ["three", "two", "one"]
    shallow = tmp_path / "shallow"
    subprocess.run(
        ["git", "clone", "--quiet", "--depth=1", f"file://{clone}", str(shallow)], check=True, capture_output=True
    )
    cut = json.loads(pullback_log("--server", service, "--json", folder=shallow).stdout)[0]
    assert (cut["branch"]["commits"], cut["branch"]["gaps"], cut["branch"]["forced_at"]) == (3, 0, None)


def test_what_does_not_hold_is_one_sentence(pullback_log, clone, tmp_path):
    for arguments, folder, said in (
        (["--branch", "nowhere"], clone, "name a branch or commit this clone has"),
        ([], tmp_path, "git cannot read"),
        (["--server", "nowhere"], clone, "is not an address"),
    ):
        shown = pullback_log(*arguments, folder=folder)
        assert (shown.returncode, shown.stderr.count("\n")) == (2, 1), shown.stderr
        assert said in shown.stderr


def test_an_upload_tells_the_log_that_leads_to_its_commit(command, service, clone, tmp_path):
    result = {"command": "c", "mean": 1.0, "user": 0.5, "system": 0.1, "times": [1.0, 1.1]}
    (tmp_path / "bench.json").write_text(json.dumps({"results": [result]}))

    def upload(*more):
        said = ["--project", "demo", "--machine", "ci", "--server", service, *more]
        return command("upload", tmp_path / "bench.json", *said, folder=clone)

    tried = upload("--dry-run")
    assert (tried.returncode, "main:" in tried.stdout) == (0, False), tried.stderr
    first = upload()
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=clone, check=True, capture_output=True, text=True
    ).stdout.strip()
    assert first.returncode == 0, first.stderr
    assert first.stdout.splitlines()[-2:] == [
        "  main: 3 new commits, 3 known",
        f"More at {service}/projects/demo/commits/{head}",
    ]
    assert upload().stdout.splitlines()[-2] == "  main: 0 new commits, 3 known"
    quiet = upload("--log", "0", "--allow-dirty")
    assert "main:" not in quiet.stdout
    (series, *_) = httpx.get(f"{service}/api/v1/series?project=demo").json()["items"]
    (point,) = httpx.get(f"{service}/api/v1/series/{series['id']}/points").json()["items"]
    commits = httpx.get(f"{service}/api/v1/commits?project=demo&branch=main").json()["items"]
    assert [point["commit"] == commit["sha"] for commit in commits] == [True, False, False]
    subprocess.run(
        ["git", "commit", "--amend", "--allow-empty", "-qm", "other"],
        cwd=clone,
        check=True,
        env={**os.environ, **AUTHOR},
    )
    *_, forced, changed, _ = upload().stdout.splitlines()
    assert "force-pushed from" in forced
    assert f" against {head[:10]}: " in changed


def test_an_upload_takes_the_branch_from_its_file_or_from_git_and_names_all_that_is_missing(
    command, service, clone, tmp_path
):
    asked = ["git", "-C", str(clone), "rev-parse", "HEAD~1"]
    sha = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
    test = {"name": "t", "fullname": "f::t", "stats": {"data": [1.0, 1.1], "rounds": 2, "iterations": 1}}
    for file, commit in (("said.json", {"id": sha, "branch": "topic"}), ("unsaid.json", {"id": sha})):
        document = {"machine_info": {}, "commit_info": commit, "benchmarks": [test], "version": "5.1.0"}
        (tmp_path / file).write_text(json.dumps(document))
    result = {"command": "c", "mean": 1.0, "user": 0.5, "system": 0.1, "times": [1.0, 1.1]}
    (tmp_path / "hyperfine.json").write_text(json.dumps({"results": [result]}))

    def upload(*said, folder=clone):
        return command("upload", "--server", service, *said, folder=folder)

    paths = [str(tmp_path / name) for name in ("said.json", "unsaid.json")]
    both = upload(*paths, "--project", "demo", "--machine", "ci", "--json")
    assert both.returncode == 0, both.stderr
    receipts = json.loads(both.stdout)
    assert [(each["commit"], each["branch"], each["created"]) for each in receipts] == [
        (sha, "topic", True),
        (sha, None, True),
    ]
    assert both.stderr.splitlines() == [
        "  topic: 1 new commits, 1 completed, 2 known",
        "  main: 0 new commits, 2 known",
    ]
    in_clone, outside = (
        upload(str(tmp_path / "hyperfine.json"), "--project", "demo", folder=folder).stderr
        for folder in (clone, tmp_path)
    )
    assert ("--machine NAME" in in_clone, "commit" in in_clone) == (True, False), in_clone
    assert ("--machine NAME" in outside, "--commit SHA" in outside) == (True, True), outside
