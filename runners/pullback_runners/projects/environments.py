"""Environments: a Python with what the requirements of a commit name, made once for all commits that name the same."""

import hashlib
import logging
import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pullback_runners.errors import BuildError, how_it_ended
from pullback_runners.git import variables_elsewhere
from pullback_runners.projects.build_steps import environment_of_it, is_stopped, step
from pullback_runners.projects.configuration import FILE, Build
from pullback_runners.projects.folder_cache import kept_folder
from pullback_runners.projects.requirements import local_files, local_places, requirement_files

_log = logging.getLogger(__name__)
"""Commands of builds with all they print, which the log of a job shows."""

MOST_BYTES = 20 << 30
_TIMEOUT_S = 3600
_LOOK_EVERY_S = 0.2
_LISTS_PACKAGES = """
import sys
from importlib.metadata import distributions
sys.path = [each for each in sys.path if each]  # without the folder that one stands in
for line in sorted({
    f"{each.metadata['Name']} {each.version}"
    for each in distributions()
    if '"dir_info"' not in (each.read_text("direct_url.json") or "")
}):
    print(line)
"""
_LAST_LINES = 16


@dataclass(frozen=True)
class Environment:
    """An interpreter with its packages. The one that Pullback runs in has no digest."""

    python: Path
    version: str
    digest: str | None = None

    def document(self) -> dict[str, Any]:
        """The environment as a report describes it."""
        return {"digest": self.digest, "python": self.version}


OWN = Environment(Path(sys.executable), platform.python_version())
"""The environment that Pullback itself runs in."""


def make_environment(build: Build, files: Path, current: Path, cache_root: Path) -> Environment:
    """The environment of a commit whose files lie in a folder; BuildError says why there is none.

    A requirements file that the commit lacks, being older than it, is the one in the folder `current`, as a workload would be.
    """
    base = _find_python(build.python)
    version = _version_of(base)
    if not build.requirements:
        return Environment(base, version)
    has_pip = bool(build.commands)  # which may call it: another one on PATH would install into another environment
    about = f"{platform_of(base)}{' pip' if has_pip else ''}\0"
    digest = hashlib.sha256(about.encode())
    results = []
    for name in build.requirements:
        places = [place / name for place in (files, current) if (place / name).is_file()]
        if not places:
            raise BuildError(
                f"there is no file {name}, which {FILE} names in [build] requirements, neither in the commit nor in {current}; "
                "add it, or name an existing one"
            )
        results.append(places[0])
        digest.update(name.encode() + b"\0" + _measured_of(places[0]) + b"\0")
        folder = places[0].parents[len(Path(name).parts) - 1]
        for part in (*requirement_files(places[0])[1:], *local_files(places[0], folder)):
            digest.update(part.name.encode() + b"\0" + part.read_bytes() + b"\0")
    short = digest.hexdigest()[:16]

    def make(folder: Path) -> None:
        _make(base, results, folder, has_pip=has_pip)

    def starts(folder: Path) -> bool:
        return (folder / "bin" / "python").exists()  # a link to a Python, which may have been uninstalled

    with environment_of_it():
        path = kept_folder(cache_root / short, make, MOST_BYTES, starts)
    return Environment(path / "bin" / "python", version, short)


def built_against(build: Build) -> tuple[str, ...]:
    """The Python that commits are built with, and the packages that are there where it is in no environment of Pullback's making.

    They change without a commit: what was compiled against them has to be built again. Others are in the commit's requirements.
    """
    base = _find_python(build.python)
    return (platform_of(base), *(() if build.requirements else _packages_of(base)))


@cache
def _packages_of(python: Path) -> tuple[str, ...]:
    """The packages of a Python with their versions, but for those of folders, which commits themselves are often installed from."""
    command = [str(python), "-c", _LISTS_PACKAGES]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=own_variables())  # noqa: S603 - a Python
    return tuple(done.stdout.splitlines())


def run_logged(command: Sequence[str] | str, where: Path, what: str, variables: dict[str, str] | None = None) -> None:
    """Run a command of a build; where it fails BuildError says which it was and ends with the last lines of its output."""
    _log.info("$ %s", command if isinstance(command, str) else shlex.join(command))
    # Into a file: a pipe would be waited for as long as a server runs that has left the session.
    with tempfile.TemporaryFile() as output:
        with step(what.rstrip(",")):
            process = subprocess.Popen(  # noqa: S603 - commands of the project's own file
                command,
                cwd=where,
                env=own_variables() if variables is None else variables,
                shell=isinstance(command, str),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            with _ended_as_a_whole(process):
                status = _wait(process, what)
        output.seek(0)
        written = output.read().decode(errors="replace")
    _log.info("%s", written.rstrip())
    if status != 0:
        log = "".join(f"\n  {line}" for line in written.strip().splitlines()[-_LAST_LINES:])
        raise BuildError(f"{what} ended with {how_it_ended(status)}{log}", written)


@contextmanager
def _ended_as_a_whole(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    """End at the end all that the leader of a session has started there, also where this process is killed meanwhile.

    What goes on would write into the folder of the next build of the same commit, or run beside what is measured.
    """
    # Another process: it reads to its end a pipe that nobody else holds open.
    watch = ["/bin/sh", "-c", 'read -r _; kill -s KILL -- "-$0"', str(process.pid)]
    with subprocess.Popen(  # noqa: S603 - our own words
        watch, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as watching:
        try:
            yield
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            watching.kill()


def _wait(process: "subprocess.Popen[bytes]", what: str) -> int:
    """The exit status of a command of a build, unless that is interrupted or takes too long."""
    began = time.monotonic()
    while True:
        try:
            return process.wait(_LOOK_EVERY_S)
        except subprocess.TimeoutExpired as error:
            if is_stopped():
                raise BuildError(f"{what} was interrupted") from error
            if time.monotonic() - began > _TIMEOUT_S:
                raise BuildError(f"{what} did not end in {_TIMEOUT_S} s") from error


def begin_environment(base: Path, folder: Path, *, has_pip: bool) -> None:
    """Make an empty environment by uv where that is installed, by venv otherwise."""
    if uv := shutil.which("uv"):
        options = ["--allow-existing", *(["--seed"] if has_pip else [])]
        run_logged([uv, "venv", "--quiet", *options, "--python", str(base), str(folder)], folder, "uv venv")
    else:
        options = ["--without-pip"] if find_spec("pip") and not has_pip else []
        run_logged([str(base), "-m", "venv", *options, str(folder)], folder, "python -m venv")


def platform_of(python: Path) -> str:
    """The version of a Python and the platform: environments of another one hold other files."""
    return f"{_version_of(python)} {sysconfig.get_platform()} {platform.libc_ver()}"


def installer(python: Path) -> list[str]:
    """The command that installs into the environment of a Python: uv's where that is installed, else pip's.

    The pip beside Pullback serves all environments, if there is one: installing it into each takes longer than all else. For
    another Python it starts itself again.
    """
    uv = shutil.which("uv")
    if uv:
        return [uv, "pip", "install", "--quiet", "--python", str(python)]
    other = find_spec("pip") and str(python) != sys.executable
    pip = [sys.executable, "-m", "pip", "--python", str(python)] if other else [str(python), "-m", "pip"]
    return [*pip, "install", "--quiet", "--disable-pip-version-check"]


def own_variables() -> dict[str, str]:
    """The variables of this process for what installs and builds: of packages on `PYTHONPATH` pip says that they are installed."""
    return {name: value for name, value in variables_elsewhere().items() if name != "PYTHONPATH"}


def table_of(tables: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """The table of these names in a file of somebody else; empty where there is none."""
    for name in names:
        result = tables.get(name)
        tables = result if isinstance(result, dict) else {}
    return tables


def dependencies_of(pyproject: Mapping[str, Any]) -> list[str]:
    """`[project] dependencies` of a pyproject.toml."""
    listed = table_of(pyproject, "project").get("dependencies", [])
    return [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else []


def _measured_of(file: Path) -> bytes:
    """The part of a requirements file that makes another environment: of pyproject.toml the dependencies, of others all."""
    if file.name != "pyproject.toml":
        return file.read_bytes()
    try:
        return "\n".join(dependencies_of(tomllib.loads(file.read_text(encoding="utf-8")))).encode()
    except (ValueError, RecursionError) as error:
        raise BuildError(f"{file.name}, which {FILE} names in [build] requirements, cannot be read: {error}") from error


def _make(base: Path, requirements: Sequence[Path], folder: Path, *, has_pip: bool) -> None:
    """Make an environment, install requirements, and add NumPy if nothing brings it."""
    begin_environment(base, folder, has_pip=has_pip)
    python = folder / "bin" / "python"
    for file in requirements:
        listed = file
        if file.name == "uv.lock":
            uv = shutil.which("uv")
            if not uv:
                raise BuildError("uv.lock is read by uv, which is not installed; install uv")
            listed = folder / "requirements.txt"
            # Members of a workspace are the commit's own files, which come by [build] path; here is what they require.
            members = ["--all-packages", "--no-emit-workspace"]
            export = [uv, "export", "--quiet", "--frozen", *members, "--output-file", str(listed)]
            run_logged(export, file.parent, "uv export")
            local_places(file.name, listed.read_text(encoding="utf-8").splitlines(), file.parent, file.parent)
        elif file.name == "pyproject.toml":
            listed = folder / "requirements.txt"
            listed.write_bytes(_measured_of(file))
        run_logged([*installer(python), "-r", str(listed)], file.parent, f"installing {file.name}")
    seen = [str(python), "-c", "import numpy"]
    if subprocess.run(seen, check=False, capture_output=True, env=own_variables()).returncode != 0:  # noqa: S603 - a Python that we made
        run_logged([*installer(python), "numpy"], folder, "installing numpy, which arguments are drawn by,")


def _find_python(requested: str | None) -> Path:
    """The Python that a project asks for, by default the one that runs this."""
    if requested is None or _is(platform.python_version(), requested):
        return Path(sys.executable)
    minor = ".".join(requested.split(".")[:2])
    output = shutil.which(f"python{minor}")
    if output is None:
        raise BuildError(f"there is no python{minor} on PATH, which {FILE} asks for in [build] python; install it")
    version = _version_of(Path(output))
    if not _is(version, requested):
        raise BuildError(
            f"{output} is Python {version}, and {FILE} asks for {requested} in [build] python; "
            f'install that, or write python = "{minor}" if any {minor} will do'
        )
    return Path(output)


def _is(version: str, wanted: str) -> bool:
    return version.split(".")[: wanted.count(".") + 1] == wanted.split(".")


@cache
def _version_of(python: Path) -> str:
    if python == Path(sys.executable):
        return platform.python_version()
    command = [str(python), "-c", "import platform; print(platform.python_version())"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 - a Python
    if done.returncode != 0:  # as a shim of pyenv for a version that is not switched on
        message = next(iter(done.stderr.strip().splitlines()), f"exit status {done.returncode}")
        raise BuildError(
            f"{python}, which {FILE} asks for in [build] python, does not start ({message}); "
            f"install {python.name}, or put one that starts first on PATH"
        )
    return done.stdout.strip()
