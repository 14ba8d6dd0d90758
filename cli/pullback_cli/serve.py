"""`pullback serve`: the API and the pages in one process."""

import resource
import socket
import sys
from functools import partial
from typing import Annotated

import typer

from pullback_cli.usage_errors import RefusalError, needs

# Uploads that are under way are finished; a large one over a slow line may take this long.
SHUTDOWN_S = 20
# Bytes of a request before its body that may come in pieces. An address that is too long is told so in a sentence, while at
# the usual 16 KiB its connection was closed without one, if it happened to come in two pieces.
LONGEST_HEAD = 256 * 1024
# Connections of one process. Where few files may be open, a quarter of them is left for the database and whatever else is opened.
MOST_CONNECTIONS = 10_000
# How long a thread that reads a large upload may keep the event loop waiting, each time that it has something to do: at
# Python's own 5 ms the ten statements with which storing begins took 100 to 190 ms.
SWITCH_INTERVAL_S = 0.001


@needs("service")
def serve(
    *,
    host: Annotated[
        str, typer.Option(help="Address to listen on; other than loopback needs PULLBACK_AUTH=token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(envvar="PULLBACK_PORT", min=0, max=65535, help="Port; 0 for a free one.")] = 8000,
    fd: Annotated[
        int | None, typer.Option(hidden=True, help="A listening socket inherited from `pullback up`.")
    ] = None,
) -> None:
    """Serve the API and the pages, using the database of DATABASE_URL.

    Examples:
    DATABASE_URL=postgresql://user@host/pullback pullback serve

    PULLBACK_AUTH=token PULLBACK_TOKEN_FILE=token pullback serve --host 0.0.0.0 --port 80
    """
    from pullback_service.settings import load_settings, refuse_open_bind

    # What is wrong with them is said at once, and not after a second or two of imports.
    settings = load_settings()
    refuse_open_bind(host, settings)
    settings.token()
    url = settings.require_database_url()
    listening = socket.socket(fileno=fd) if fd is not None else listen(host, port)

    from pullback_service.process_memory import (
        FULL_AT_LATEST,
        collect_nothing_yet,
        collect_seldom,
        keep_no_large_buffers,
    )

    collect_nothing_yet()

    import uvicorn

    from pullback_cli.app import create_app
    from pullback_cli.http_protocol import BoundedHeadProtocol, DropUnreadBody, Heads, Server
    from pullback_service.access.bootstrap import warn_of_short_token
    from pullback_service.application import let_go
    from pullback_service.logs import configure_logs
    from pullback_service.metrics import Metrics
    from pullback_service.migrations import warn_unless_fit
    from pullback_service.readiness import Readiness
    from pullback_service.runtime import runtime_of

    configure_logs(settings)
    warn_of_short_token(settings)
    warn_unless_fit(url)
    application = create_app(settings)

    def count_refusal(kind: str) -> None:
        runtime_of(application).get(Metrics).refusals.labels(kind).inc()

    def say_not_ready() -> None:
        runtime_of(application).get(Readiness).stops = True

    heads = Heads()
    most = min(MOST_CONNECTIONS, raise_open_files() * 3 // 4)
    config = uvicorn.Config(
        DropUnreadBody(application),
        log_config=None,  # the application logs its requests itself
        access_log=False,
        timeout_graceful_shutdown=SHUTDOWN_S,
        # Agents and CI jobs keep their connections between requests; at the usual 5 s they would find them just closed.
        timeout_keep_alive=75,
        h11_max_incomplete_event_size=LONGEST_HEAD,
        http=partial(BoundedHeadProtocol, most=most, heads=heads, refused=count_refusal),  # type: ignore[arg-type]  # called as the class is
    )
    collect_seldom(full_after=FULL_AT_LATEST)
    keep_no_large_buffers()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    server = Server(
        config, heads=heads, warn=say_not_ready, let_go=partial(let_go, application), drain_s=settings.drain_s
    )
    server.run(sockets=[listening])


def raise_open_files() -> int:
    """Let this process have as many open files as it may, and return how many: the soft limit is often 1,024."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return sys.maxsize if most == resource.RLIM_INFINITY else most


def listen(host: str, port: int) -> socket.socket:
    """Open the listening socket; a port in use is a refusal that names the remedy."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a port just left may be taken again at once
        listening.bind((host, port))
        listening.listen(2048)
    except OSError as error:
        listening.close()
        raise RefusalError(
            f"port {port} on {host} cannot be used ({error.strerror}): stop the process that uses it, "
            "or choose another with --port or PULLBACK_PORT"
        ) from error
    listening.set_inheritable(True)
    return listening
