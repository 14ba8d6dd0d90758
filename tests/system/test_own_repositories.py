"""A repository of somebody's own, from its commits to their page, under `up`."""

import time

import httpx
import pytest

pytestmark = pytest.mark.system


@pytest.fixture
def repository(folder):
    """Nothing that could be measured beside those commits."""
    return folder


@pytest.fixture
def in_waves(product, waves):
    """`up` typed in that repository without a word about it."""
    done = product.run(
        "up", "--detach", "--port", "0", "--data", str(product.data), "--suite", "trial", cwd=waves.folder
    )
    assert done.returncode == 0, done.stderr
    return product


def test_up_in_a_repository_measures_its_history_and_then_each_new_commit(in_waves, waves, connect, until):
    status = in_waves.status()
    api = connect(status["url"])

    def jobs():
        return {job["commit"]["sha"]: job for job in api.get("/api/v1/jobs", project="waves")["items"]}

    until(lambda: set(jobs()) == set(waves.shas), what="jobs for the commits that are there")
    waves.slow_down(1)
    fresh = waves.commit("as before")
    began = time.monotonic()
    job = until(lambda: jobs().get(fresh), 30, "the new commit to be queued")
    assert job["priority"] > max(job["priority"] for sha, job in jobs().items() if sha in waves.shas[:-1])
    print(f"queued after {time.monotonic() - began:.1f} s")  # noqa: T201 - a figure for who runs it with -s
    for each in jobs().values():
        assert api.wait_for_job(each["id"], "done", "failed")["state"] == "done"
    page = httpx.get(f"{status['url']}/projects/waves/commits/{fresh}", timeout=30, trust_env=False)
    assert page.status_code == 200
    assert "as before" in page.text
    log = in_waves.data / "logs" / "up.log"
    until(lambda: f"More at {status['url']}/projects/waves/commits/{fresh}" in log.read_text(), what="the receipt")
    assert f"new commit {fresh[:10]} as before: queued" in log.read_text()
    assert f"against {waves.shas[-1][:10]}: " in log.read_text()
    assert waves.git("status", "--porcelain") == ""
    (project,) = api.get("/api/v1/projects")["items"]
    assert (project["name"], project["repository"]) == ("waves", str(waves.folder))


@pytest.mark.long
def test_up_where_no_project_is_says_how_to_make_one_and_shows_uploads(product):
    done = product.run("up", "--detach", "--port", "0", "--data", str(product.data))
    assert (done.returncode, done.stderr) == (0, "")
    assert "nothing is measured here" in done.stdout
    assert set(product.status()["processes"]) == {"up", "api", "worker"}
    named = product.run("up", "--data", str(product.data / "other"), "--repository", str(product.home))
    assert (named.returncode, named.stderr.count("\n")) == (2, 1)
