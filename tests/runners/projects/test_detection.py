"""What a repository's files say of how it is built."""

import pytest

from pullback_runners.projects import detection
from pullback_runners.projects.configuration import parse_project
from pullback_runners.projects.detection import detect
from pullback_runners.projects.drafts import project_text


@pytest.fixture
def detected(tmp_path, monkeypatch):
    """The guesses about a repository with these files; uv is installed or not."""

    def detecting(files, *, uv=False, origin=None, start=None, path=None):
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        monkeypatch.setattr(detection.shutil, "which", lambda _: "/usr/bin/uv" if uv else None)
        guesses = detect(tmp_path, origin, start and tmp_path / start, path)
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


def test_the_name_in_setup_py_is_taken_where_it_is_a_literal(detected):
    assert (
        detected({"setup.py": "import setuptools\nsetuptools.setup(name='ridge')\n"}).of("project", "name") == "ridge"
    )
    assert detected({"setup.py": "setup(name=NAME)\n"}, origin="fork").of("project", "name") == "fork"


MEMBERS = {
    "libs/grads/pyproject.toml": '[project]\nname = "grads"\ndependencies = ["numpy"]\n',
    "libs/grads/grads/__init__.py": "",
    "libs/grads/tests/test_grads.py": "",
    "libs/solvers/setup.py": "setup(name='solve', ext_modules=[])",
    "libs/solvers/src/solve/__init__.py": "",
    "web/index.html": "",
}


@pytest.mark.parametrize(
    ("start", "given", "path", "module"),
    [
        ("libs/grads", None, "libs/grads", "grads"),
        ("libs/grads/tests", None, "libs/grads", "grads"),
        ("libs/solvers", None, "libs/solvers/src", "solve"),
        ("web", "libs/grads", "libs/grads", "grads"),
        ("libs/grads", "libs/solvers/src", "libs/solvers/src", "solve"),
    ],
)
def test_of_several_packages_the_one_is_found_that_one_stands_in_or_names(detected, start, given, path, module):
    guesses = detected(MEMBERS, start=start, path=given)
    assert (guesses.of("build", "path"), guesses.of("build", "import")) == ((path,), (module,))
    assert any("wheel is built at the top" in note for note in guesses.notes) == (module == "solve")


def test_at_the_top_of_several_packages_one_is_suggested_and_a_single_one_taken(detected):
    guesses = detected(MEMBERS, start=".")
    assert guesses.notes == ("packages lie in libs/grads, libs/solvers/src: --path libs/grads takes the first of them",)
    assert guesses.of("build", "import") is None


def test_a_single_package_below_the_top_is_taken(detected):
    guesses = detected({name: text for name, text in MEMBERS.items() if "grads" in name}, start=".")
    assert (guesses.of("build", "path"), guesses.of("build", "import")) == (("libs/grads",), ("grads",))
    (said,) = (each.reason for each in guesses.guesses if each.key == "requirements")
    name = "libs/grads/pyproject.toml"
    assert said == f"{name} has dependencies: --requirements {name} measures its changes too"


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"requirements.txt": "numpy>=2\n"}, "requirements.txt is there: --requirements requirements.txt"),
        ({"pyproject.toml": '[project]\ndependencies = ["numpy"]\n'}, "pyproject.toml has dependencies"),
    ],
)
def test_requirements_that_are_not_taken_are_said(detected, files, said):
    (guess,) = (each for each in detected(files).guesses if each.key == "requirements")
    assert (guess.value, guess.reason.startswith(said)) == ((), True)


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
