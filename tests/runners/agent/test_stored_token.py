from pullback_runners.agent.stored_token import read_own_token, store_token


def test_a_token_is_kept_for_this_account_alone(tmp_path):
    assert read_own_token(tmp_path) is None
    store_token(tmp_path, "plb_first")
    store_token(tmp_path, "plb_second")
    assert read_own_token(tmp_path) == "plb_second"
    assert (tmp_path / "token").stat().st_mode & 0o077 == 0
    assert [path.name for path in tmp_path.iterdir()] == ["token"]
