"""Pages over histories in which changes were looked for."""

import httpx
import pytest
from tests.service.conftest import anyio_backend, count_statements, database, reports  # noqa: F401 - fixtures
from tests.service.incidents.conftest import History

from pullback_cli.app import create_app
from pullback_service.settings import Settings


@pytest.fixture
async def history(database_url, reports, database):  # noqa: F811 - fixtures
    app = create_app(Settings(DATABASE_URL=database_url))
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1", timeout=30) as client,
    ):
        yield History(client, reports, database)
