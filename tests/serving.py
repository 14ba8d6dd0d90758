"""An application that is served in a thread of the tests' process, on a free port."""

import threading
import time
from contextlib import contextmanager

import uvicorn

from pullback_cli.serve import listen

BEGIN_S = END_S = 60


@contextmanager
def served(app, **options):
    """Its address. Requests that are still answered at the end have ten seconds."""
    with listen("127.0.0.1", 0) as listening:
        server = uvicorn.Server(uvicorn.Config(app, timeout_graceful_shutdown=10, **options))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        deadline = time.monotonic() + BEGIN_S
        while not server.started:
            assert thread.is_alive(), "the application ended before it began to serve; its log is above"
            assert time.monotonic() < deadline, f"the application did not begin to serve in {BEGIN_S} s"
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(END_S)
            assert not thread.is_alive(), f"the application did not end in {END_S} s"
