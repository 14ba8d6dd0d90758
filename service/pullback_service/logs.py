"""Structured logs on standard error: JSON for machines, text for people, the request's id on every line of a request."""

import logging
import sys

import structlog
from structlog.typing import FilteringBoundLogger, Processor

from pullback_service.settings import Settings

logger: FilteringBoundLogger = structlog.get_logger("pullback")

# Without the values of local variables: among them are headers with tokens, and the bodies of uploads.
TRACEBACKS = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)


def request_id() -> str | None:
    """The id of the request that is being served, by which its lines are found."""
    result = structlog.contextvars.get_contextvars().get("request_id")
    return None if result is None else str(result)


def configure_logs(settings: Settings) -> None:
    """Send the logs of this process, those of libraries included, through one form."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    finish: list[Processor] = (
        [structlog.processors.ExceptionRenderer(TRACEBACKS), structlog.processors.JSONRenderer()]
        if settings.log_format == "json"
        else [
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback)
        ]
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *finish],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.log_level.upper())
    # Requests are logged by ourselves, with their ids; uvicorn's own lines would say everything twice.
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        library = logging.getLogger(name)
        library.handlers.clear()
        library.propagate = name != "uvicorn.access"
    for name in ("procrastinate", "psycopg.pool", "alembic"):
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
