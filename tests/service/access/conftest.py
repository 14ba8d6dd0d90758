"""A service that asks for tokens, and the tokens to show it."""

import httpx
import pytest

BOOTSTRAP = "open sesame"


@pytest.fixture
async def guarded(start_service, tmp_path):
    (tmp_path / "token").write_text(f"{BOOTSTRAP}\n")
    async with start_service(auth="token", token_file=tmp_path / "token") as client:
        yield client


@pytest.fixture
async def admin(guarded):
    """The same service, asked with the bootstrap token."""
    async with httpx.AsyncClient(
        transport=guarded._transport, base_url=guarded.base_url, headers={"authorization": f"Bearer {BOOTSTRAP}"}
    ) as client:
        client._transport = guarded._transport
        yield client
        client._transport = httpx.ASGITransport(app=None)  # the service's own client closes the transport


@pytest.fixture
def make_token(admin):
    """Make a token and return the headers that show it."""
    made = 0

    async def make(*scopes, **more):
        nonlocal made
        made += 1
        answer = await admin.post("/api/v1/tokens", json={"name": f"token {made}", "scopes": list(scopes), **more})
        assert answer.status_code == 201, answer.text
        return {"authorization": f"Bearer {answer.json()['token']}"}

    return make


@pytest.fixture
async def looking(database):
    """A session that looks into the database between requests: each commit lets it see what has happened since."""
    async with database.writing() as session:
        yield session
