"""docker-compose.yml against the Compose schema and against what it must hold; no Docker engine is needed."""

import json
import os
import re
import subprocess
from pathlib import Path

import jsonschema
import pytest
import yaml
from typer.main import get_command

from pullback_cli import serve
from pullback_cli.main import app
from pullback_runners.sandbox.limits import Limits
from pullback_service import worker

ROOT = Path(__file__).parent.parent
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES = COMPOSE["services"]
OURS = sorted(set(SERVICES) - {"postgres"})


def test_the_file_follows_the_compose_schema():
    schema = json.loads((ROOT / "tests/data/compose-spec/compose-spec.json").read_text())
    jsonschema.Draft7Validator(schema).validate(COMPOSE)


def test_it_has_the_whole_product():
    assert sorted(SERVICES) == ["agent", "api", "backup", "migrate", "postgres", "worker"]
    assert re.fullmatch(r"postgres:18\.\d+", SERVICES["postgres"]["image"])


def test_secrets_come_by_file_only():
    for name, service in SERVICES.items():
        for variable, value in service["environment"].items():
            if re.search("PASSWORD|TOKEN|DATABASE_URL", variable):
                assert variable.endswith("_FILE"), (name, variable)
                assert value.removeprefix("/run/secrets/") in service["secrets"], (name, variable)
    assert all(set(secret) == {"file"} for secret in COMPOSE["secrets"].values())


def test_the_measured_machine_knows_neither_the_database_nor_the_bootstrap_token():
    agent = SERVICES["agent"]
    assert agent["secrets"] == ["agent_code"]
    assert "DATABASE_URL_FILE" not in agent["environment"]
    assert not set(agent["networks"]) & set(SERVICES["postgres"]["networks"])
    assert COMPOSE["networks"]["database"]["internal"]


@pytest.mark.parametrize("name", SERVICES)
def test_every_container_is_bounded(name):
    service = SERVICES[name]
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert service["pids_limit"] <= 4096
    assert re.fullmatch(r"\d+g|\$\{PULLBACK_AGENT_MEMORY:-\d+g\}", service["mem_limit"])
    assert service["logging"]["options"]["max-size"]
    assert all("size=" in each for each in service.get("tmpfs", ()))


@pytest.mark.parametrize("name", OURS)
def test_our_containers_run_without_privileges(name):
    service = SERVICES[name]
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    image = service["image"].split(":", maxsplit=1)[0]
    dockerfile = (ROOT / "deploy" / f"{image.removeprefix('pullback-')}.Dockerfile").read_text()
    assert re.search(r"^USER 10001:10001$", dockerfile, re.MULTILINE)
    assert dockerfile.count("\nFROM ") + dockerfile.startswith("FROM ") == 2
    assert "--require-hashes -r requirements.lock" in dockerfile
    assert len(re.findall(r"^FROM python:\d+\.\d+\.\d+-slim-\w+\b", dockerfile, re.MULTILINE)) == 2


@pytest.mark.parametrize("name", sorted({*OURS} - {"backup"}))
def test_commands_and_their_options_exist(name):
    command, *arguments = SERVICES[name]["command"]
    known = get_command(app).commands[command]
    known.make_context(command, [str(argument) for argument in arguments], resilient_parsing=False).close()


def test_what_runs_for_long_is_started_again_and_nothing_is_open_to_other_machines():
    for name, service in SERVICES.items():
        assert service["restart"] == ("on-failure" if name == "migrate" else "unless-stopped")
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
    assert {name for name, service in SERVICES.items() if "healthcheck" not in service} == {"migrate"}


def test_what_sends_notifications_reaches_others_and_knows_the_address_of_the_pages():
    for name in ("api", "worker"):  # the API sends tests of channels
        reached = [
            network
            for network in SERVICES[name]["networks"]
            if not (COMPOSE["networks"][network] or {}).get("internal")
        ]
        assert reached, name
        assert "PULLBACK_PUBLIC_URL" in SERVICES[name]["environment"]
    for unit in ("serve@", "worker"):
        assert "PULLBACK_PUBLIC_URL=" in (ROOT / f"deploy/pullback-{unit}.service").read_text()


def test_a_job_that_forks_as_often_as_it_may_leaves_its_agent_room():
    assert SERVICES["agent"]["pids_limit"] >= 2 * Limits().processes
    assert f"TasksMax={SERVICES['agent']['pids_limit']}" in (ROOT / "deploy/pullback-agent.service").read_text()


def test_health_checks_look_at_the_files_that_are_touched():
    look = SERVICES["worker"]["healthcheck"]["test"][-1]
    assert f"'{SERVICES['worker']['environment']['PULLBACK_ALIVE_FILE']}'" in look
    agent = SERVICES["agent"]
    assert f"'{agent['command'][agent['command'].index('--data') + 1]}/answered'" in agent["healthcheck"]["test"][-1]


def test_backups_are_made_each_day_and_old_ones_removed(tmp_path):
    backup = SERVICES["backup"]
    assert backup["profiles"] == ["backup"]
    (script,) = backup["command"]
    (tmp_path / "pullback").write_text('#!/bin/sh\ntouch "$3"\n')
    (tmp_path / "sleep").write_text("#!/bin/sh\nkill $PPID\n")
    for each in ("pullback", "sleep"):
        (tmp_path / each).chmod(0o755)
    old, other = tmp_path / "old.backup", tmp_path / "old.txt"
    for each in (old, other):
        each.touch()
        os.utime(each, (0, 0))
    script = script.replace("$$", "$").replace("/backups", str(tmp_path))
    subprocess.run([*backup["entrypoint"], script], env={"PATH": f"{tmp_path}:{os.environ['PATH']}"}, check=False)
    assert not old.exists()
    assert other.exists()
    assert re.fullmatch(r"20[\dT-]+\.backup", next(tmp_path.glob("*.backup")).name)


def test_jobs_of_the_agent_run_in_a_sandbox_that_the_engine_allows():
    agent = SERVICES["agent"]
    assert agent["environment"]["PULLBACK_ISOLATION"] == "${PULLBACK_ISOLATION:-sandbox}"
    assert {"seccomp:unconfined", "systempaths:unconfined"} <= set(agent["security_opt"])
    assert all(
        "unconfined" not in option for name in OURS if name != "agent" for option in SERVICES[name]["security_opt"]
    )
    dockerfile = (ROOT / "deploy/agent.Dockerfile").read_text()
    assert re.search(r"apt-get install .* bubblewrap ", dockerfile)
    assert "PULLBACK_ISOLATION=sandbox" in dockerfile


def test_data_lives_in_named_volumes():
    for name in ("postgres", "agent"):
        volume = next(volume for volume in SERVICES[name]["volumes"] if isinstance(volume, str))
        assert volume.partition(":")[0] in COMPOSE["volumes"]


def test_the_image_of_a_gpus_agent_is_that_of_the_cpus_with_what_a_gpu_needs():
    of_cpu, of_gpu = ((ROOT / f"deploy/{name}.Dockerfile").read_text().splitlines() for name in ("agent", "agent-gpu"))
    commands = [line for line in of_cpu if line and not line.startswith(("#", "COPY . .", "RUN /opt/pullback/bin/pip"))]
    missing = [line for line in commands if line.replace("bubblewrap git", "bubblewrap g++ git") not in of_gpu]
    assert missing == []
    whole = "\n".join(of_gpu)
    assert "--require-hashes -r requirements.lock" in whole
    assert "pip install --no-build-isolation '.[gpu]'" in whole
    assert "ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility" in whole  # without `utility` NVML does not answer


def seconds(duration):
    number, unit = re.fullmatch(r"(\d+)(s|m)", duration).groups()
    return int(number) * {"s": 1, "m": 60}[unit]


def test_who_stops_is_given_the_time_that_its_last_work_takes():
    for name, work_s in {"api": serve.SHUTDOWN_S, "worker": worker.SHUTDOWN_S}.items():
        assert seconds(SERVICES[name]["stop_grace_period"]) >= work_s + 5
    unit = (ROOT / "deploy/pullback-agent.service").read_text()
    assert f"TimeoutStopSec={seconds(SERVICES['agent']['stop_grace_period'])}" in unit


def test_the_bootstrap_token_is_given_to_the_api_alone():
    assert [name for name, service in SERVICES.items() if "pullback_token" in service["secrets"]] == ["api"]
