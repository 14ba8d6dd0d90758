"""`up --detach`: the wait for the one in the background."""

import re

import pytest

from pullback_cli.supervision import detached
from pullback_cli.supervision.plan import UpOptions
from pullback_cli.usage_errors import RefusalError


def test_one_that_is_not_ready_in_time_is_ended_and_is_a_refusal_that_names_its_log(tmp_path, monkeypatch):
    monkeypatch.setattr(detached, "READY_TIMEOUT_S", 0.0)
    options = UpOptions(data=tmp_path, project=None, host="127.0.0.1", port=0)
    with pytest.raises(RefusalError, match=rf"not ready after 0 s: {re.escape(str(options.logs / 'up.log'))} shows"):
        detached.start_detached(options, suite="quick")
