import httpx
import pytest

from pullback_runners.agent.claims import Lease
from pullback_runners.agent.client import ServiceClient
from pullback_runners.agent.job_log import JobLog

LEASE = Lease(job_id="7", attempt=1, token="00000000-0000-4000-8000-000000000007", heartbeat_s=15.0)  # noqa: S106


class _Store:
    """A log on the other side that may have forgotten what it had."""

    def __init__(self, forget_at=None):
        self.content = b""
        self.forget_at = forget_at

    def __call__(self, request):
        offset = int(request.url.params["offset"])
        if self.forget_at is not None and offset >= self.forget_at:
            self.content, self.forget_at = self.content[: self.forget_at], None
        if offset > len(self.content):
            return httpx.Response(416, json={"expected_offset": len(self.content)})
        self.content = self.content[:offset] + request.content
        return httpx.Response(200, json={"size": len(self.content)})


@pytest.mark.parametrize("forget_at", [None, 100_000])
def test_every_byte_arrives_even_if_the_service_asks_to_rewind(tmp_path, forget_at):
    written = bytes(range(256)) * 4000
    file = tmp_path / "log.txt"
    file.write_bytes(written)
    store = _Store(forget_at)
    with (
        ServiceClient("http://service.test", transport=httpx.MockTransport(store)) as client,
        JobLog(client, LEASE, file),
    ):
        pass
    assert store.content == written
