"""The web application: the service's API and, where they are installed, the pages.

`uvicorn --factory pullback_cli.app:create_app` serves it.
"""

from importlib.util import find_spec

from fastapi import FastAPI

from pullback_service.application import create_service
from pullback_service.settings import Settings


def create_app(settings: Settings | None = None) -> FastAPI:
    """API and pages on the database the settings name."""
    app = create_service(settings)
    if find_spec("pullback_dashboards.pages") is not None:
        from pullback_dashboards.pages import mount

        mount(app)
    return app
