"""Schemathesis against a service that listens: the whole description, all checks, calls that build on each other.

The long run runs the examples and three ways through the calls that build on each other; every build makes up requests for one
endpoint after the other (`tests/service/test_openapi.py`). `PULLBACK_SCHEMATHESIS=20 pytest -m long tests/system/test_schemathesis.py` adds the edges of every parameter and so many made-up
requests per operation; it takes minutes.
"""

import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

pytestmark = pytest.mark.system

HERE = Path(__file__).parent
BOOTSTRAP = "the-secret-of-schemathesis"
MOST_LINES, WIDEST = 1000, 400  # what is told of failures: requests may hold a megabyte
EXAMPLES = os.environ.get("PULLBACK_SCHEMATHESIS")


@pytest.mark.long(most_s=3600)
def test_no_request_finds_a_failure(start_cluster, bare_database_url, folder):
    (folder / "token").write_text(BOOTSTRAP)
    environment = {
        "DATABASE_URL": bare_database_url,
        "PULLBACK_AUTH": "token",
        "PULLBACK_TOKEN_FILE": str(folder / "token"),
        "PULLBACK_TOKEN_WORK": "10000",
        "PULLBACK_ADDRESS_WORK": "10000",
        "PULLBACK_LOG_LEVEL": "warning",
    }
    cluster = start_cluster(environment, replicas=1, workers=0)
    # Describing the API takes seconds of a busy processor, once; schemathesis waits for ten.
    httpx.get(f"{cluster.urls[0]}/api/v1/openapi.json", timeout=120).raise_for_status()
    phases = "examples,coverage,fuzzing,stateful" if EXAMPLES else "examples,stateful"
    done = subprocess.run(
        [
            Path(sys.executable).with_name("schemathesis"),
            *("--config-file", HERE / "schemathesis.toml", "run", f"{cluster.urls[0]}/api/v1/openapi.json"),
            *("-H", f"Authorization: Bearer {BOOTSTRAP}", "--max-examples", EXAMPLES or "3", "--no-color"),
            *("--generation-deterministic", "--continue-on-failure", "--phases", phases),
        ],
        env={**os.environ, "SCHEMATHESIS_HOOKS": "schemathesis_hooks", "PYTHONPATH": str(HERE)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (
        "\n".join(line[:WIDEST] for line in done.stdout.splitlines()[-MOST_LINES:]) + done.stderr
    )
    assert "unexpected_error" not in cluster.said()
