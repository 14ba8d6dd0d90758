import httpx
import pytest
import stamina

from pullback_runners.agent.client import ServiceClient
from pullback_runners.agent.errors import PermanentError, TransientError
from pullback_runners.agent.retries import LONGEST_PAUSE_S, pause_after, retries


def _error_of(headers):
    transport = httpx.MockTransport(lambda _: httpx.Response(503, headers=headers, json={}))
    with ServiceClient("http://service.test", transport=transport) as client, pytest.raises(TransientError) as error:
        client.deliver("/report", body=b"{}", key="k", lease_token=None)
    return error.value


@pytest.mark.parametrize(("asked_s", "least_s"), [(2, 2), (0, 0), (3600, LONGEST_PAUSE_S)])
def test_the_pause_is_what_the_service_asks_for_and_up_to_half_more(asked_s, least_s):
    error = _error_of({"Retry-After": str(asked_s)})
    pauses = [pause_after(error) for _ in range(50)]
    assert all(least_s <= pause <= 1.5 * least_s for pause in pauses)
    assert asked_s == 0 or len(set(pauses)) > 1


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


def test_a_service_that_asks_for_short_pauses_is_asked_often():
    scheduled = []
    hooks = stamina.instrumentation.get_on_retry_hooks()
    stamina.instrumentation.set_on_retry_hooks([lambda details: scheduled.append(details.wait_for)])
    failures = iter([TransientError("busy", retry_after_s=0.001)] * 12)
    try:
        for attempt in retries():
            with attempt:
                if (failure := next(failures, None)) is not None:
                    raise failure
    finally:
        stamina.instrumentation.set_on_retry_hooks(hooks)
    assert len(scheduled) == 12
    assert max(scheduled) <= 0.0015
