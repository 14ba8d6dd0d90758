import json

import pytest

from pullback_runners.agent.claims import Lease
from pullback_runners.agent.deliveries import failure_delivery, report_delivery
from pullback_runners.agent.errors import JobFailedError

LEASE = Lease(job_id="7", attempt=1, token="t", heartbeat_s=15.0)  # noqa: S106 - of nobody
HALF = "\ud800"


def test_what_a_commit_writes_is_sent_without_characters_that_cannot_be_stored():
    report = {"cases": [{"case": {"workload": "a\0b"}, "x\0": [1, 2.5, None, True, f"é{HALF}"]}]}
    delivery = report_delivery(LEASE, "key", report)
    assert delivery.body == {"cases": [{"case": {"workload": "a\ufffdb"}, "x\ufffd": [1, 2.5, None, True, "é\ufffd"]}]}
    failure = failure_delivery(LEASE, "build", f"wrote \0{HALF}", retryable=False)
    assert failure.body["message"] == "wrote \ufffd\ufffd"


def test_a_report_that_is_nested_without_end_is_the_jobs_failure():
    with pytest.raises(JobFailedError, match="nested more than 100 levels deep") as caught:
        report_delivery(LEASE, "key", json.loads('{"plan":' * 200 + "1" + "}" * 200))
    assert caught.value.kind == "workload"
