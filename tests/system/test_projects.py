"""Projects of others at a service that runs: by the wheel in an environment that holds nothing else and the templates for CI,
by an agent that watches a bare repository, and by the upload that the README shows.
"""

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
import venv
import zipfile
from pathlib import Path

import httpx
import pytest
import yaml
from pip._vendor.packaging.requirements import Requirement
from tests.cli.github import GitHubDouble
from tests.system.conftest import MEASURED_SUITE, SIZES

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
GITHUB = yaml.safe_load((ROOT / "deploy" / "github-actions-project.yml").read_text())
GITLAB = yaml.safe_load((ROOT / "deploy" / "gitlab-project.yml").read_text())

pytestmark = pytest.mark.system

WAVES = """
import numpy as np


def energy(x, k):
    for _ in range({times}):
        total = np.sum(k * np.sin(x) ** 2)
    return total
"""


def _needed(names, found=None):
    """Distributions that these need, with themselves."""
    found = {} if found is None else found
    for name in names:
        distribution = importlib.metadata.distribution(name)
        if distribution.name not in found:
            found[distribution.name] = distribution
            wanted = [Requirement(line) for line in distribution.requires or ()]
            _needed([each.name for each in wanted if each.marker is None or each.marker.evaluate({"extra": ""})], found)
    return found


def _bytes_of(distributions):
    files = [file.locate() for each in distributions for file in each.files or ()]
    return sum(Path(file).stat().st_size for file in files if Path(file).is_file())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (file,) = folder.iterdir()
    return file


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A virtual environment with the wheel and what it needs without any extra; the folder of its commands."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder)}))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    wanted = [Requirement(line) for line in importlib.metadata.metadata("pullback").get_all("Requires-Dist")]
    for each in _needed([each.name for each in wanted if each.marker is None]).values():
        for file in each.files or ():
            top = packages / file.parts[0]
            if file.parts[0] not in {"..", "__pycache__"} and not top.exists():
                top.symlink_to(Path(str(each.locate_file(file.parts[0]))))
    command = folder / "bin" / "pullback"
    command.write_text(f"#!{folder}/bin/python\nfrom pullback_cli.main import main\nmain()\n")
    command.chmod(0o755)
    return folder / "bin"


def test_the_wheel_holds_what_is_not_python_and_adds_little(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        ours = sum(each.file_size for each in archive.infolist())
    for wanted in (r"templates/.*\.html$", r"\.css$", r"_migrations/.*\.py$", r"_glossary\.md$"):
        assert any(re.search(wanted, name) for name in names), wanted
    wanted = [
        Requirement(line).name
        for line in importlib.metadata.metadata("pullback").get_all("Requires-Dist")
        if "extra ==" not in line
    ]
    brought, there = _needed(wanted), _needed(["numpy", "scipy", "llvmlite"])
    added = ours + _bytes_of(each for name, each in brought.items() if name not in there)
    assert added <= 60e6
    assert f"dist/{wheel.name}[service]" in (ROOT / "docs/projects.md").read_text()  # the guide names it


def _shell(lines, folder, installed, variables):
    """Run what a template runs, as its CI would."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PULLBACK_", "PYTHON", "VIRTUAL"))
    }
    environment = {**kept, "PATH": f"{installed}{os.pathsep}{os.environ['PATH']}", **variables}
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", lines],
        cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip


def _github(event, values):
    """The shell lines of a workflow's steps for an event, and their variables, by the values of its expressions."""
    (job,) = GITHUB["jobs"].values()
    env, lines = dict(job["env"]), []
    for step in job["steps"]:
        condition = step.get("if", "")
        if "run" not in step or step["name"] == "install":
            continue
        if "event_name" in condition and ("==" in condition) != (event == "pull_request"):
            continue
        env |= step.get("env", {})
        lines.append(step["run"])
    assert {re.sub(r"\$\{\{ (.*) \}\}", r"\1", each) for each in env.values()} <= set(values)
    return "\n".join(lines), {name: values[re.sub(r"\$\{\{ (.*) \}\}", r"\1", each)] for name, each in env.items()}


@pytest.fixture
def github():
    double = GitHubDouble()
    yield double
    double.close()


@pytest.fixture
def begun(installed, git, tmp_path):
    """A project that was begun by `pullback init`, with an origin; its folder and its commit."""
    folder = tmp_path / "tides"
    folder.mkdir()
    (folder / "waves.py").write_text(WAVES.format(times=1))
    git(folder, "init", "-q")
    begun = _shell("pullback init", folder, installed, {"XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert begun.returncode == 0, begun.stderr
    assert "energy[n=1000,f8,cpu]" in begun.stdout
    settings = folder / "pullback.toml"
    settings.write_text(settings.read_text().replace("[measure]\n", '[measure]\nvariants = ["unfused", "fused"]\n'))
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "Measure gradients")
    git(folder, "clone", "-q", "--bare", ".", str(tmp_path / "tides.git"))
    git(folder, "remote", "add", "origin", str(tmp_path / "tides.git"))
    return folder, git(folder, "rev-parse", "HEAD")


@pytest.mark.parametrize("also_elsewhere", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_newcomer_has_measured_commits_and_a_checked_pull_request_by_the_templates(
    installed, begun, running, connect, git, github, tmp_path, also_elsewhere
):
    """`also_elsewhere`: at a push too, and by GitLab's template."""
    folder, base = begun
    address = running.status()["url"]
    service = {"PULLBACK_SERVER": address, "XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path)}
    values = {
        "inputs.suite || 'quick'": "trial",
        "inputs.check || '--wait 20m'": "--fail-on regression,likely",
        "github.event.pull_request.base.sha": "",
        "github.head_ref || github.ref_name": "main",
        "!github.event.pull_request.head.repo.fork && vars.PULLBACK_URL || ''": address,
        "secrets.PULLBACK_TOKEN": "",
        "github.token": "secret",
    }
    git(folder, "checkout", "-q", "--detach")  # as CI does
    if also_elsewhere:
        lines, variables = _github("push", values)
        pushed = _shell(lines, folder, installed, service | variables)
        assert pushed.returncode == 0, pushed.stderr

    # A pull request from there, after which somebody else made the same mistake on main.
    git(folder, "checkout", "-qb", "topic", base)
    (folder / "waves.py").write_text(WAVES.format(times=3))
    git(folder, "commit", "-qam", "Three times the work")
    head = git(folder, "rev-parse", "HEAD")
    git(folder, "checkout", "-q", "-B", "main", base)
    (folder / "waves.py").write_text(WAVES.format(times=4))
    git(folder, "commit", "-qam", "Four times the work")
    later = git(folder, "rev-parse", "HEAD")
    git(folder, "push", "-q", "origin", "main", "topic")
    git(folder, "checkout", "-q", "--detach", "topic")
    lines, variables = _github(
        "pull_request",
        values | {"github.event.pull_request.base.sha": later, "github.head_ref || github.ref_name": "topic"},
    )
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7, "head": {"sha": head}}}))
    summary = tmp_path / "summary.md"
    told = {
        "GITHUB_EVENT_PATH": str(event), "GITHUB_BASE_REF": "main", "GITHUB_REPOSITORY": "o/r",
        "GITHUB_API_URL": github.url, "GITHUB_STEP_SUMMARY": str(summary),
    }  # fmt: skip
    checked = _shell(lines, folder, installed, service | variables | told)
    assert checked.returncode == 3, checked.stdout + checked.stderr
    ((run, comment),) = zip(github.check_runs, github.comments, strict=True)
    assert (run["head_sha"], run["conclusion"]) == (head, "failure")
    assert comment["body"] == summary.read_text()
    assert "`energy[n=1000,f8,cpu]`" in comment["body"]
    assert f"at {head[:10]} against {base[:10]}, the merge base with main" in comment["body"]
    reports = connect(address)
    if not also_elsewhere:
        assert [report["commit"] for report in reports.get("/api/v1/reports", project="tides")["items"]] == [head]
        return

    job = GITLAB["gradients"]
    request = {
        **job["variables"], **service, "PULLBACK_SUITE": "trial", "PULLBACK_CHECK": "--fail-on regression,likely",
        "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main", "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "topic",
    }  # fmt: skip
    merged = _shell("\n".join(job["script"]), folder, installed, request)
    assert merged.returncode == 3, merged.stdout + merged.stderr
    assert "failures=" in (folder / "check.xml").read_text()
    assert {str(folder / each) for each in job["artifacts"]["paths"]} <= {str(each) for each in folder.iterdir()}

    stored = reports.get("/api/v1/reports", project="tides")["items"]
    assert [report["commit"] for report in stored] == [head, head, base]


def test_the_templates_install_by_one_line_that_can_be_changed():
    (job,) = GITHUB["jobs"].values()
    (install,) = [step["run"] for step in job["steps"] if step.get("name") == "install"]
    assert GITHUB[True]["workflow_call"]["inputs"]["install"]["default"] in install  # YAML reads `on` as true
    assert GITLAB["gradients"]["before_script"] == ["$PULLBACK_INSTALL"]


@pytest.mark.long
def test_a_commit_that_is_pushed_to_a_bare_repository_is_on_its_page_in_a_minute_and_a_half(
    running, waves, folder, connect, until
):
    bare = folder / "waves.git"
    waves.git("clone", "-q", "--bare", str(waves.folder), str(bare))
    waves.git("remote", "add", "origin", str(bare))
    url = running.status()["url"]
    api = connect(url)
    with_data = ("--data", str(running.data))
    for arguments in (
        ("project", "create", "waves", *with_data),
        ("project", "set", "waves", "--mirror", str(bare), "--backfill", MEASURED_SUITE, *with_data),
    ):
        done = running.run(*arguments)
        assert done.returncode == 0, done.stderr
    agent = running.start(
        *("agent", "--server", url, "--repository", str(bare), "--data", str(folder / "agent")),
        *("--least-free-gib", "0.1"),
        log=running.home / "agent.log",
    )
    try:
        until(lambda: len(_reports(api)) == len(waves.shas), 300, "the history to be measured")
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


@pytest.mark.long
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_readmes_upload_is_accepted_without_a_token_and_may_be_repeated(running, waves, connect, tmp_path):
    (example,) = [block for block in re.findall(r"```sh\n(.*?)```", README.read_text(), re.DOTALL) if "curl" in block]
    wanted = ("--repository", str(waves.folder), "--project", "ripples", "--suite", "trial")
    measured = running.run("run", *wanted, "-o", str(tmp_path / "bench.json"))
    assert measured.returncode == 0, measured.stderr
    url = running.status()["url"]

    answers = [_paste(example, url, tmp_path) for _ in range(2)]

    assert answers[0]["status"] == "accepted"
    assert answers[0]["points"] > 0
    assert answers[0]["notes"] == []  # the runner claims nothing that its own numbers do not bear out
    assert answers[1] == answers[0]
    assert connect(url).get("/api/v1/reports")["items"][0]["id"] == answers[0]["id"]


def _paste(example, url, folder):
    done = subprocess.run(  # noqa: S602 - the README's own lines, which a shell has to read
        example,
        shell=True,
        env={"URL": url, "PATH": "/usr/bin:/bin"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)
