"""The product from outside: real processes, a real database, a real (small) repository, nothing of ours replaced."""

import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import psutil
import pytest
from tests.runners.projects.conftest import Repository
from tests.system.clusters import Cluster
from tests.system.products import Product, until

import pullback
from pullback_cli.supervision.state_file import read_state

ENGINE = Path(pullback.__file__).parent
MEASURED_SUITE = os.environ.get("PULLBACK_TEST_SUITE", "trial")
"""`quick`, of four cases, is what the figure in docs/jobs.md was measured with."""
SIZES = (1000, 2000, 3000, 4000) if MEASURED_SUITE == "quick" else (4000,)
PROJECT = '[project]\nname = "pullback"\n[build]\npath = ["engine"]\nimport = ["pullback"]\nfiles = ["engine"]\n'


class Api:
    """The service as any client sees it."""

    def __init__(self, url, token=None):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.http = httpx.Client(base_url=url, headers=headers, timeout=60, trust_env=False)

    def get(self, path, **query):
        """Return the JSON of a page or resource."""
        answer = self.http.get(path, params=query)
        assert answer.is_success, answer.text
        return answer.json()

    def job(self, job_id):
        """Return a job."""
        return self.get(f"/api/v1/jobs/{job_id}")

    def wait_for_job(self, job_id, *states, timeout_s=150):
        """Wait until a job is in one of the states."""
        return until(
            lambda: (job := self.job(job_id))["state"] in states and job, timeout_s, f"job {job_id} to be {states}"
        )


def git(folder, *arguments):
    """Run git as a person with a name."""
    identity = ("-c", "user.name=A", "-c", "user.email=a@a.test", "-c", "init.defaultBranch=main")
    done = subprocess.run(["git", *identity, "-C", folder, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def folder():
    """A folder that other accounts may enter: where root runs the tests, Postgres does not."""
    path = Path(tempfile.mkdtemp(prefix="pullback-system-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def clone_of_the_engine(folder):
    """Make a clone with two commits, of which the first changed the engine."""
    path = folder / "repository"
    shutil.copytree(ENGINE, path / "engine" / "pullback", ignore=shutil.ignore_patterns("__pycache__"))
    (path / "pullback.toml").write_text(PROJECT)
    git(path, "init", "-q")
    git(path, "add", "-A")
    git(path, "commit", "-qm", "The engine")
    (path / "README.md").write_text("Words.\n")
    git(path, "add", "-A")
    git(path, "commit", "-qm", "The words")
    return path


def small_library(folder):
    """Make a library with one case and one commit, which is measured in a few seconds."""
    (folder / "repository").mkdir()
    library = Repository(folder / "repository")
    library.commit("one")
    return library.folder


@pytest.fixture
def waves(folder):
    """A library of pure Python and NumPy with two commits."""
    path = folder / "waves"
    path.mkdir()
    made = Repository(path)
    bench = path / "bench" / "total.py"
    bench.write_text(bench.read_text().replace("n=(4000,)", f"n={SIZES}"))
    made.shas = [made.commit("one")]
    made.slow_down(2)
    made.shas.append(made.commit("2 times"))
    return made


@pytest.fixture
def repository(folder):
    """A clone of the engine."""
    return clone_of_the_engine(folder)


@pytest.fixture
def product(folder, repository):
    """Nothing runs yet; nothing runs any more afterwards."""
    product = Product(folder, repository)
    yield product
    product.down()
    left = product.processes()
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    assert not left


@pytest.fixture(scope="module")
def shared_product():
    """A product for tests of one file that need no agent of `up`; each of them leaves it running or ended."""
    folder = Path(tempfile.mkdtemp(prefix="pullback-up-"))
    folder.chmod(0o755)
    product = Product(folder, folder)
    yield product
    product.down()
    assert product.processes() == []
    shutil.rmtree(folder)


@pytest.fixture
def running(shared_product):
    """A product that is up, without an agent."""
    state = read_state(shared_product.data)
    if state is None or state.up.process() is None:
        shared_product.up("--no-agent")
    return shared_product


@pytest.fixture
def connect():
    """Return how to talk to a service at an address."""
    with ExitStack() as open_clients:

        def open_client(url, token=None):
            api = Api(url, token)
            open_clients.enter_context(api.http)
            return api

        yield open_client


@pytest.fixture(name="until")
def _until():
    return until


@pytest.fixture(name="git")
def _git():
    return git


@pytest.fixture
def start_cluster(folder):
    """Start replicas and workers on the database the environment names; they are gone afterwards."""
    started = []

    def start(environment, *, replicas=2, workers=3):
        cluster = Cluster(Product(folder, None), environment, replicas=replicas, workers=workers)
        started.append(cluster)
        return cluster

    yield start
    for cluster in started:
        for replica in cluster.processes:
            if replica.process.poll() is None:
                replica.process.send_signal(signal.SIGTERM)
        for replica in cluster.processes:
            replica.stop()
            print(f"--- {replica.name}\n{replica.log.read_text()[-4000:]}")  # noqa: T201 - shown where a test failed
