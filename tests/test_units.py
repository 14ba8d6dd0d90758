"""The systemd units of deploy/: their commands exist, and they have no more rights than they need."""

import configparser
import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from pullback_cli import serve
from pullback_cli.main import app
from pullback_service import worker

UNITS = sorted((Path(__file__).parent.parent / "deploy").glob("*.service"))


class _Lines(dict):
    """The lines of a section; a name may come several times."""

    def __setitem__(self, name, value):
        if isinstance(value, list) and name in self:
            value = self[name] + value
        super().__setitem__(name, value)


def service_of(path):
    """The section of a unit that says how it runs: each name with its lines."""
    read = configparser.RawConfigParser(dict_type=_Lines, strict=False)
    read.optionxform = str
    read.read_string(path.read_text())
    return {name: lines.splitlines() for name, lines in read["Service"].items()}


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_the_command_of_a_unit_exists(unit):
    (line,) = service_of(unit)["ExecStart"]
    _, command, *arguments = shlex.split(line.replace("%i", "8000"))
    get_command(app).commands[command].make_context(command, arguments).close()


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_a_unit_has_a_user_of_its_own_no_capabilities_and_only_its_folder_to_write_in(unit):
    service = service_of(unit)
    wanted = {
        "DynamicUser": "yes",
        "NoNewPrivileges": "yes",
        "ProtectSystem": "strict",
        "ProtectHome": "yes",
        "PrivateTmp": "yes",
        "CapabilityBoundingSet": "",
    }
    assert {name: "".join(service.get(name, ["missing"])) for name in wanted} == wanted
    assert int(service["TasksMax"][0]) <= 4096
    assert all("token=" not in line and "password" not in line.lower() for line in service.get("Environment", ()))


def test_jobs_of_the_agent_run_in_a_sandbox_and_the_unit_forbids_nothing_that_it_is_made_of():
    unit = next(path for path in UNITS if path.name == "pullback-agent.service")
    service = service_of(unit)
    assert "PULLBACK_ISOLATION=sandbox" in service["Environment"][0].split()
    assert "apt-get install bubblewrap" in unit.read_text()
    forbidding = (
        "RestrictNamespaces",
        "PrivateUsers",
        "ProtectProc",
        "ProcSubset",
        "ProtectKernelTunables",
        "SystemCallFilter",
    )
    assert not set(forbidding) & set(service)


def test_the_agent_has_the_devices_of_a_gpu_and_writes_their_locks_and_nothing_else_beside_its_folder():
    service = service_of(next(path for path in UNITS if path.name == "pullback-agent.service"))
    assert service["DeviceAllow"] == ["char-nvidia* rw"]
    assert service["ReadWritePaths"] == ["-/run/lock"]
    assert "PrivateDevices" not in service


def unit_of(name):
    return service_of(next(path for path in UNITS if path.name == f"pullback-{name}.service"))


def environment_of(service):
    return dict(each.split("=", 1) for line in service["Environment"] for each in shlex.split(line))


@pytest.mark.parametrize(("name", "work_s"), [("serve@", serve.SHUTDOWN_S), ("worker", worker.SHUTDOWN_S)])
def test_who_stops_is_given_the_time_that_its_last_work_takes(name, work_s):
    service = unit_of(name)
    drain_s = float(environment_of(service).get("PULLBACK_DRAIN_S", 0))
    assert int(service["TimeoutStopSec"][0]) >= drain_s + work_s + 5


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_secrets_come_as_files_of_the_units_own_user_and_no_others_are_there(unit):
    service = service_of(unit)
    used = set(re.findall(r"(?:%d|\$\{CREDENTIALS_DIRECTORY\})/(\w+)", unit.read_text()))
    assert {line.split(":")[0] for line in service["LoadCredential"]} == used
    assert ("token" in used) == (unit.name != "pullback-worker.service")


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_a_unit_is_started_again_unless_its_environment_is_wrong_and_has_bounded_memory(unit):
    service = service_of(unit)
    assert (service["Restart"], service["RestartPreventExitStatus"]) == (["always"], ["2"])
    assert re.fullmatch(r"2G|90%", service["MemoryMax"][0])
    assert (
        {"AF_INET", "AF_INET6", "AF_UNIX"}
        <= set(service["RestrictAddressFamilies"][0].split())
        <= {
            "AF_INET",
            "AF_INET6",
            "AF_UNIX",
            *(["AF_NETLINK"] if "agent" in unit.name else ()),
        }
    )
