import signal
from dataclasses import replace
from pathlib import Path

from pullback_cli.supervision.plan import UpOptions, plan_processes
from pullback_runners.projects.configuration import ProjectFile

OPTIONS = UpOptions(data=Path("/data"), project=ProjectFile(Path("/clone")), host="127.0.0.1", port=8123)
DATABASE = "postgresql://postgres@/pullback?host=/data/postgres"


def test_the_api_comes_first_and_the_agent_last():
    plans = plan_processes(OPTIONS, database_url=DATABASE, listening_fd=7)
    assert [plan.name for plan in plans] == ["api", "worker", "agent"]
    assert plans[0].inherited_fd == 7


def test_the_agent_knows_the_service_and_not_the_database():
    api, worker, agent = plan_processes(OPTIONS, database_url=DATABASE, listening_fd=7)
    assert api.environment["DATABASE_URL"] == worker.environment["DATABASE_URL"] == DATABASE
    assert agent.environment == {}
    assert "http://127.0.0.1:8123" in agent.arguments
    assert agent.arguments[agent.arguments.index("--repository") + 1] == "/clone"
    assert agent.stop_signal == signal.SIGINT


def test_without_a_project_there_is_no_agent():
    plans = plan_processes(replace(OPTIONS, project=None), database_url=DATABASE, listening_fd=7)
    assert [plan.name for plan in plans] == ["api", "worker"]


def test_an_ipv6_address_is_bracketed_in_the_address():
    assert UpOptions(Path("/d"), None, "::1", 80).url == "http://[::1]:80"
