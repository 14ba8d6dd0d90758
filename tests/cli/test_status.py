"""`pullback status` of a service that runs elsewhere."""

import json

import httpx
from typer.testing import CliRunner

from pullback_cli.main import app

MACHINE = {"fingerprint": "f", "name": "box"}


def test_a_service_says_how_it_is_doing_wherever_it_runs(service, tmp_path):
    httpx.post(f"{service}/api/v1/agents/enroll", json={"name": "a", "machine": MACHINE}).raise_for_status()
    wanted = {"project": "demo", "commit": {"sha": "a" * 40}, "suite": "quick", "requires": {"gpu": "none"}}
    httpx.post(f"{service}/api/v1/jobs", json=wanted).raise_for_status()
    runner = CliRunner(env={"PULLBACK_SERVER": service})
    shown = runner.invoke(app, ["status"])
    lines = shown.stdout.splitlines()
    assert (shown.exit_code, lines[0]) == (1, f"needs attention: {service}"), shown.output
    assert [line.split(maxsplit=1) for line in lines[1:5]] == [
        ["workers", "none"],
        ["agents", "a"],
        ["jobs", "1 queued"],
        ["chores", "0 waiting, 0 running"],
    ]
    assert any(line.startswith("  attention  No worker is running") for line in lines)
    assert any(line.startswith("  attention  1 waiting job fits no agent") for line in lines)
    told = runner.invoke(app, ["status", "--server", service, "--json"])
    answer = json.loads(told.stdout)
    assert (told.exit_code, answer["status"], answer["silent_agents"], answer["jobs"]["unservable"]) == (
        1,
        "attention",
        [],
        1,
    )
    local = runner.invoke(app, ["status", "--data", str(tmp_path)])  # typed, so it is not about the service
    assert (local.exit_code, "nothing is running on" in local.stdout) == (1, True)
