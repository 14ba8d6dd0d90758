import httpx
import pytest

from pullback_runners.agent.client import ServiceClient
from pullback_runners.agent.errors import PermanentError, TransientError
from pullback_runners.agent.retries import LONGEST_PAUSE_S, SHORTEST_PAUSE_S, pause_after, retries


def _error_of(headers):
    transport = httpx.MockTransport(lambda _: httpx.Response(503, headers=headers, json={}))
    with ServiceClient("http://service.test", transport=transport) as client, pytest.raises(TransientError) as error:
        client.deliver("/report", body=b"{}", key="k", lease_token=None)
    return error.value


@pytest.mark.parametrize(("asked_s", "least_s"), [(2, 2), (0, SHORTEST_PAUSE_S), (3600, LONGEST_PAUSE_S)])
def test_the_pause_is_what_the_service_asks_for_and_up_to_half_more(asked_s, least_s):
    error = _error_of({"Retry-After": str(asked_s)})
    pauses = [pause_after(error) for _ in range(50)]
    assert all(least_s <= pause <= 1.5 * least_s for pause in pauses)
    assert len(set(pauses)) > 1


def test_a_pause_that_the_service_does_not_name_grows():
    assert pause_after(_error_of({})) is True
    assert pause_after(TransientError("no answer")) is True


def test_other_errors_are_not_retried():
    calls = []

    def refused():
        for attempt in retries():
            with attempt:
                calls.append("call")
                raise PermanentError("refused")

    with pytest.raises(PermanentError):
        refused()
    assert calls == ["call"]
    assert pause_after(ValueError()) is False
