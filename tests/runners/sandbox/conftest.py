"""Jobs of an agent in a process of its own, as an ordinary user or for one."""

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.runners.projects.conftest import Repository

import pullback
import pullback_runners
import pullback_service

USER = str(
    61234 + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
)  # a number needs no entry in the list of users

DRIVER = """
import json, sys
from pathlib import Path
from pullback_runners.agent import measurement
from pullback_runners.agent.claims import Claim, Job, Lease
from pullback_runners.agent.errors import JobFailedError
from pullback_runners.agent.job_folder import JobFolder
from pullback_runners.errors import UsageError
from pullback_runners.sandbox.isolation import isolated
from pullback_runners.sandbox.limits import Limits
from pullback_runners.sandbox.proxy import BuildNetwork

def said_below(folder):
    return [json.loads(line) for said in folder.rglob("said.txt") for line in said.read_text().splitlines()]

def remove_tree(folder, remove=measurement.remove_tree):
    on_sides.extend(said_below(folder))
    remove(folder)

on_sides, measurement.remove_tree = [], remove_tree
asked = json.loads(sys.argv[1])
data, repository = Path(asked["data"]), Path(asked["repository"])
commit = {"sha": asked["sha"], "parents": [], "branch": "main", "author": "A", "authored_at": None, "title": "t", "dirty": False}
lease = Lease(job_id="7", attempt=1, token="00000000-0000-4000-8000-000000000007", heartbeat_s=15.0)
reference = asked["reference"] and {**commit, "sha": asked["reference"]}
claim = Claim(Job("demo", commit, "trial", (), asked["timeout_s"], reference), lease)
with isolated(data, asked["level"], asked["user"], readable=[repository], limits=Limits(**asked["limits"]),
              builds=asked["builds"] and BuildNetwork(*asked["builds"])) as isolation:
    folder = JobFolder.create(data / "jobs", lease, "key", isolation.user)
    answer = {"report": None, "failure": None}
    try:
        answer["report"] = measurement.measure(
            claim, repository, folder, "key", cache=isolation.cache(data, "demo", trusted=asked["trusted"]), cpus=frozenset(),
            tell=lambda _: None, stops=lambda: None, isolation=isolation)
    except JobFailedError as failure:
        answer["failure"] = [failure.kind, str(failure)]
    with folder.log.open(errors="replace") as log:
        answer["log"] = log.read(1 << 20)
    answer["said"] = said_below(folder.work) + on_sides
    answer["owner"] = folder.work.stat().st_uid
    answer["log_bytes"] = folder.log.stat().st_size
    folder.remove()
    answer["left"] = [each.name for each in (data / "jobs").iterdir()]
    print(json.dumps(answer))
"""


def _is_open(path):
    return all(parent.stat().st_mode & stat.S_IXOTH for parent in Path(path).resolve().parents)


@pytest.fixture
def command():
    """A Python with our packages that another user can run: this one, or the system's where this one is root's alone."""
    packages = [Path(each.__file__).parents[1] for each in (pullback, pullback_runners, pullback_service)]
    packages += [Path(path) for path in sys.path if path.endswith("site-packages")]
    minor = f"python{sys.version_info.major}.{sys.version_info.minor}"
    pythons = [
        python for python in (sys.executable, shutil.which(minor, path="/usr/bin")) if python and _is_open(python)
    ]
    unreachable = [path for path in packages if not _is_open(path / "any")] or ([] if pythons else [sys.executable])
    if unreachable:
        pytest.skip(f"an ordinary user cannot reach {unreachable[0]}")
    return [pythons[0], "-P", "-c", DRIVER], {
        "PYTHONPATH": os.pathsep.join(map(str, packages)),
        "PATH": "/usr/bin:/bin",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


@pytest.fixture
def open_folder():
    """A folder that others may pass through, which those of pytest are not."""
    folder = Path(tempfile.mkdtemp(prefix="pullback-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def data(open_folder):
    folder = open_folder / "data"
    folder.mkdir()
    (folder / "token").write_text("secret")
    (folder / "token").chmod(0o600)
    return folder


@pytest.fixture
def repository(open_folder):
    (open_folder / "waves").mkdir()
    return Repository(open_folder / "waves")


@pytest.fixture
def job(open_folder, data, repository, command):
    """Do a job of a commit, whose build runs a program if one is given, and return its end."""

    def job(level, *, build=None, timeout_s=60.0, limits=None, builds=None, trusted=True, reference=None):
        if build is not None:
            repository.write("hostile.py", build)
            declared = (repository.folder / "pullback.toml").read_text()
            if "hostile.py" not in declared:
                repository.write(
                    "pullback.toml", declared.replace("[build]", '[build]\ncommands = ["python3 hostile.py"]')
                )
        sha = repository.commit("a commit")
        user = USER if level != "none" and os.geteuid() == 0 else None
        asked = {"data": str(data), "repository": str(repository.folder), "sha": sha, "level": level, "user": user}
        asked |= {
            "timeout_s": timeout_s,
            "limits": limits or {},
            "builds": builds,
            "trusted": trusted,
            "reference": reference,
        }
        arguments, environment = command
        done = subprocess.run(
            [*arguments, json.dumps(asked)],
            capture_output=True,
            text=True,
            check=False,
            env={**environment, "PULLBACK_TOKEN": "secret"},
            timeout=180,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return job
