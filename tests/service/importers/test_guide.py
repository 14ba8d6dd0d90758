"""The commands of docs/uploading.md, as a person pastes them, and the two commands of ours, against a real service."""

import contextlib
import gzip
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from pullback_service.importers import limits, registry

GUIDE = (Path(__file__).parents[3] / "docs" / "uploading.md").read_text()
SAMPLES = Path(__file__).parents[2] / "data" / "importers"
EXAMPLES = dict(re.findall(r"^## ([^\n]+)\n(?:(?!^## ).)*?```sh\n(.*?)```", GUIDE, re.DOTALL | re.MULTILINE))
SHA = "daead20606f2a7877a2dc2bcd9ac59a3b343d006"  # the one in asv's sample
FILES = {
    "pyperf.json": "pyperf/two-benchmarks.json",
    "pytest.json": "pytest-benchmark/parametrized.json",
    ".asv/results": "asv/results",
    "hyperfine.json": "hyperfine/parameters.json",
    "google.json": "google-benchmark/repetitions.json",
    "target/criterion": "criterion/target/criterion",
    "julia.json": "benchmarktools/groups.json",
    "custom.json": "github-action-benchmark/custom.json",
    "bencher.json": "bencher/measures.json",
    "conbench.json": "conbench/results.json",
}


@pytest.fixture
def workplace(tmp_path):
    """A folder with every tool's file where the guide has it."""
    for name, source in FILES.items():
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (SAMPLES / source).is_dir() else shutil.copy
        copy(SAMPLES / source, target)
    (tmp_path / "gradbench.jsonl").write_bytes(gzip.decompress((SAMPLES / "gradbench/llsq.jsonl.gz").read_bytes()))
    return tmp_path


def pullback(*arguments, folder, url):
    """Run one of our commands."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "pullback_cli", *map(str, arguments), "--server", url],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=folder,
    )


def test_the_file_of_every_example_has_its_sample():
    for tool, example in EXAMPLES.items():
        for name in set(re.findall(r"@(\w[\w./]*)", example)) - {"bench.json"}:  # of any tool, from CI
            assert name in FILES, (
                f"{tool} in docs/uploading.md uploads {name}: add it to FILES in this file, with the sample of tests/data/importers "
                "that it is copied from"
            )


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_every_example_of_the_guide_is_accepted(url, workplace):
    of_tools = {
        tool: example for tool, example in EXAMPLES.items() if tool != "From CI"
    }  # tests/system/test_replicas.py
    for tool, example in of_tools.items():
        done = subprocess.run(  # noqa: S602 - the guide's own lines, which a shell has to read
            example,
            shell=True,
            env={"URL": url, "SHA": SHA, "PATH": "/usr/bin:/bin"},
            cwd=workplace,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (
            f"the example of {tool} in docs/uploading.md fails; its file is copied from a sample that FILES in this file names: "
            f"{done.stdout}{done.stderr}"
        )
        assert json.loads(done.stdout)["points"] > 0, tool
        assert len(example.strip().splitlines()) <= 5, tool


def test_the_guide_names_every_format_and_every_limit():
    for name in registry.NAMES:
        assert f"format `{name}`" in GUIDE, (
            f"docs/uploading.md names no format `{name}`: add a section with the command in a block ```sh, and the words (format `{name}`)"
        )
    for name, value in vars(limits).items():
        if f"`{name}`" in GUIDE:
            row = next(line for line in GUIDE.splitlines() if f"`{name}`" in line)
            shown = f"{value // 2**20} MiB" if name.endswith("_BYTES") else f"{value:,}"
            assert shown in row, row


@pytest.mark.long
def test_upload_packs_folders_and_files_and_says_what_was_left_out(url, workplace):
    done = pullback(
        "upload", "target/criterion", "hyperfine.json", "--project", "demo", "--commit", SHA, "--machine", "ci",
        folder=workplace, url=url,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "target/criterion: criterion, 4 points of 4 cases at daead20606 stored\n" in done.stdout
    assert "/api/" not in done.stdout  # a person is told the address of the page, which comes last
    assert "  note: 4 samples of earlier runs left out" in done.stdout
    assert "hyperfine.json: hyperfine, 12 points of 4 cases" in done.stdout
    again = pullback(
        "upload", "target/criterion", "--project", "demo", "--commit", SHA, "--machine", "ci", folder=workplace, url=url
    )
    assert "already stored" in again.stdout


def test_upload_takes_the_commit_from_git_and_refuses_changes(url, workplace):
    def git(*arguments):
        done = subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments],
            cwd=workplace, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout.strip()

    git("init", "-q", "-b", "trunk")
    git("add", "hyperfine.json")
    git("commit", "-q", "-m", "First")
    arguments = ("upload", "hyperfine.json", "--project", "demo", "--machine", "ci")
    assert pullback(*arguments, folder=workplace, url=url).returncode == 0
    (commit,) = httpx.get(f"{url}/api/v1/commits", params={"project": "demo"}).json()["items"]
    assert (commit["sha"], commit["branch"]) == (git("rev-parse", "HEAD"), "trunk")
    assert commit["authored_at"] is not None
    (workplace / "hyperfine.json").write_text((workplace / "hyperfine.json").read_text() + "\n")
    refused = pullback(*arguments, folder=workplace, url=url)
    assert refused.returncode == 2
    assert "uncommitted changes" in refused.stderr
    assert pullback(*arguments, "--allow-dirty", folder=workplace, url=url).returncode == 0


@pytest.mark.long
def test_upload_repeats_the_services_sentence(url, workplace):
    refused = pullback(
        "upload", "custom.json", "--project", "demo", "--commit", SHA, "--machine", "ci", folder=workplace, url=url
    )
    assert refused.returncode == 2
    assert refused.stderr.startswith("pullback: custom.json: github-action-benchmark files do not say the direction")
    assert len(refused.stderr.splitlines()) == 1
    away = pullback("upload", "custom.json", folder=workplace, url="http://127.0.0.1:9")
    assert away.returncode == 75
    assert "does not answer" in away.stderr


@pytest.mark.long
def test_a_dry_run_of_upload_shows_points(url, workplace):
    done = pullback(
        "upload", "bencher.json", "--project", "demo", "--commit", SHA, "--machine", "ci", "--unit", "ns",
        "--direction", "smaller", "--dry-run", folder=workplace, url=url,
    )  # fmt: skip
    assert "would be stored" in done.stdout
    assert "  tape_backward external latency = 8.8e-08 s (smaller is better)" in done.stdout
    assert httpx.get(f"{url}/api/v1/reports").json()["items"] == []


@pytest.mark.long
def test_a_nightly_archive_imports_as_history_and_only_once(url, workplace):
    arguments = ("import", SAMPLES / "gradbench" / "nightly", "--project", "gradbench", "--machine", "ubuntu-24.04")
    done = pullback(*arguments, folder=workplace, url=url)
    assert done.returncode == 0, done.stderr
    assert "4 reports with 984 points stored, 0 already stored" in done.stdout
    assert "0 reports with 0 points stored, 4 already stored" in pullback(*arguments, folder=workplace, url=url).stdout
    commits = httpx.get(f"{url}/api/v1/commits", params={"project": "gradbench"}).json()["items"]
    assert [commit["ordered_at"][:10] for commit in commits] == ["2025-04-19", "2025-04-18", "2025-04-17", "2025-04-16"]
    series = _all_series(url, "gradbench")
    (one,) = [
        each
        for each in series
        if (each["variant"], each["case"]["label"]) == ("manual", "gmm[function=jacobian,size=10_10_1000]")
    ]
    points = httpx.get(f"{url}/api/v1/series/{one['id']}/points").json()["items"]
    assert len(points) == 4


def test_asvs_folder_imports_each_of_its_commits(url, workplace):
    done = pullback("import", ".asv/results", "--project", "demo", folder=workplace, url=url)
    assert done.returncode == 0, done.stderr
    assert "2 reports with 11 points stored" in done.stdout


@pytest.mark.long
def test_a_history_of_github_action_benchmark_imports_each_of_its_commits(url, workplace):
    shutil.copy(SAMPLES / "github-action-benchmark/data.js", workplace)
    done = pullback("import", "data.js", "--project", "demo", "--machine", "ci", folder=workplace, url=url)
    assert done.returncode == 0, done.stderr
    assert "2 reports with 17 points stored" in done.stdout
    refused = pullback("import", "pyperf.json", "--project", "demo", folder=workplace, url=url)
    assert refused.returncode == 2
    assert "is not a history" in refused.stderr


def test_a_long_log_is_trimmed_and_says_the_same(workplace, monkeypatch):
    from pullback_cli.uploading import request_bodies

    whole = request_bodies.body_of(workplace / "gradbench.jsonl")
    monkeypatch.setattr(request_bodies, "TRIMMED_ABOVE_BYTES", 10)
    trimmed = request_bodies.body_of(workplace / "gradbench.jsonl")
    assert len(gzip.decompress(trimmed)) < len(gzip.decompress(whole)) / 2
    found = [_points_of(body) for body in (whole, trimmed)]
    assert found[0] == found[1]


def _points_of(body):
    from pullback_service.importers import gradbench
    from pullback_service.importers.contents import json_lines

    log = gradbench.read_log(json_lines(gzip.decompress(body)))
    return [(each.function, each.description, each.mean_ns) for each in log.evaluations]


def _all_series(url, project):
    found, cursor = [], None
    with contextlib.closing(httpx.Client(base_url=url)) as client:
        while True:
            page = client.get(
                "/api/v1/series", params={"project": project, "limit": 100} | ({"cursor": cursor} if cursor else {})
            ).json()
            found += page["items"]
            cursor = page["next"]
            if cursor is None:
                return found
