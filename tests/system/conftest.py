"""The product from outside: real processes, a real database, a real (small) repository, nothing of ours replaced."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from functools import partial
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


def free_port():
    """A port nobody listens on at this moment."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Replica:
    """One process of a cluster, which can be killed and started again."""

    def __init__(self, product, name, arguments, environment):
        self.name = name
        self.log = product.home / f"{name}.log"
        self._begin = partial(product.start, *arguments, log=self.log, environment=environment)
        self.process = self._begin()

    def kill(self):
        """End it as a power cut would."""
        self.process.kill()
        self.process.wait()

    def restart(self):
        """Start it again."""
        self.process = self._begin()

    def stop(self, timeout_s=30):
        """Ask it to end, and return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout_s)


class Cluster:
    """API replicas and workers on one database, as an installation that grew has them."""

    def __init__(self, product, environment, *, replicas, workers):
        self.product = product
        migrated = product.start("db", "upgrade", log=product.home / "upgrade.log", environment=environment)
        assert migrated.wait(60) == 0, (product.home / "upgrade.log").read_text()
        ports = [free_port() for _ in range(replicas)]
        self.urls = [f"http://127.0.0.1:{port}" for port in ports]
        self.replicas = [
            Replica(product, f"serve-{number}", ["serve", "--port", str(port)], environment)
            for number, port in enumerate(ports)
        ]
        self.workers = [Replica(product, f"worker-{number}", ["worker"], environment) for number in range(workers)]
        for url in self.urls:
            self.wait_until_ready(url)

    @property
    def processes(self):
        """All of them."""
        return [*self.replicas, *self.workers]

    def wait_until_ready(self, url):
        """Wait until a replica and its database answer."""
        until(lambda: _is_ready(url), what=f"{url} to be ready")

    def said(self):
        """What all processes wrote."""
        return "".join(process.log.read_text() for process in self.processes)


def _is_ready(url):
    try:
        return httpx.get(f"{url}/readyz", trust_env=False, timeout=5).is_success
    except httpx.TransportError:
        return False


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
