"""`pullback worker`: the service's chores."""

from pullback_cli.refusals import needs


@needs("service")
def worker() -> None:
    """Do the service's chores: expired leases, what follows an upload, clearing out. Any number may run.

    Example: `DATABASE_URL=postgresql://user@host/pullback pullback worker`
    """
    from pullback_service.worker import run_worker  # noqa: PLC0415 - heavy, and an extra

    run_worker()
