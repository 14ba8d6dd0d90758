"""Files that requirements files include, and files of the commit that they install from."""

import pytest

from pullback_runners.errors import BuildError
from pullback_runners.projects.requirements import local_files, requirement_files


@pytest.fixture
def written(tmp_path):
    """Files below a folder, by name; the file `requirements.txt` is returned."""

    def write(files):
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return tmp_path / "requirements.txt"

    return write


def test_included_files_are_found_once_from_where_they_are_named(written, tmp_path):
    file = written(
        {
            "requirements.txt": "numpy\n  -r deps/a.txt # words\n-cdeps/b.txt\n--constraint=deps/c.txt\n-r https://a.test/x\n",
            "deps/a.txt": "-r b.txt\n-r ../requirements.txt\n",
            "deps/b.txt": "",
            "deps/c.txt": "--requirement d.txt\n",
            "deps/d.txt": "",
        }
    )
    assert requirement_files(file) == [file, *(tmp_path / "deps" / f"{each}.txt" for each in "abcd")]


@pytest.mark.parametrize("line", [".", "-e .", "--editable=.[dev]", "./ ; python_version > '3'"])
def test_what_says_the_dependencies_of_the_project_belongs_to_it(written, tmp_path, line):
    file = written({"requirements.txt": f"{line}\n", "pyproject.toml": "", "setup.cfg": "", "src/a.py": ""})
    assert local_files(file, tmp_path) == [tmp_path / "pyproject.toml", tmp_path / "setup.cfg"]


def test_a_wheel_of_the_commit_belongs_to_it(written, tmp_path):
    file = written({"requirements.txt": "./wheels/a-1-py3-none-any.whl\n", "wheels/a-1-py3-none-any.whl": ""})
    assert local_files(file, tmp_path) == [tmp_path / "wheels/a-1-py3-none-any.whl"]


@pytest.mark.parametrize("line", ["./libs/a", "-e ./libs/a[dev]"])
def test_another_folder_of_the_commit_is_refused(written, tmp_path, line):
    file = written({"requirements.txt": f"numpy\n{line}\n", "libs/a/pyproject.toml": ""})
    with pytest.raises(BuildError, match=r"requirements\.txt installs \./libs/a, a folder of the commit, into"):
        local_files(file, tmp_path)
