"""A repository of somebody's own, from its commits to their page: under `up`, and by an agent that watches a bare repository."""

import os
import time

import httpx
import pytest
from tests.runners.projects.conftest import Repository

pytestmark = pytest.mark.system

SUITE = os.environ.get("PULLBACK_TEST_SUITE", "trial")
"""`quick`, of four cases, is what the figure in docs/jobs.md was measured with."""
SIZES = (1000, 2000, 3000, 4000) if SUITE == "quick" else (4000,)


@pytest.fixture
def waves(folder):
    """A library of pure Python and NumPy with three commits."""
    path = folder / "waves"
    path.mkdir()
    made = Repository(path)
    bench = path / "bench" / "total.py"
    bench.write_text(bench.read_text().replace("n=(4000,)", f"n={SIZES}"))
    made.shas = [made.commit("one")]
    for times in (2, 3):
        made.slow_down(times)
        made.shas.append(made.commit(f"{times} times"))
    return made


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


def test_up_where_no_project_is_says_how_to_make_one_and_shows_uploads(product):
    done = product.run("up", "--detach", "--port", "0", "--data", str(product.data))
    assert (done.returncode, done.stderr) == (0, "")
    assert "nothing is measured here" in done.stdout
    assert set(product.status()["processes"]) == {"up", "api", "worker"}
    named = product.run("up", "--data", str(product.data / "other"), "--repository", str(product.home))
    assert (named.returncode, named.stderr.count("\n")) == (2, 1)


def test_a_commit_that_is_pushed_to_a_bare_repository_is_on_its_page_in_a_minute_and_a_half(
    product, waves, folder, connect, until
):
    bare = folder / "waves.git"
    waves.git("clone", "-q", "--bare", str(waves.folder), str(bare))
    waves.git("remote", "add", "origin", str(bare))
    product.up("--no-agent")
    url = product.status()["url"]
    api = connect(url)
    with_data = ("--data", str(product.data))
    for arguments in (
        ("project", "create", "waves", *with_data),
        ("project", "set", "waves", "--mirror", str(bare), "--backfill", SUITE, *with_data),
    ):
        done = product.run(*arguments)
        assert done.returncode == 0, done.stderr
    agent = product.start(
        *("agent", "--server", url, "--repository", str(bare), "--data", str(folder / "agent")),
        *("--least-free-gib", "0.1"),
        log=product.home / "agent.log",
    )
    try:
        until(lambda: len(_reports(api)) == 3, 300, "the history to be measured")
        waves.slow_down(40)
        fresh = waves.commit("Forty times")
        waves.git("push", "-q", "origin", "main")
        began = time.monotonic()
        until(lambda: fresh in _reports(api), 150, "the new commit to be measured")
        page = httpx.get(f"{url}/projects/waves/commits/{fresh}", timeout=30, trust_env=False)
        took_s = time.monotonic() - began
        print(f"on its page after {took_s:.0f} s")  # noqa: T201 - a figure for who runs it with -s
        assert "Forty times" in page.text
        (report,) = api.get("/api/v1/reports", commit=fresh)["items"]
        assert report["cases"] == len(SIZES)
    finally:
        agent.terminate()
        agent.wait(60)


def _reports(api):
    return {report["commit"] for report in api.get("/api/v1/reports", project="waves")["items"]}
