"""docker-compose.yml against the Compose schema and against what it must hold; no Docker engine is needed."""

import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml
from typer.main import get_command

from pullback_cli.main import app

ROOT = Path(__file__).parent.parent
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES = COMPOSE["services"]
OURS = sorted(set(SERVICES) - {"postgres"})


def test_the_file_follows_the_compose_schema():
    schema = json.loads((ROOT / "tests/data/compose-spec/compose-spec.json").read_text())
    jsonschema.Draft7Validator(schema).validate(COMPOSE)


def test_it_has_the_whole_product():
    assert sorted(SERVICES) == ["agent", "api", "migrate", "postgres", "worker"]
    assert SERVICES["postgres"]["image"] == "postgres:18"


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
    assert service["pids_limit"] <= 1024
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


@pytest.mark.parametrize("name", OURS)
def test_commands_and_their_options_exist(name):
    command, *arguments = SERVICES[name]["command"]
    known = get_command(app).commands[command]
    known.make_context(command, [str(argument) for argument in arguments], resilient_parsing=False).close()


def test_what_runs_for_long_is_started_again_and_nothing_is_open_to_other_machines():
    for name, service in SERVICES.items():
        assert service["restart"] == ("on-failure" if name == "migrate" else "unless-stopped")
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
    assert {name for name, service in SERVICES.items() if "healthcheck" in service} == {"postgres", "api"}


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
