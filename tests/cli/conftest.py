"""A service that listens, for commands that speak to one."""

import pytest
from structlog.testing import capture_logs
from tests.serving import served

from pullback_cli.app import create_app
from pullback_service.settings import Settings


@pytest.fixture
def service(database_url):
    """Address of a service that listens."""
    # What the service says goes to the standard output of this process, which the commands share.
    with capture_logs(), served(create_app(Settings(database_url=database_url)), log_config=None) as address:
        yield address
