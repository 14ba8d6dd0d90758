"""The upload that the README shows, as a person pastes it, against a local service."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"

pytestmark = [pytest.mark.system, pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")]


def test_the_readmes_upload_is_accepted_without_a_token_and_may_be_repeated(product, connect, tmp_path):
    (example,) = [block for block in re.findall(r"```sh\n(.*?)```", README.read_text(), re.DOTALL) if "curl" in block]
    measured = product.run(
        "run",
        "--suite",
        "trial",
        "--case",
        "poly9_broadcast*",
        "--engine",
        str(product.repository),
        "-o",
        str(tmp_path / "bench.json"),
    )
    assert measured.returncode == 0, measured.stderr
    product.up("--no-agent")
    url = product.status()["url"]

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
