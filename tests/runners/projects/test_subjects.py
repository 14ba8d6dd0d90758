"""Commits built and compared as a user would, each by real processes."""

import json
import os
import shutil
import sys
import sysconfig
import time
import venv
import zipfile
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from tests.runners.projects.conftest import LIBRARY, PROJECT

from pullback_runners.errors import BuildError
from pullback_runners.projects import environments
from pullback_runners.projects.configuration import find_project
from pullback_runners.projects.folder_cache import cache_folder
from pullback_runners.projects.subjects import build_subject, subject_of_files
from pullback_runners.revisions import find_commit, find_commits


@pytest.fixture(scope="module")
def environment_with_pip(tmp_path_factory):
    """The folder of an environment with pip, once a test has made one."""
    return tmp_path_factory.mktemp("environment") / "with-pip"


@pytest.fixture(autouse=True)
def _pip_is_installed_once(monkeypatch, environment_with_pip):
    """Installing it takes four seconds; environments behind the first one are copies of it."""
    begin = environments.begin_environment

    def begin_once(base, folder, *, has_pip):
        if not has_pip:
            begin(base, folder, has_pip=False)
            return
        if not environment_with_pip.exists():
            environment_with_pip.mkdir()
            begin(base, environment_with_pip, has_pip=True)
        shutil.copytree(environment_with_pip, folder, symlinks=True, dirs_exist_ok=True)

    monkeypatch.setattr(environments, "begin_environment", begin_once)


@pytest.fixture
def compare(command):
    def run(folder, *arguments):
        return command("compare", "--suite", "quick", *arguments, folder=folder)

    return run


def built(repository, revision="HEAD"):
    return build_subject(find_project(repository.folder), repository.folder, find_commit(repository.folder, revision))


def wheel(folder, version, **modules):
    """A wheel that adds the packages of the running Python to an environment, so that nothing is fetched."""
    folder.mkdir(exist_ok=True)
    file = folder / f"base-{version}-py3-none-any.whl"
    about = f"base-{version}.dist-info"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("base.pth", sysconfig.get_path("purelib"))
        for name, text in modules.items():
            archive.writestr(f"{name}.py", text)
        archive.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: base\nVersion: {version}\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    return file


BACKEND = """
import pathlib
import zipfile


def build_wheel(folder, config_settings=None, metadata_directory=None):
    with zipfile.ZipFile(f"{folder}/waves-1-py3-none-any.whl", "w") as archive:
        archive.writestr("waves.py", pathlib.Path("src/waves.py").read_text() + "built = True\\n")
        archive.writestr("waves-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: waves\\nVersion: 1\\n")
        archive.writestr("waves-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        archive.writestr("waves-1.dist-info/RECORD", "")
    return "waves-1-py3-none-any.whl"
"""
"""A build backend that needs no package, so that nothing is fetched."""

BUILT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""


def build_a_wheel(repository):
    """Have the project's commits built by that backend."""
    repository.write("pyproject.toml", BUILT)
    repository.write("backend.py", BACKEND)
    repository.write("pullback.toml", '[build]\ninstall = "wheel"\nimport = ["waves"]\n')


def assert_equal(report):
    """Nothing differs but by noise, of which a short run on a busy machine has some."""
    rows = {row["metric"]: row for row in report["comparisons"]}
    assert rows["array_bytes"]["outcome"] == "equal"
    assert abs(rows["time"]["log_ratio"]) < 0.1


@pytest.mark.long
def test_a_slower_commit_is_found_and_an_equal_one_is_not_accused(compare, repository):
    repository.commit("first")
    repository.write("README", "words")
    repository.commit("words")
    repository.slow_down(2)
    repository.commit("slow")
    # an old workload is no obstacle: those of the candidate are measured
    slower = compare(repository.folder, "--against", "HEAD~1", "--json")
    assert slower.returncode == 3, slower.stderr
    report = json.loads(slower.stdout)
    (time,) = [row for row in report["comparisons"] if row["metric"] == "time"]
    assert (time["variant"], time["outcome"]) == ("waves", "slower")
    assert 1.6 < 2.718281828 ** time["log_ratio"] < 2.4
    assert report["project"] == "waves"
    assert report["harness"]["environments"]["shared"]
    assert not report["harness"]["equal_code"]

    equal = compare(repository.folder, "--against", "HEAD~2", "--candidate", "HEAD~1", "--json")
    report = json.loads(equal.stdout)
    assert report["harness"]["equal_code"]
    assert report["comparisons"] == []
    assert (equal.returncode, equal.stderr) == (0, "")


def test_a_commit_that_changes_nothing_measured_has_the_digest_of_the_one_before(repository):
    repository.commit("first")
    first = built(repository)
    repository.write("README", "words")
    repository.commit("words")
    repository.write("src/__pycache__/waves.pyc", "")
    assert built(repository).subject.digest == first.subject.digest is not None
    project = find_project(repository.folder)
    assert subject_of_files(project, repository.folder, pytest.fail).digest == first.subject.digest
    (repository.folder / "src/__pycache__/waves.pyc").unlink()
    repository.slow_down(2)
    assert subject_of_files(project, repository.folder, pytest.fail).digest is None  # these files are no commit's
    repository.commit("slow")
    assert (
        built(repository).subject.digest
        == subject_of_files(project, repository.folder, pytest.fail).digest
        != first.subject.digest
    )


def test_bytecode_that_somebody_committed_makes_no_difference(repository):
    repository.commit("first")
    first = built(repository)
    repository.write("src/__pycache__/waves.pyc", "x")
    repository.git("add", "-f", "src/__pycache__")
    repository.commit("bytecode")
    assert built(repository).subject.digest == first.subject.digest is not None


@pytest.mark.long
def test_what_is_installed_has_a_digest_of_its_own(repository):
    build_a_wheel(repository)
    repository.commit("first")
    first = built(repository)
    repository.write("pyproject.toml", (repository.folder / "pyproject.toml").read_text() + "\n# words\n")
    repository.commit("words")
    words = built(repository)
    assert words.subject.digest != first.subject.digest
    assert words.subject.code == first.subject.code is not None
    repository.slow_down(2)
    repository.commit("slow")
    assert built(repository).subject.code != first.subject.code


def test_a_workload_that_is_not_committed_yet_measures_both_commits(compare, repository):
    (repository.folder / "bench/total.py").rename(repository.folder / "total.py")
    (repository.folder / "pullback.toml").rename(repository.folder / "kept.toml")
    repository.git("add", "src")
    repository.git("commit", "-q", "-m", "first")
    (repository.folder / "total.py").rename(repository.folder / "bench/total.py")
    (repository.folder / "kept.toml").rename(repository.folder / "pullback.toml")
    done = compare(repository.folder, "--against", "HEAD", "--json", "--suite", "trial")
    assert_equal(json.loads(done.stdout))


@pytest.mark.long
def test_commits_with_other_requirements_have_an_environment_each(compare, repository, tmp_path):
    for version in ("1", "2"):
        file = wheel(tmp_path / "wheels", version)
        repository.write("requirements.txt", f"--no-index\n{file}\n")
        repository.write("pullback.toml", '[build]\nrequirements = ["requirements.txt"]\n[measure]\n'
                         'workloads = ["bench/total.py"]\nvariants = ["waves"]\n')  # fmt: skip
        repository.commit(version)
    done = compare(repository.folder, "--against", "HEAD~1", "--json", "--suite", "trial")
    report = json.loads(done.stdout)
    environments = report["harness"]["environments"]
    assert not environments["shared"]
    assert environments["reference"]["digest"] != environments["candidate"]["digest"]
    assert environments["candidate"]["python"] == sys.version.split()[0]
    assert_equal(report)


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("asked", [("run",), ("run", "--commits", "HEAD"), ("compare", "--against", "HEAD")])
def test_commands_tell_what_they_make_before_they_measure(command, repository, tmp_path, asked):
    repository.write("requirements.txt", f"--no-index\n{wheel(tmp_path / 'wheels', '1')}\n")
    repository.write("pullback.toml", '[build]\nrequirements = ["requirements.txt"]\ncommands = ["true"]\n[measure]\n'
                     'workloads = ["bench/total.py"]\nvariants = ["waves"]\n')  # fmt: skip
    sha = repository.commit("first")
    done = command(*asked, "--suite", "trial", folder=repository.folder)
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stderr.splitlines() if line.startswith(("making", "building"))]
    assert told[-2:] == [
        f"making the environment of {sha[:10]}: installing requirements.txt",
        f"building {sha[:10]}: `true`",
    ]


@pytest.mark.long
def test_a_commit_that_is_older_than_the_requirements_has_the_environment_of_today(repository, tmp_path):
    old = repository.commit("first")
    repository.write("requirements.txt", f"--no-index\n{wheel(tmp_path / 'wheels', '1')}\n")
    repository.write("pullback.toml", '[build]\nrequirements = ["requirements.txt"]\n')
    repository.commit("second")
    assert built(repository, old).environment == built(repository).environment


@pytest.mark.long
def test_a_commit_that_is_older_than_the_requirements_is_built_again_when_these_are_others(repository, tmp_path):
    old = repository.commit("first")
    repository.write("pullback.toml", '[build]\nrequirements = ["requirements.txt"]\n'
                     f"commands = ['echo x >> {tmp_path}/times']\n")  # fmt: skip

    def times(version):
        repository.write("requirements.txt", f"--no-index\n{wheel(tmp_path / 'wheels', version)}\n")
        built(repository, old)
        return (tmp_path / "times").read_text().count("x")

    assert [times("1"), times("1"), times("2")] == [1, 1, 2]


@pytest.mark.parametrize("asked", [("run",), ("run", "--commits", "HEAD")])
def test_a_build_that_is_interrupted_is_no_failure_of_its_commit(command, repository, asked):
    repository.write("pullback.toml", '[build]\ncommands = ["kill -INT $PPID; exit 130"]\n[measure]\n'
                     'workloads = ["bench/total.py"]\n')  # fmt: skip
    repository.commit("first")
    done = command(*asked, "--suite", "trial", folder=repository.folder)
    assert done.returncode == 130
    assert "cannot be built" not in done.stderr


def wait_for_end(*, session):
    """Wait for the processes of a session, which were killed: on a busy machine they end a moment later."""
    deadline = time.monotonic() + 30
    while at_work(session):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def at_work(session):
    found = []
    for process in psutil.process_iter():
        with suppress(ProcessLookupError, psutil.NoSuchProcess):
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


@pytest.mark.sample(every=2)
@pytest.mark.parametrize(("number", "status"), [("INT", 130), ("TERM", 143)])
@pytest.mark.parametrize("asked", [("run", "--commits", "HEAD"), ("compare", "--against", "HEAD")], ids=" ".join)
def test_a_signal_to_the_command_alone_ends_a_build_with_all_it_has_started(
    command, repository, tmp_path, asked, number, status
):
    hangs = f"echo $$ > {tmp_path}/pid; sleep 300 & kill -{number} $PPID; (sleep 300); true"
    repository.write("pullback.toml", f'[build]\ncommands = ["{hangs}"]\n[measure]\nworkloads = ["bench/total.py"]\n')
    repository.commit("first")
    done = command(*asked, "--suite", "trial", folder=repository.folder)
    assert (done.returncode, "cannot be built" in done.stderr) == (status, False)
    wait_for_end(session=int((tmp_path / "pid").read_text()))


def test_what_a_build_leaves_running_is_ended(repository, tmp_path):
    repository.write("pullback.toml", f'[build]\ncommands = ["sleep 300 & echo $$ > {tmp_path}/pid"]\n')
    repository.commit("first")
    built(repository)
    wait_for_end(session=int((tmp_path / "pid").read_text()))


def test_commands_are_run_once_a_commit(repository, tmp_path):
    repository.write("pullback.toml", f"[build]\ncommands = ['echo \"$NAME\" >> made.txt; echo x >> {tmp_path}/times']\n"
                     '[environment]\nNAME = "n"\n')  # fmt: skip
    repository.commit("first")
    for _ in range(2):
        assert (built(repository).files / "made.txt").read_text() == "n\n"
    assert (tmp_path / "times").read_text() == "x\n"
    assert not (repository.folder / "made.txt").exists()


def test_a_commit_is_built_again_when_a_package_it_was_built_against_is_another(repository, tmp_path, monkeypatch):
    venv.create(tmp_path / "venv", symlinks=True)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "venv/bin/python"))
    (packages,) = (tmp_path / "venv/lib").glob("python*/site-packages")
    repository.write("pullback.toml", f"[build]\ncommands = ['echo x >> {tmp_path}/times']\n")
    repository.commit("first")

    def times(name, version, **about):
        about = {"METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", **about}
        for file, text in about.items():
            place = packages / f"{name}.dist-info" / file.replace("_json", ".json")
            place.parent.mkdir(exist_ok=True)
            place.write_text(text)
        environments._packages_of.cache_clear()  # as in the next command
        built(repository)
        return (tmp_path / "times").read_text().count("x")

    assert times("base", "1") == 1
    assert times("base", "1") == 1
    assert times("base", "2") == 2
    # The project itself, installed from its folder, is another version with each commit.
    assert times("waves", "1.dev1", direct_url_json='{"dir_info": {"editable": true}, "url": "file:///waves"}') == 2


def test_a_command_that_fails_is_named_with_its_last_lines(repository):
    repository.write("pullback.toml", "[build]\ncommands = ['true', 'echo missing header >&2; exit 4']\n")
    sha = repository.commit("first")
    with pytest.raises(BuildError) as error:
        built(repository)
    assert str(error.value).splitlines() == [
        f"commit {sha[:10]} cannot be built: `echo missing header >&2; exit 4` ended with exit status 4",
        "  missing header",
    ]
    assert error.value.log == "missing header\n"


def test_the_signal_that_ended_a_command_is_named(repository):
    repository.write("pullback.toml", "[build]\ncommands = ['kill -9 $$']\n")
    repository.commit("first")
    with pytest.raises(BuildError, match=r"`kill -9 \$\$` ended with SIGKILL$"):
        built(repository)


def test_a_cache_that_cannot_be_written_is_no_fault_of_the_commit(repository, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    repository.write("pullback.toml", "")
    repository.commit("first")
    with pytest.raises(
        BuildError, match=r"^the cache .*file/pullback/projects/commits cannot be written \(Not a directory"
    ):
        built(repository)


def test_what_a_build_writes_outside_of_its_folder_is_told_each_time(repository):
    clone = repository.folder
    repository.write("pullback.toml", f"[build]\ncommands = ['echo x > inside.txt; echo x > {clone}/outside.txt']\n")
    repository.commit("first")
    first, again = built(repository), built(repository)
    assert first.outside == again.outside == (f"{clone}/outside.txt",)
    assert (
        f"files changed outside of its folder, with which other commits are measured: {clone}/outside.txt"
        in first.warning()
    )
    assert first.document()["outside"] == [f"{clone}/outside.txt"]


def test_what_the_build_of_the_files_as_they_are_writes_outside_is_told(repository, tmp_path):
    clone = repository.folder
    repository.write("pullback.toml", f"[build]\ncommands = ['date >> {clone}/outside.txt']\n")
    repository.commit("first")
    said = []
    for folder in ("unused", "copied"):  # the commit; files that nobody has committed
        subject_of_files(find_project(clone), tmp_path / folder, said.append)
    assert [sentence.partition(",")[0] for sentence in said] == [
        f"while {repository.git('rev-parse', 'HEAD')[:10]} was built",
        f"while {repository.git('rev-parse', 'HEAD')[:10]} was built",
    ]
    assert all(f"{clone}/outside.txt" in sentence for sentence in said)


def test_a_wheel_is_built_and_installed_beside_the_environment(repository):
    build_a_wheel(repository)
    repository.commit("first")
    ready = built(repository)
    (path,) = ready.subject.paths
    assert (path / "waves.py").read_text() == (repository.folder / "src/waves.py").read_text() + "built = True\n"
    assert ready.outside == ()


@pytest.mark.long
@pytest.mark.parametrize("asks_for_more", [False, pytest.param(True, marks=pytest.mark.long)])
def test_what_builds_wheels_is_installed_once_unless_it_asks_for_more(repository, tmp_path, asks_for_more):
    build_a_wheel(repository)
    tool = wheel(tmp_path / "wheels", "1").as_uri()
    repository.write("pyproject.toml", BUILT.replace("[]", f'["base @ {tool}"]', 1))
    noted = BACKEND.replace('"built = True\\n"', "f\"prefix = {__import__('sys').prefix!r}\\n\"")
    more = f"\n\ndef get_requires_for_build_wheel(settings=None):\n    return ['base @ {tool}']\n"
    repository.write("backend.py", noted + (more if asks_for_more else ""))
    built_in = []
    for title in ("first", "second"):
        repository.write("README", title)
        repository.commit(title)
        (path,) = built(repository).subject.paths
        built_in.append((path / "waves.py").read_text().rpartition("prefix = ")[2].strip().strip("'"))
    kept = cache_folder() / "backends"
    assert [Path(each).parent == kept for each in built_in] == [not asks_for_more] * 2
    assert len(set(built_in)) == 1
    assert len(list(kept.glob("*.bytes"))) == 1


def test_what_builds_wheels_and_cannot_be_installed_is_named(repository):
    build_a_wheel(repository)
    repository.write("pyproject.toml", BUILT.replace("[]", '["base @ file:///gone/base-1-py3-none-any.whl"]', 1))
    repository.commit("first")
    with pytest.raises(BuildError, match=r"installing \[build-system\] requires of pyproject.toml ended with"):
        built(repository)


def with_submodule(repository, build):
    """A repository with its own first commit as a submodule."""
    repository.commit("first")
    repository.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(repository.folder), "vendor/waves")
    repository.write("pullback.toml", f"[build]\n{build}\n")
    repository.commit("second")


def test_a_run_of_the_files_as_they_are_asks_for_a_listed_submodule(repository, tmp_path):
    with_submodule(repository, 'submodules = ["vendor/waves"]')
    repository.git("submodule", "deinit", "-q", "-f", "vendor/waves")
    said = "submodule vendor/waves, .* is not checked out; `git submodule update --init vendor/waves` does that"
    with pytest.raises(BuildError, match=said):
        subject_of_files(find_project(repository.folder), tmp_path, pytest.fail)


def test_a_build_that_fails_names_the_submodules_that_it_is_without(repository):
    with_submodule(repository, "commands = ['test -f vendor/waves/pullback.toml']")
    with pytest.raises(
        BuildError, match=r"its submodules are empty folders: vendor/waves; \[build\] submodules lists those"
    ):
        built(repository)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("vendor/waves/src", "it has no vendor/waves/src/ folder"),
        ("vendor", "the workloads import nothing from the commit's vendor/"),
    ],
)
def test_what_is_missing_where_a_submodule_is_not_listed_is_said_with_its_name(compare, repository, path, said):
    with_submodule(repository, f'path = ["{path}"]\n[measure]\nworkloads = ["bench/total.py"]')
    done = compare(repository.folder, "--against", "HEAD")
    assert done.returncode == 2
    assert said in done.stderr
    assert "its submodules are empty folders: vendor/waves; [build] submodules lists those" in done.stderr


def test_submodules_that_are_listed_have_their_files_wherever_the_clone_keeps_them(repository):
    with_submodule(repository, 'submodules = ["vendor/waves"]\npath = ["vendor/waves/src"]')
    ready = built(repository)
    (path,) = ready.subject.paths
    assert (path / "waves.py").read_text() == (repository.folder / "src/waves.py").read_text()
    first = ready.subject.digest
    repository.git("submodule", "deinit", "-q", "--force", "vendor/waves")
    assert built(repository).subject.digest == first  # the clone keeps its commits in .git/modules
    shutil.rmtree(repository.folder / ".git/modules")
    repository.write("other", "")
    sha = repository.commit("third")
    with pytest.raises(
        BuildError, match=f"commit {sha[:10]} cannot be built: commit .* of submodule vendor/waves, which"
    ):
        built(repository)


def test_a_submodule_that_a_commit_does_not_have_is_named(repository):
    repository.write("pullback.toml", '[build]\nsubmodules = ["vendor/gone"]\n')
    repository.commit("first")
    with pytest.raises(BuildError, match=r"it has no submodule vendor/gone, which pullback.toml names in \[build\]"):
        built(repository)


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (
            'requirements = ["gone.txt"]',
            "no file gone.txt, which pullback.toml names in [build] requirements, neither in",
        ),
        ('python = "3.99"', "there is no python3.99 on PATH"),
        ('python = "3.98"', "which pullback.toml asks for in [build] python, does not start (not switched on)"),
        ('python = "3.97.5"', "is Python 3.97.1, and pullback.toml asks for 3.97.5 in [build] python"),
        ('path = ["lib"]', "it has no lib/ folder"),
    ],
)
def test_what_a_commit_lacks_is_named(repository, build, said, tmp_path, monkeypatch):
    shims = tmp_path / "shims"
    shims.mkdir()
    for minor, program in ((98, "echo not switched on >&2; exit 127"), (97, "echo 3.97.1")):
        (shims / f"python3.{minor}").write_text(f"#!/bin/sh\n{program}\n")
        (shims / f"python3.{minor}").chmod(0o755)
    monkeypatch.setenv("PATH", str(shims), prepend=os.pathsep)
    repository.write("pullback.toml", f"[build]\n{build}\n")
    repository.commit("first")
    with pytest.raises(BuildError) as error:
        built(repository)
    assert said in str(error.value)


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(
    ("project", "said"),
    [
        (
            '[measure]\nworkloads = ["gone.py"]',
            "pullback.toml, line 2: [measure] workloads names gone.py, which does not exist",
        ),
        ("", "names no workloads; add [measure] workloads"),
        ('[build]\nimport = ["json"]\n[measure]\nworkloads = ["bench/total.py"]', "json came from"),
        (
            '[build]\nimport = ["gone"]\n[measure]\nworkloads = ["bench/total.py"]',
            "No module named 'gone', which [build] import names",
        ),
        ('[build]\npath = ["bench"]\n[measure]\nworkloads = ["alone.py"]', "import nothing from the commit's bench/"),
        ('[build]\ncommands = ["exit 4"]\n[measure]\nworkloads = ["bench/total.py"]', "`exit 4` ended with"),
    ],
)
def test_a_project_that_cannot_be_compared_is_refused_with_status_2(compare, repository, project, said):
    alone = (repository.folder / "bench/total.py").read_text().replace("import waves\n", "")
    repository.write("alone.py", alone)
    repository.write("pullback.toml", project)
    repository.commit("first")
    done = compare(repository.folder, "--against", "HEAD")
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
def test_a_commit_that_cannot_be_imported_stops_no_other_of_a_range(command, repository, tmp_path):
    text = (repository.folder / "src/waves.py").read_text()
    repository.commit("first")
    repository.write("src/waves.py", "raise ImportError('not yet')")
    sha = repository.commit("second")
    repository.write("src/waves.py", text)
    repository.commit("third")
    done = command("run", "--suite", "trial", "--json", "--commits", "HEAD~2..HEAD", folder=repository.folder)
    assert done.returncode == 1, done.stderr
    said = "not yet (src/waves.py, line 1), on importing waves, which [build] import names"
    assert f"commit {sha[:10]} cannot be measured: {said}" in done.stderr
    assert [report["commit"]["title"] for report in json.loads(done.stdout)] == ["third"]


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("imports", ["", PROJECT])
def test_a_commit_that_cannot_be_loaded_names_its_line_and_leaves_the_traceback(command, compare, repository, imports):
    repository.write("pullback.toml", imports or PROJECT.replace('import = ["waves"]', ""))
    repository.commit("first")
    repository.write("src/parts.py", "def broken(:\n")
    repository.write("src/waves.py", "import parts\n")
    sha = repository.commit("second")
    place = "src/parts.py, line 1): SyntaxError: invalid syntax"
    if imports:
        place = "SyntaxError: invalid syntax (src/parts.py, line 1), on importing waves, which [build] import names"
    compared = compare(repository.folder, "--against", "HEAD~1")
    assert compared.returncode == 2
    assert f"commit {sha[:10]} cannot be measured: " in compared.stderr
    assert place in compared.stderr
    ranged = command("run", "--suite", "trial", "--commits", "HEAD~1..HEAD", "-o", "history", folder=repository.folder)
    assert place in ranged.stderr
    (log,) = (repository.folder / "history").glob("*.log")
    assert 'waves.py", line 1, in <module>' in log.read_text()


@pytest.mark.long
def test_a_commit_that_cannot_be_loaded_ends_no_search(command, repository):
    repository.commit("first")
    repository.write("src/waves.py", "def broken(:\n")
    sha = repository.commit("broken")
    repository.slow_down(3)
    repository.commit("slow")
    done = command("bisect", "--good", "HEAD~2", "--suite", "trial", folder=repository.folder)
    assert done.returncode == 125, done.stderr
    assert f"{sha[:10]} unusable, commit {sha[:10]} cannot be measured: SyntaxError" in done.stderr


@pytest.mark.long
def test_a_range_ends_with_what_changed_between_its_commits(command, repository):
    repository.commit("first")
    repository.slow_down(3)
    older = repository.commit("second")
    repository.slow_down(1)
    newer = repository.commit("third")
    asked = ("run", "--suite", "trial", "--commits", "HEAD~2..HEAD")
    told = command(*asked, folder=repository.folder).stdout.splitlines()[-1]
    assert told.startswith(f"{newer[:10]} against {older[:10]}: ")
    assert " better of " in told
    first, second = json.loads(command(*asked, "--json", folder=repository.folder).stdout)
    assert first["changes"] is None
    assert second["changes"]["reference"] == older
    assert "array_bytes" in {each["metric"] for each in second["changes"]["changed"]}


RAISES = """
    import numpy as np


    def value_and_grad(x):
        return _halved(x), np.cos(x)


    def _halved(x):
        return np.linalg.solve(np.zeros((2, 2)), x[:2])
"""


@pytest.mark.sample(every=6)
@pytest.mark.parametrize("asked", [("run",), ("run", "--commits", "HEAD"), ("compare", "--against", "HEAD~1")])
@pytest.mark.parametrize("install", ["path", "wheel"])
def test_what_is_raised_names_the_line_of_the_library_as_the_commit_has_it(command, repository, asked, install):
    place = "src/waves.py"
    if install == "wheel":
        place = "waves.py"
        repository.write("backend.py", BACKEND)
        repository.write(
            "pyproject.toml", '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        )
        repository.write("pullback.toml", PROJECT.replace("[build]", '[build]\ninstall = "wheel"'))
    repository.commit("first")
    repository.write("src/waves.py", RAISES)
    repository.commit("second")
    done = command(*asked, "--suite", "trial", "--json", folder=repository.folder)
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    (case,) = (report[0] if isinstance(report, list) else report)["cases"]
    (failed,) = (each["error"]["message"] for each in case["variants"] if each["variant"] == "waves")
    assert failed.removeprefix("candidate: ").startswith("LinAlgError: Singular matrix (")
    assert f"bench/total.py, line 25, in the variant waves of total; from {place}, line 10, in _halved)" in failed
    assert "/commits/" not in failed


def test_a_reference_without_any_workload_in_common_is_refused(compare, repository):
    text = (repository.folder / "src/waves.py").read_text()
    repository.write("src/waves.py", "")
    repository.write("src/waves/__init__.py", "raise ImportError('not yet')")
    (repository.folder / "src/waves.py").unlink()
    sha = repository.commit("first")
    repository.write("src/waves/__init__.py", text)
    repository.commit("second")
    done = compare(repository.folder, "--against", "HEAD~1")
    assert done.returncode == 2
    assert f"the reference {sha[:10]} has none of the workloads: not yet" in done.stderr


@pytest.mark.long
def test_a_workload_that_an_older_commit_cannot_import_is_no_file_to_fix(command, compare, repository):
    repository.commit("first")
    (repository.folder / "src/waves.py").rename(repository.folder / "src/tides.py")
    file = repository.folder / "bench/total.py"
    file.write_text(file.read_text().replace("import waves", "import tides as waves"))
    repository.write("pullback.toml", '[measure]\nworkloads = ["bench/total.py"]\n[build]\nimport = []')
    repository.commit("second")
    compared = compare(repository.folder, "--against", "HEAD~1")
    assert compared.returncode == 2
    assert "No module named 'tides'; pass --workloads with a file that both commits can run\n" in compared.stderr
    ranged = command("run", "--suite", "trial", "--commits", "HEAD~1..HEAD", folder=repository.folder)
    assert ranged.returncode == 0, ranged.stderr
    (repository.folder / "src/tides.py").rename(repository.folder / "src/waves.py")
    repository.commit("third")
    ranged = command("run", "--suite", "trial", "--commits", "HEAD~2..HEAD", folder=repository.folder)
    assert ranged.returncode == 1
    assert "No module named 'tides'\n" in ranged.stderr


ONE_OR_THE_OTHER = """
    from pullback_runners.workloads import grid, workload

    import waves


    def measured(n):
        "What one of the two commits computes."


    measured.__name__ = "after" if hasattr(waves, "newer") else "before"
    declared = workload(wrt="x", numpy=False, quick=grid(n=(100,)))(measured)


    @declared.inputs
    def _(rng, dtype, n):
        return {"x": rng.uniform(0.5, 1.5, n).astype(dtype)}


    @declared.peer("waves")
    def _(x, n):
        value, gradient = waves.value_and_grad(x)
        return value, {"x": gradient}
    """


def test_commits_without_a_case_in_common_are_refused(compare, repository):
    repository.write("bench/total.py", ONE_OR_THE_OTHER)
    first = repository.commit("first")
    repository.write("src/waves.py", (repository.folder / "src/waves.py").read_text() + "\n\nnewer = True\n")
    second = repository.commit("second")
    done = compare(repository.folder, "--against", "HEAD~1")
    assert done.returncode == 2
    assert (
        f"no case exists at both commits: {first[:10]} has before[n=100,f8,cpu], {second[:10]} has after[n=100,f8,cpu]; "
        "pass --workloads with a file that both commits can run" in " ".join(done.stderr.split())
    )


def test_commits_without_a_variant_in_common_are_refused(compare, repository):
    text = (repository.folder / "bench/total.py").read_text()
    repository.write(
        "pullback.toml", (repository.folder / "pullback.toml").read_text().replace('variants = ["waves"]\n', "")
    )
    repository.write("bench/total.py", text.replace('wrt="x"', 'wrt="x", numpy=False').replace(
        '@total.peer("waves")', '@total.peer("newer" if hasattr(waves, "newer") else "older")'))  # fmt: skip
    repository.commit("first")
    repository.write("src/waves.py", (repository.folder / "src/waves.py").read_text() + "\n\nnewer = True\n")
    repository.commit("second")
    done = compare(repository.folder, "--against", "HEAD~1")
    assert done.returncode == 2
    assert "no variant exists at both commits: reference: " in done.stderr
    assert "newer" in done.stderr


@pytest.mark.long
def test_a_variant_that_a_commit_does_not_have_is_told_and_takes_no_time_of_the_others(compare, repository):
    repository.write(
        "pullback.toml", (repository.folder / "pullback.toml").read_text().replace('variants = ["waves"]\n', "")
    )
    text = (repository.folder / "bench/total.py").read_text().replace('wrt="x"', 'wrt="x", numpy=False')
    repository.write(
        "bench/total.py",
        f"{text}\n\nif hasattr(waves, 'newer'):\n    for name in 'abcd':\n        total.peer(name)(total.variants['waves'])\n",
    )
    repository.commit("first")
    repository.write("src/waves.py", (repository.folder / "src/waves.py").read_text() + "\n\nnewer = True\n")
    repository.commit("second")
    done = compare(repository.folder, "--against", "HEAD~1", "--json")
    report = json.loads(done.stdout)
    assert {row["variant"] for row in report["comparisons"]} == {"waves"}
    assert [sentence.partition(": ")[0] for sentence in report["harness"]["absent"]] == [
        "a, b, c, d take part in no case"
    ]
    assert report["harness"]["budget"]["comparisons_s"] == 60  # one comparison is there, not five


@pytest.mark.parametrize("arguments", [["run"], ["compare", "--suite", "quick", "--against", "HEAD"]])
def test_an_unknown_variant_is_refused_with_those_that_the_project_has(command, repository, arguments):
    repository.commit("first")
    done = command(*arguments, "--variant", "wave", folder=repository.folder)
    assert done.returncode == 2
    assert done.stderr == "pullback: no variant 'wave'; known: unfused, fused, stateful, native, waves\n"


def test_without_a_numpy_form_the_known_variants_are_those_that_are_declared(command, repository):
    text = (repository.folder / "bench/total.py").read_text()
    repository.write("bench/total.py", text.replace('wrt="x"', 'wrt="x", numpy=False'))
    repository.commit("first")
    done = command("run", "--variant", "fused", folder=repository.folder)
    assert (done.returncode, done.stderr) == (2, "pullback: no variant 'fused'; known: waves\n")


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("file", ["csrc/kernel.c", "rust/src/lib.rs", "setup.cfg", "CMakeLists.txt", "include/k.hpp"])
def test_what_is_compiled_makes_commits_differ_wherever_it_lies(repository, file):
    repository.write("pullback.toml", '[build]\ncommands = ["true"]\nimport = ["waves"]\n')
    repository.write(file, "one")
    repository.commit("first")
    first = built(repository)
    repository.write("README", "words")
    repository.commit("words")
    assert built(repository).subject.digest == first.subject.digest is not None
    repository.write(file, "two")
    repository.commit("second")
    assert built(repository).subject.digest != first.subject.digest
    assert [each["title"] for each in find_commits(find_project(repository.folder), "HEAD~2..HEAD")] == ["second"]


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("way", ["-r pinned/all.txt", "--requirement=pinned/all.txt", "-c pinned/all.txt"])
def test_what_requirements_include_makes_another_environment(repository, tmp_path, way):
    repository.write("requirements.txt", f"--no-index\n{wheel(tmp_path / 'wheels', '1')}\n{way}\n")
    repository.write("pullback.toml", '[build]\nrequirements = ["requirements.txt"]\n')
    seen = []
    for words in ("one", "two"):
        repository.write("pinned/all.txt", f"# {words}\n")
        repository.commit(words)
        seen.append(built(repository))
    assert seen[0].environment.digest != seen[1].environment.digest
    assert seen[0].subject.digest != seen[1].subject.digest


def test_packages_on_a_path_of_the_shell_are_no_part_of_an_environment(repository, tmp_path, monkeypatch):
    file = wheel(tmp_path / "wheels", "1")
    with zipfile.ZipFile(file) as archive:
        archive.extractall(tmp_path / "shell")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "shell"))
    repository.write("requirements.txt", f"--no-index\n--find-links {file.parent}\nbase\n")
    repository.write("pullback.toml", '[build]\nrequirements = ["requirements.txt"]\n')
    repository.commit("first")
    python = built(repository).environment.python
    assert list(python.parent.parent.glob("lib/python*/site-packages/base-1.dist-info"))


def test_a_commit_is_built_again_for_other_flags_of_a_compiler(repository, tmp_path, monkeypatch):
    repository.write("pullback.toml", f"[build]\ncommands = ['echo \"$CFLAGS\" >> {tmp_path}/flags']\n")
    repository.commit("first")
    for flags in ("-O0", "-O3", "-O0"):
        monkeypatch.setenv("CFLAGS", flags)
        built(repository)
    assert (tmp_path / "flags").read_text() == "-O0\n-O3\n"


@pytest.mark.long
def test_an_environment_whose_python_was_uninstalled_is_made_again(repository, tmp_path):
    repository.write("requirements.txt", f"--no-index\n{wheel(tmp_path / 'wheels', '1')}\n")
    repository.write("pullback.toml", '[build]\nrequirements = ["requirements.txt"]\n')
    repository.commit("first")
    python = built(repository).environment.python
    python.unlink()
    python.symlink_to(tmp_path / "gone")
    assert built(repository).environment.python.exists()


@pytest.mark.parametrize("asked", [("run", "--commits", "HEAD"), ("compare", "--against", "HEAD~1")])
def test_what_pyximport_keeps_for_all_commits_is_taken_for_that_of_none(
    command, repository, tmp_path, monkeypatch, asked
):
    kept = tmp_path / "home/.pyxbld/lib"
    kept.mkdir(parents=True)
    (kept / "tides.py").write_text("from numpy import cos\n")
    monkeypatch.setenv("PYTHONPATH", str(kept))  # pyximport finds it there
    repository.write("src/waves.py", LIBRARY.format(times=1).replace("import numpy", "import tides, numpy"))
    repository.commit("first")
    repository.write("src/waves.py", LIBRARY.format(times=2).replace("import numpy", "import tides, numpy"))
    repository.commit("second")
    done = command(*asked, "--suite", "trial", folder=repository.folder)
    assert done.returncode == 2, done.stderr
    assert (
        f"tides came from {kept}/tides.py, where pyximport keeps one build for all commits; build it in" in done.stderr
    )


@pytest.mark.parametrize("name", ["compare", "run"])
def test_modules_of_the_files_checked_out_are_not_taken_for_those_of_a_commit(command, repository, name, monkeypatch):
    """As an editable install has them, of a second package of the repository."""
    repository.write("tides/tides.py", "from waves import value_and_grad\n")
    file = repository.folder / "bench/total.py"
    file.write_text(file.read_text().replace("import waves", "import tides as waves"))
    repository.commit("first")
    repository.slow_down(2)
    repository.commit("slow")
    monkeypatch.setenv("PYTHONPATH", str(repository.folder / "tides"))
    which = ["--against", "HEAD~1"] if name == "compare" else ["--commits", "HEAD"]
    done = command(name, "--suite", "trial", *which, folder=repository.folder)
    assert done.returncode == 2, done.stderr
    assert f"tides came from {repository.folder}/tides/tides.py, the files that are checked out" in done.stderr


def test_commits_of_which_nothing_is_imported_are_told_to_be_the_same(command, repository):
    alone = (repository.folder / "bench/total.py").read_text().partition("@total.peer")[0].replace("import waves\n", "")
    repository.write("bench/total.py", alone)
    repository.write("pullback.toml", '[measure]\nworkloads = ["bench/total.py"]\nvariants = ["unfused"]\n')
    repository.commit("first")
    done = command("run", "--suite", "trial", "--commits", "HEAD", "--quiet", folder=repository.folder)
    assert done.returncode == 0, done.stderr
    assert "the workloads import nothing from the commit's src/, so that each commit would be the same" in done.stderr


@pytest.mark.long
def test_a_namespace_package_of_a_commit_is_seen(compare, repository):
    (repository.folder / "src/sea").mkdir()
    (repository.folder / "src/waves.py").rename(repository.folder / "src/sea/waves.py")
    file = repository.folder / "bench/total.py"
    file.write_text(file.read_text().replace("import waves", "from sea import waves"))
    repository.write("pullback.toml", '[measure]\nworkloads = ["bench/total.py"]\nvariants = ["waves"]\n')
    repository.commit("first")
    done = compare(repository.folder, "--against", "HEAD", "--suite", "trial")
    assert "import nothing" not in done.stderr
    assert done.returncode in {0, 3}, done.stderr  # 3 if noise makes a program slower than itself


BACKGROUND = """
import subprocess, sys, threading, time

subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
threading.Thread(target=time.sleep, args=(600,)).start()
"""


def test_what_a_workload_leaves_running_holds_nobody_up(command, repository):
    file = repository.folder / "bench/total.py"
    file.write_text(BACKGROUND + file.read_text())
    repository.commit("first")
    done = command("run", "--list", folder=repository.folder)
    assert done.returncode == 0, done.stderr


def test_a_workload_file_that_ends_the_process_is_said(command, repository):
    repository.write("bench/total.py", "import os\nos._exit(0)\n")
    repository.commit("first")
    done = command("run", "--list", folder=repository.folder)
    assert done.returncode == 2
    assert "cannot load workloads: exit status 0" in done.stderr


@pytest.mark.long
def test_a_workload_that_was_edited_and_not_committed_is_said_not_to_be_measured(compare, repository):
    repository.commit("first")
    repository.write("README", "words")
    repository.commit("second")
    file = repository.folder / "bench/total.py"
    file.write_text(file.read_text().replace("n=(4000,)", "n=(40,)"))
    done = compare(repository.folder, "--against", "HEAD~1")
    assert (
        "bench/total.py differs from HEAD, whose file is measured; --workloads bench/total.py takes it" in done.stderr
    )
    assert "bench/total.py" not in compare(repository.folder, "--against", "HEAD~1", "--workloads", file).stderr


@pytest.mark.parametrize("link", ["src/shared.py", "src/deeper"])
def test_what_a_link_leads_to_makes_commits_differ(repository, link):
    repository.write("common/shared.py", "one")
    place = repository.folder / link
    place.symlink_to("../common/shared.py" if link.endswith(".py") else "../common")
    repository.commit("first")
    first = built(repository)
    repository.write("README", "words")
    repository.commit("words")
    assert built(repository).subject.digest == first.subject.digest is not None
    repository.write("common/shared.py", "two")
    repository.commit("second")
    assert built(repository).subject.digest != first.subject.digest


@pytest.mark.long
def test_an_installed_package_is_not_compared_in_the_place_of_a_commit_that_has_none(compare, repository, tmp_path):
    file = wheel(tmp_path / "wheels", "1", waves=(repository.folder / "src/waves.py").read_text())
    repository.write("requirements.txt", f"--no-index\n{file}\n")
    repository.write("pullback.toml", '[build]\nrequirements = ["requirements.txt"]\n[measure]\n'
                     'workloads = ["bench/total.py"]\nvariants = ["waves"]\n')  # fmt: skip
    waves, tides = (repository.folder / "src" / name for name in ("waves.py", "tides.py"))
    waves.rename(tides)
    first = repository.commit("first")
    tides.rename(waves)
    repository.commit("second")
    done = compare(repository.folder, "--against", "HEAD~1")
    assert done.returncode == 2
    assert f"{first[:10]} has no waves of its own, so the installed one would be compared" in done.stderr
