"""What a repository's files say of how it is built."""

import pytest

from pullback_runners.projects import detection
from pullback_runners.projects.configuration import parse_project
from pullback_runners.projects.detection import detect
from pullback_runners.projects.drafts import project_text


@pytest.fixture
def detected(tmp_path, monkeypatch):
    """The guesses about a repository with these files; uv is installed or not."""

    def detecting(files, *, uv=False, origin=None):
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        monkeypatch.setattr(detection.shutil, "which", lambda _: "/usr/bin/uv" if uv else None)
        guesses = detect(tmp_path, origin)
        parse_project(project_text(guesses, ["bench/gradients.py"]), tmp_path)  # it can be read again
        return guesses

    return detecting


PACKAGE = {"src/ridge/__init__.py": ""}


def test_a_folder_without_anything_is_a_project_too(detected, tmp_path):
    guesses = detected({})
    assert guesses.of("project", "name") == tmp_path.name
    assert guesses.of("build", "path") == (".",)
    assert guesses.of("build", "import") is None


def test_names_come_from_pyproject_then_the_remote(detected):
    assert detected({}, origin="ridge-fork").of("project", "name") == "ridge-fork"
    assert detected({"pyproject.toml": '[project]\nname = "ridge"\n'}, origin="x").of("project", "name") == "ridge"


@pytest.mark.parametrize(
    ("files", "path", "module"),
    [
        (PACKAGE, "src", "ridge"),
        ({"ridge/__init__.py": "", "tests/__init__.py": ""}, ".", "ridge"),
        ({"python/ridge/__init__.py": ""}, "python", "ridge"),
        ({"ridge.py": "", "setup.py": "", "conftest.py": ""}, ".", "ridge"),
        ({"bench.py": "import model\n", "model.py": "", "train.py": "from model import GPT\n"}, ".", "model"),
        ({"a/__init__.py": "", "ridge/__init__.py": "", "pyproject.toml": '[project]\nname = "Ridge"\n'}, ".", "ridge"),
    ],
)
def test_layouts_are_told_by_their_packages(detected, files, path, module):
    guesses = detected(files)
    assert guesses.of("build", "path") == (path,)
    assert guesses.of("build", "import") == (module,)


def test_at_the_top_commits_differ_by_packages_and_what_builds_them_alone(detected):
    guesses = detected(
        {"ridge/__init__.py": "", "grid/__init__.py": "", "setup.py": "", "README.md": "", "run.json": ""}
    )
    assert guesses.of("build", "files") == ("grid", "ridge", "setup.py")


def test_modules_at_the_top_are_named_as_files(detected):
    assert detected({"ridge.py": ""}).of("build", "files") == ("ridge.py",)


@pytest.mark.parametrize(
    ("files", "uv", "requirements"),
    [
        ({"uv.lock": ""}, True, ("uv.lock",)),
        ({"uv.lock": ""}, False, None),
        ({"requirements.txt": "numpy==2.1.0 \\\n    --hash=sha256:aa\n"}, False, ("requirements.txt",)),
        ({"requirements.txt": "numpy>=2\n"}, False, None),
        ({"requirements.txt": "numpy>=2\nno-such-distribution-here\n"}, False, ("requirements.txt",)),
        ({"pyproject.toml": '[project]\ndependencies = ["numpy", "no-such-one>=1"]\n'}, False, ("pyproject.toml",)),
        ({"pyproject.toml": '[project]\ndependencies = ["numpy"]\n'}, False, None),
    ],
)
def test_an_environment_is_made_where_a_lock_pins_it_or_something_is_missing_here(detected, files, uv, requirements):
    assert detected(files, uv=uv).of("build", "requirements") == requirements


@pytest.mark.parametrize(
    ("files", "install"),
    [
        ({"pyproject.toml": '[build-system]\nrequires = ["hatchling"]\n'}, None),
        ({"pyproject.toml": '[build-system]\nrequires = ["meson-python"]\nbuild-backend = "mesonpy"\n'}, "wheel"),
        ({"setup.py": "setup(ext_modules=[Extension('a', ['a.c'])])"}, "wheel"),
        ({"setup.py": "", "src/ridge/kernels.pyx": ""}, "wheel"),
        ({"setup.py": "", "src/ridge/__init__.py": "from importlib.metadata import version"}, "wheel"),
        ({"setup.py": "", "src/ridge/__init__.py": "from ._version import version"}, "wheel"),
        ({"setup.py": "", "src/ridge/__init__.py": "from ridge.ridge_version import __version__"}, "wheel"),
        (
            {
                "setup.py": "",
                "src/ridge/__init__.py": "from .version import number",
                "src/ridge/version/__init__.py": "",
            },
            None,
        ),
        ({"src/ridge/kernels.pyx": ""}, None),
    ],
)
def test_what_has_to_be_built_is_installed(detected, files, install):
    assert detected({**PACKAGE, **files}).of("build", "install") == install


def test_a_version_from_git_is_given_by_a_variable(detected):
    guesses = detected(
        {
            "ridge/__init__.py": "from ._version import version",
            "pyproject.toml": '[build-system]\nrequires = ["setuptools_scm"]\n',
        }
    )
    assert guesses.of("environment", "SETUPTOOLS_SCM_PRETEND_VERSION") == "0"


def test_what_is_seen_and_not_used_is_said(detected):
    notes = detected(
        {"environment.yml": "", "requirements-dev.txt": "pytest-benchmark", "asv.conf.json": "", "pyproject.toml": "["}
    ).notes
    assert [note.split()[0] for note in notes] == ["pyproject.toml", "environment.yml", "pytest-benchmark", "asv"]


def test_the_engine_is_the_one_that_sources_import(detected):
    assert detected(PACKAGE).engine == "numpy"
    assert detected({"src/ridge/__init__.py": "import jax"}).engine == "jax"


def test_what_is_given_takes_the_place_of_a_guess(detected):
    guesses = (
        detected(PACKAGE).given("build", "path", ("lib",)).given("build", "import", ()).given("build", "install", None)
    )
    assert guesses.of("build", "path") == ("lib",)
    assert guesses.of("build", "import") is None
    assert guesses.of("build", "install") is None


@pytest.mark.parametrize(
    "text",
    [
        "[[project]]\nname = 1\n",
        "project = 1\ntool = 2\nbuild-system = 3\n",
        "[tool]\npoetry = 1\nsetuptools = []\n",
        "[build-system]\nrequires = 1\n",
        f"a = {'[' * 5000}\n",
        f"a = {'9' * 5000}\n",
    ],
)
def test_a_pyproject_of_another_form_says_nothing(detected, tmp_path, text):
    guesses = detected({**PACKAGE, "pyproject.toml": text})
    assert guesses.of("project", "name") == tmp_path.name
    assert guesses.of("build", "install") is None


def test_a_compiled_package_at_the_top_differs_by_its_sources_wherever_they_lie(detected):
    files = detected({"ridge/__init__.py": "", "setup.py": "Extension(", "csrc/a.c": ""}).of("build", "files")
    assert {"ridge", "setup.py", "*.c", "*.rs"} <= set(files)
