"""`pullback init` as a newcomer types it, in repositories of their own."""

import subprocess

import pytest

from pullback_runners.projects.configuration import find_project

LOSSES = """
import numpy as np


def broken_loss(x):
    return np.sum(np.no_such_function(x))


def loss(x, weights):
    return np.sum(weights * np.tanh(x) ** 2)
"""


def git(folder, *arguments):
    identity = ("-c", "user.name=A", "-c", "user.email=a@a.test", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *identity, "-C", folder, *arguments], check=True, capture_output=True)


@pytest.fixture
def init(command):
    def run(folder, *arguments):
        return command("init", *arguments, folder=folder)

    return run


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "ridge"
    (folder / "src" / "ridge").mkdir(parents=True)
    (folder / "src" / "ridge" / "__init__.py").touch()
    (folder / "src" / "ridge" / "losses.py").write_text(LOSSES)
    git(folder, "init", "-q", "-b", "main")
    return folder


def test_a_function_that_was_found_and_tried_is_on_the_screen_with_its_time(init, repository):
    done = init(repository / "src")
    assert done.returncode == 0, done.stderr
    assert "project.name         ridge                    the folder's name" in done.stdout
    assert "ridge.losses.broken_loss (src/ridge/losses.py, line 5) was not taken: AttributeError" in done.stdout
    assert "wrote bench/gradients.py: ridge.losses.loss of src/ridge/losses.py, line 9" in done.stdout
    assert "loss[n=1000,f8,cpu]" in done.stdout
    assert "x faster" in done.stdout
    assert "compared with central differences" in done.stdout
    project = find_project(repository)
    assert (project.name, project.build.path, project.build.imports) == ("ridge", ("src",), ("ridge",))
    assert project.measure.workloads == ("bench/gradients.py",)

    again = init(repository)
    assert again.returncode == 2
    assert "pullback.toml already exists; edit it, or overwrite it with --force" in again.stderr


@pytest.mark.long
def test_a_function_that_refuses_vectors_is_tried_with_matrices(init, repository):
    losses = "import numpy as np\n\n\ndef row_loss(x):\n    return np.sum(np.max(x, axis=-1) - np.min(x, axis=1))\n"
    (repository / "src" / "ridge" / "losses.py").write_text(losses)
    done = init(repository)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "was not taken" not in done.stdout
    assert "row_loss[n=50,f8,cpu]" in done.stdout


@pytest.mark.long
def test_a_repository_without_any_function_begins_with_an_example_that_runs(init, repository):
    (repository / "src" / "ridge" / "losses.py").write_text("")
    done = init(repository)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "wrote bench/gradients.py: an example, by numpy, that calls nothing of this repository" in done.stdout
    assert "mean_squared_error[n=50,f8,cpu]" in done.stdout


@pytest.mark.long
def test_gradients_that_the_file_does_not_call_are_named_and_nothing_else_is_left(init, repository):
    gradients = "def loss_vjp(x):\n    return 0\n\n\ndef grad_of(x):\n    return 0\n\n\ndef graded(x):\n    return 0\n"
    (repository / "src" / "ridge" / "by_hand.py").write_text(gradients)
    (repository / "requirements.txt").write_text("numpy>=1\n")
    done = init(repository)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "  found ridge.by_hand.loss_vjp, ridge.by_hand.grad_of, by the name a gradient: to measure it" in done.stdout
    assert "build.requirements   none                     requirements.txt is there" in done.stdout
    assert find_project(repository).build.requirements == ()
    assert not list(repository.rglob("__pycache__"))


@pytest.mark.long
def test_the_package_of_a_monorepo_is_the_one_of_the_folder(init, repository):
    member = repository / "packages" / "tides"
    (member / "tides").mkdir(parents=True)
    (member / "pyproject.toml").write_text('[project]\nname = "tides"\n')
    (member / "tides" / "__init__.py").write_text(LOSSES)
    done = init(member)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "wrote bench/gradients.py: tides.loss of packages/tides/tides/__init__.py" in done.stdout
    project = find_project(repository)
    assert (project.build.path, project.build.imports) == (("packages/tides",), ("tides",))


def test_a_workload_file_that_is_there_is_kept(init, repository):
    (repository / "bench").mkdir()
    (repository / "bench" / "gradients.py").write_text("raise RuntimeError('mine')")
    done = init(repository, "--no-run", "--name", "other")
    assert done.returncode == 0, done.stderr
    assert "kept bench/gradients.py" in done.stdout
    *_, commit, then = done.stdout.splitlines()  # comparing this commit with the one before would say "equal code"
    assert commit == 'next: git add pullback.toml && git commit -m "Measure gradients"'
    assert then == "then: pullback up, and after your next commit pullback compare --against HEAD~1"
    assert (repository / "bench" / "gradients.py").read_text() == "raise RuntimeError('mine')"
    assert find_project(repository).name == "other"
    assert init(repository, "--no-run", "--force").returncode == 0
    assert "ridge.losses" in (repository / "bench" / "gradients.py").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--function", "ridge.losses:nothing"],
            "--function ridge.losses:nothing is no function at the top of a module",
        ),
        (["--engine", "tensorflow"], "--engine tensorflow is not known; give numpy, jax"),
        (["--workloads", "bench/gone.py"], "--workloads bench/gone.py is not in"),
        (["--path", "lib"], "--path lib is no folder of"),
        (["--install", "egg"], "[build] install is 'egg'; give 'path' or 'wheel'"),
        (["--requirements", "/etc/passwd"], "names '/etc/passwd'; give a path below the top"),
    ],
)
def test_wrong_options_write_nothing(init, repository, arguments, said):
    done = init(repository, *arguments)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert said in line
    assert not (repository / "pullback.toml").exists()


def test_an_environment_that_cannot_be_made_is_told_and_the_files_are_there(init, repository):
    (repository / "requirements.txt").write_text("--no-index\nno-such-distribution-here==1.0\n")
    done = init(repository)
    assert done.returncode == 1
    assert "no-such-distribution-here" in done.stderr
    assert (repository / "bench" / "gradients.py").exists()


def test_no_project_begins_outside_of_a_clone(init, repository, tmp_path):
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "first")
    git(tmp_path, "clone", "-q", "--bare", "ridge", "bare")
    git(tmp_path, "init", "-q", "above")
    git(tmp_path / "above", "submodule", "add", "-q", str(repository), "below")
    (tmp_path / "plain").mkdir()
    for folder, said in (
        ("plain", "is in no git repository; go to yours, or begin one by `git init`"),
        ("bare", "is a bare repository, where pullback.toml cannot be written; clone it and go to the clone"),
        ("above/below", "is in a submodule of"),
    ):
        done = init(tmp_path / folder)
        assert done.returncode == 2
        (line,) = done.stderr.splitlines()
        assert said in line


def test_a_file_where_the_folder_of_workloads_would_be_is_named(init, repository):
    (repository / "bench").write_text("#!/bin/sh\n")
    done = init(repository)
    assert done.returncode == 2
    assert f"{repository}/bench cannot be written (File exists); rename the existing file" in done.stderr
    assert not (repository / "pullback.toml").exists()


def test_an_empty_name_is_refused(init, repository):
    done = init(repository, "--name", "", "--no-run")
    assert done.returncode == 2
    assert "--name is empty; give a name, or leave it out" in done.stderr
    assert not (repository / "pullback.toml").exists()


def test_a_folder_that_cannot_be_written_is_not_taken_for_an_existing_file(init, repository, monkeypatch):
    def refuse(**what):
        raise PermissionError(13, "Permission denied", str(what["dir"]))

    monkeypatch.setattr("tempfile.mkstemp", refuse)  # root can write everywhere
    done = init(repository, "--no-run")
    assert done.returncode == 2
    assert f"{repository} cannot be written (Permission denied); fix the permissions of its folder" in done.stderr


def test_a_folder_whose_name_is_no_text_needs_another_name_for_its_project(init, tmp_path):
    folder = tmp_path / "odd\n\udcff"
    git(tmp_path, "init", "-q", str(folder))
    done = init(folder, "--no-run")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert "cannot be written into pullback.toml, which is UTF-8; give another by its option, as --name" in line
    assert not (folder / "pullback.toml").exists()
    done = init(folder, "--no-run", "--name", "odd")
    assert done.returncode == 0, done.stderr
    assert find_project(folder).name == "odd"


def test_a_folder_is_no_file_to_overwrite(init, repository):
    (repository / "pullback.toml").mkdir()
    done = init(repository, "--force", "--no-run")
    assert done.returncode == 2
    assert "pullback.toml is no file, nor a link to one; remove it" in done.stderr
