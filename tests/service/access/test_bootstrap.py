"""The bootstrap token has every right: one that could be guessed is told of."""

import pytest
from structlog.testing import capture_logs

from pullback_service.access.bootstrap import warn_of_short_token
from pullback_service.settings import Settings


@pytest.mark.parametrize(("length", "lines"), [(19, 1), (20, 0)])
def test_a_short_bootstrap_token_is_told_of(tmp_path, length, lines):
    file = tmp_path / "token"
    file.write_text("x" * length + "\n")
    with capture_logs() as said:
        warn_of_short_token(Settings(auth="token", token_file=file))
    assert len(said) == lines
