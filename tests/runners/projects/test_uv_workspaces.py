"""Environments of a uv workspace: what its members require, and none of the members, which are files of each commit.

The uv here is a stand-in that answers `uv export` as uv 0.13 did for these files, and installs nothing.
"""

import shutil
import sys

import pytest

from pullback_runners.errors import BuildError
from pullback_runners.projects.configuration import Build
from pullback_runners.projects.environments import make_environment

UV = """\
#!{python}
import pathlib, sys, venv
asked = sys.argv[1:]
if asked[0] == "venv":
    venv.create(asked[-1], symlinks=True)
elif asked[0] == "export":
    lock = pathlib.Path("uv.lock").read_text().split()
    members = [] if "--no-emit-workspace" in asked else ["-e ./packages/b"]
    required = ["idna==3.20", *(["six==1.17.0"] if "--all-packages" in asked else [])]
    local = ["-e ./libs/x"] if "libs/x" in lock else []
    pathlib.Path(asked[asked.index("--output-file") + 1]).write_text("\\n".join([*members, *local, *required, ""]))
"""


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    """The files of a commit whose lock is that of a workspace, and uv on `PATH`."""
    uv = tmp_path / "bin" / "uv"
    uv.parent.mkdir()
    uv.write_text(UV.format(python=sys.executable))
    uv.chmod(0o755)
    monkeypatch.setenv("PATH", str(uv.parent), prepend=":")
    assert shutil.which("uv") == str(uv)
    files = tmp_path / "files"
    for folder in ("packages/a", "packages/b", "libs/x"):
        (files / folder).mkdir(parents=True)
    (files / "uv.lock").write_text("")
    return files


def test_the_environment_holds_what_all_members_require_and_no_member(workspace, tmp_path):
    made = make_environment(Build(requirements=("uv.lock",)), workspace, workspace, tmp_path / "environments")
    required = made.python.parents[1] / "requirements.txt"
    assert required.read_text().split() == ["idna==3.20", "six==1.17.0"]


def test_a_folder_of_the_commit_that_is_no_member_is_refused(workspace, tmp_path):
    (workspace / "uv.lock").write_text("libs/x")
    with pytest.raises(BuildError, match=r"^uv\.lock installs \./libs/x, .*; make it a member of the workspace and"):
        make_environment(Build(requirements=("uv.lock",)), workspace, workspace, tmp_path / "environments")
