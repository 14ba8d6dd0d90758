"""The product from outside: real processes, a real database, a real (small) repository, nothing of ours replaced."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import psutil
import pytest

import pullback

ENGINE = Path(pullback.__file__).parent
SUITE = "quick:poly9_broadcast*"  # one case, a few seconds
COMMAND = [sys.executable, "-P", "-m", "pullback_cli"]


def until(condition, timeout_s=60, what="it"):
    """Wait for something to become true and return it."""
    deadline = time.monotonic() + timeout_s
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited {timeout_s} s for {what}"
        time.sleep(0.1)
    return found


class Product:
    """One data folder, and the commands a person would type about it."""

    def __init__(self, folder, repository, environment=None, user=None):
        self.data = folder / "data"
        self.home = folder / "home"
        self.home.mkdir()
        self.repository = repository
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("PULLBACK_", "DATABASE_URL"))},
            "HOME": str(self.home),  # every process of ours inherits it, so that none can hide
            **(environment or {}),
        }
        self._user = user

    def run(self, *arguments, **options):
        """Run a command to its end."""
        return subprocess.run(
            [*COMMAND, *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env=self._environment,
            cwd=self.home,
            user=self._user,
            group=self._user,
            **options,
        )

    def start(self, *arguments, log, environment=None):
        """Start a command and leave it running."""
        with log.open("ab") as output:
            return subprocess.Popen(
                [*COMMAND, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._environment | (environment or {}),
                cwd=self.home,
            )

    def up_arguments(self, *more):
        """Return `up` on this folder and a free port."""
        return [
            "up",
            "--data",
            str(self.data),
            "--port",
            "0",
            "--repository",
            str(self.repository),
            "--suite",
            SUITE,
            *more,
        ]

    def up(self, *more):
        """Start everything in the background."""
        done = self.run(*self.up_arguments("--detach", *more))
        assert done.returncode == 0, done.stderr
        return done

    def status(self):
        """Return what `status` says."""
        return json.loads(self.run("status", "--data", str(self.data), "--json").stdout)

    def down(self):
        """Stop everything."""
        return self.run("down", "--data", str(self.data))

    def processes(self):
        """Every process that belongs to this product, by the home folder it inherited or the data it names."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                named = any(str(self.data) in argument for argument in process.cmdline())
                if process.pid != os.getpid() and (named or process.environ().get("HOME") == str(self.home)):
                    found.append(process)
        return [process for process in found if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]


class Api:
    """The service as any client sees it."""

    def __init__(self, url, token=None):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.http = httpx.Client(base_url=url, headers=headers, timeout=20, trust_env=False)

    def get(self, path, **query):
        """Return the JSON of a page or resource."""
        answer = self.http.get(path, params=query)
        assert answer.is_success, answer.text
        return answer.json()

    def job(self, job_id):
        """Return a job."""
        return self.get(f"/api/v1/jobs/{job_id}")

    def wait_for_job(self, job_id, *states, timeout_s=90):
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


@pytest.fixture
def repository(folder):
    """A clone with two commits, of which the first changed the engine."""
    path = folder / "repository"
    shutil.copytree(ENGINE, path / "engine" / "pullback", ignore=shutil.ignore_patterns("__pycache__"))
    git(path, "init", "-q")
    git(path, "add", "-A")
    git(path, "commit", "-qm", "The engine")
    (path / "README.md").write_text("Words.\n")
    git(path, "add", "-A")
    git(path, "commit", "-qm", "The words")
    return path


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
