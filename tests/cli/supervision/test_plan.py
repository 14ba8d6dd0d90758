import signal
from dataclasses import replace
from pathlib import Path

from pullback_cli.supervision.plan import UpOptions, plan_processes

OPTIONS = UpOptions(data=Path("/data"), repository=Path("/clone"), host="127.0.0.1", port=8123, with_agent=True)
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
    assert agent.stop_signal == signal.SIGINT


def test_no_agent_means_no_agent():
    plans = plan_processes(replace(OPTIONS, with_agent=False), database_url=DATABASE, listening_fd=7)
    assert [plan.name for plan in plans] == ["api", "worker"]


def test_an_ipv6_address_is_bracketed_in_the_address():
    assert UpOptions(Path("/d"), Path("/r"), "::1", 80, with_agent=False).url == "http://[::1]:80"
