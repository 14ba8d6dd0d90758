"""A service that listens, for commands that speak to one."""

import threading
import time

import pytest
import uvicorn
from structlog.testing import capture_logs

from pullback_cli.app import create_app
from pullback_cli.serve import listen
from pullback_service.settings import Settings


@pytest.fixture
def service(database_url):
    """Address of a service that listens."""
    listening = listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(create_app(Settings(database_url=database_url)), log_config=None))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    with capture_logs():  # what the service says goes to the standard output of this process, which the commands share
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join()
    listening.close()
