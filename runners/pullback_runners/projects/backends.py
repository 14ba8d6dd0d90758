"""Environments of build backends, kept for all commits that name the same: for pip alone installing one takes longer than all else of a build."""

import os
import shutil
import subprocess
import tomllib
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from pullback_runners.projects.environments import begin_environment, installer, platform_of, run_logged
from pullback_runners.projects.folder_cache import cache_folder, kept_folder

MOST_BYTES = 2 << 30
_TIMEOUT_S = 300

_ASKS_FOR_MORE = """
import importlib, sys
backend, *folders = sys.argv[1:]
sys.path[:0] = folders
module, _, names = backend.partition(":")
found = importlib.import_module(module)
for name in filter(None, names.split(".")):
    found = getattr(found, name)
sys.exit(bool(getattr(found, "get_requires_for_build_wheel", list)()))
"""
"""Ends with 0 if a backend needs nothing beyond `[build-system] requires` (PEP 517)."""


def backend_for(python: Path, files: Path, variables: Mapping[str, str]) -> Path | None:
    """The Python of an environment that builds the wheel of a commit; None where the installer has to make one for it alone.

    That is so with uv, which makes one in no time, where nothing is required, and where the backend asks for more than the file
    says.
    """
    found = make_backend(python, files, variables)
    if found is None:
        return None
    system = _build_system(files / "pyproject.toml")
    backend = str(system.get("build-backend", "setuptools.build_meta:__legacy__"))
    folders = [str(files / str(each)) for each in system.get("backend-path", ())]
    result = subprocess.run(  # noqa: S603 - a backend of the commit, which is to build it
        [str(found), "-P", "-c", _ASKS_FOR_MORE, backend, *folders],
        check=False,
        cwd=files,
        env=variables_for(found, variables),
        capture_output=True,
        timeout=_TIMEOUT_S,
    )
    return found if result.returncode == 0 else None


def make_backend(python: Path, files: Path, variables: Mapping[str, str]) -> Path | None:
    """The Python of an environment with what a commit's backend requires, or None as above; nothing of the commit is run."""
    requires = _build_system(files / "pyproject.toml").get("requires")
    if not requires or shutil.which("uv"):
        return None
    about = f"{platform_of(python)}\0{requires}"

    def make(folder: Path) -> None:
        begin_environment(python, folder, has_pip=False)
        command = [*installer(folder / "bin" / "python"), "--", *map(str, requires)]
        run_logged(command, folder, "installing [build-system] requires of pyproject.toml", dict(variables))

    place = cache_folder() / "backends" / sha256(about.encode()).hexdigest()[:16]
    return kept_folder(place, make, MOST_BYTES) / "bin" / "python"


def variables_for(backend: Path, variables: Mapping[str, str]) -> dict[str, str]:
    """The environment variables of a build, with the programs of the backend's environment first on `PATH`."""
    return {**variables, "PATH": os.pathsep.join([str(backend.parent), variables.get("PATH", os.defpath)])}


def _build_system(file: Path) -> Mapping[str, Any]:
    """`[build-system]` of a pyproject.toml; empty where there is none that can be read, which the installer will say."""
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8")).get("build-system", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return {}
    return content if isinstance(content, dict) else {}
