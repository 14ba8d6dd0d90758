"""`pullback worker`: the service's chores."""

from pullback_cli.usage_errors import needs


@needs("service")
def worker() -> None:
    """Run the service's background tasks: expired leases, work after uploads, notifications, retention. Any number may run.

    Example: `DATABASE_URL=postgresql://user@host/pullback pullback worker`
    """
    from pullback_service.settings import load_settings

    settings = load_settings()
    url = settings.require_database_url()  # what is wrong with them is said before anything heavy is loaded

    settings.networks()
    settings.mail_server()

    from pullback_service.process_memory import collect_nothing_yet, collect_seldom

    collect_nothing_yet()

    from pullback_service import worker as chores
    from pullback_service.logs import configure_logs
    from pullback_service.notifications.transport import outside_of

    configure_logs(settings)
    collect_seldom()
    chores.run(
        url,
        idle_noise_hours=settings.idle_noise_hours,
        incident_minutes=settings.incident_minutes,
        outside=outside_of(settings),
        alive_file=settings.alive_file,
    )
