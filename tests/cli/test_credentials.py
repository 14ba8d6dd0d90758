"""The token that a command shows: whole, or refused by where it stands, never by what it is."""

import pytest

from pullback_cli.credentials import token_in
from pullback_cli.usage_errors import RefusalError


def test_a_token_is_read_from_a_file_or_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("PULLBACK_TOKEN", "plb_of_the_environment")
    assert token_in(None) == "plb_of_the_environment"
    (tmp_path / "token").write_text("plb_of_the_file\n")
    assert token_in(tmp_path / "token") == "plb_of_the_file"
    monkeypatch.delenv("PULLBACK_TOKEN")
    assert token_in(None) is None


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("plb_one\nplb_two", "more than one line"),
        ("plb_\u00e9", "characters that tokens cannot contain"),
        ("plb_a b", "characters"),
        (" \n", "is empty"),
    ],
)
def test_what_is_no_token_is_refused_without_being_shown(tmp_path, monkeypatch, content, said):
    file = tmp_path / "token"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(RefusalError, match=said) as refused:
        token_in(file)
    assert "plb_" not in str(refused.value)
    assert str(file) in str(refused.value)
    if content.strip():
        monkeypatch.setenv("PULLBACK_TOKEN", content)
        with pytest.raises(RefusalError, match="PULLBACK_TOKEN holds"):
            token_in(None)
