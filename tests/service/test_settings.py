"""Settings come by environment; what does not hold is said in one sentence."""

from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy.exc import OperationalError

from pullback_service.database import sync_engine
from pullback_service.errors import SetupError
from pullback_service.settings import Settings, load_settings, refuse_open_bind


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch):
    for name in ("DATABASE_URL", "DATABASE_URL_FILE", "PULLBACK_AUTH", "PULLBACK_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)


def test_the_database_comes_by_variable(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgresql://here/db")
    assert load_settings().require_database_url() == "postgresql://here/db"


def test_the_database_comes_by_file(monkeypatch, tmp_path):
    (tmp_path / "url").write_text("postgresql://there/db\n")
    monkeypatch.setenv("DATABASE_URL_FILE", str(tmp_path / "url"))
    assert load_settings().require_database_url() == "postgresql://there/db"


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg", "postgres+asyncpg", "postgresql+"])
def test_an_address_may_be_of_sqlalchemys_form(monkeypatch, scheme):
    monkeypatch.setenv("DATABASE_URL", f"{scheme}://user:a+b@here:5432/db?sslmode=require")
    named = scheme.partition("+")[0]
    assert load_settings().require_database_url() == f"{named}://user:a+b@here:5432/db?sslmode=require"


def test_what_is_set_to_nothing_names_no_database(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "")
    assert load_settings().named_database_url() is None


def test_an_address_in_a_file_is_refused_by_the_name_of_the_file_and_not_shown(monkeypatch, tmp_path):
    (tmp_path / "url").write_text("hunter2")
    monkeypatch.setenv("DATABASE_URL_FILE", str(tmp_path / "url"))
    with pytest.raises(SetupError, match=f"DATABASE_URL_FILE names {tmp_path}/url, whose content is not") as refused:
        load_settings().require_database_url()
    assert "hunter2" not in str(refused.value)


@given(
    st.lists(
        st.sampled_from(
            ["u", "h", "1", "5432", ",", "host", "port", "٣", " ", ":", "@", "/", "?", "[", "]", "&", "=", "%"]
        )
    )
)
@example(["u", ":", "p%2F", "@", "h", ":", "5432", "/", "db", "?", "sslmode", "=", "require"])
@example(["u", ":", "p", "@", "h", ":", "5432", ",", "[", "::1", "]", ":", "5433", "/", "db"])
@example(["/", "db", "?", "host", "=", "/a,/b", "&", "port", "=", "5432"])
@example([":", "/"])
@example([":", "1", " "])
def test_an_address_that_is_taken_is_read_by_sqlalchemy_as_by_libpq(pieces):
    address = "postgresql://" + "".join(pieces)
    try:
        Settings(database_url=address).require_database_url()
    except SetupError:
        return
    given_to_driver = {}

    def connect(*_, **named):
        given_to_driver.update(named)
        raise psycopg.OperationalError

    with pytest.MonkeyPatch.context() as patch, suppress(OperationalError):
        patch.setattr(psycopg, "connect", connect)
        sync_engine(address).connect()
    assert conninfo_to_dict(address).items() <= given_to_driver.items()


def test_an_address_may_name_several_servers_with_their_ports():
    address = "postgresql://user@here:5432,there:5433/db"
    assert Settings(database_url=address).require_database_url() == address


def test_a_port_with_a_sign_is_refused_though_one_reader_takes_it():
    with pytest.raises(SetupError):
        Settings(database_url="postgresql://h:+1").require_database_url()


def test_no_database_is_one_sentence_with_the_remedy():
    with pytest.raises(SetupError, match="set DATABASE_URL, or use `pullback up`"):
        load_settings().require_database_url()


def test_a_wrong_value_names_its_variable(monkeypatch):
    monkeypatch.setenv("PULLBACK_LEASE_S", "soon")
    with pytest.raises(SetupError, match=r"^PULLBACK_LEASE_S is not valid: Give a number\.$"):
        load_settings()


@pytest.mark.parametrize(
    "url", ["pullback.example", "ftp://pullback.example", "https://pullback.example/ci", "https://a@b.example"]
)
def test_a_public_address_is_that_of_a_host(monkeypatch, url):
    monkeypatch.setenv("PULLBACK_PUBLIC_URL", url)
    with pytest.raises(
        SetupError, match=r"^PULLBACK_PUBLIC_URL is not valid: .*like https://pullback\.example, without a path"
    ):
        load_settings()


def test_what_stands_in_the_wrong_variable_is_not_shown(monkeypatch):
    monkeypatch.setenv("PULLBACK_AUTH", "a-secret")
    with pytest.raises(SetupError, match=r"^PULLBACK_AUTH is not valid: Give 'token'\.$"):
        load_settings()


def test_token_auth_without_a_secret_is_refused():
    with pytest.raises(SetupError, match="set PULLBACK_TOKEN_FILE"):
        Settings(auth="token").token()


def test_an_empty_secret_is_refused(tmp_path):
    (tmp_path / "token").write_text(" \n")
    with pytest.raises(SetupError, match="which is empty"):
        Settings(auth="token", token_file=tmp_path / "token").token()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "localhost"])
def test_loopback_needs_no_authentication(host):
    refuse_open_bind(host, Settings())


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org", ""])  # noqa: S104 - refused, not bound
def test_other_addresses_are_refused_without_authentication(host):
    with pytest.raises(SetupError, match="PULLBACK_AUTH=token"):
        refuse_open_bind(host, Settings())
    refuse_open_bind(host, Settings(auth="token"))


def test_every_setting_is_on_the_page_with_what_it_means_and_its_default():
    rows = []
    for name, field in Settings.model_fields.items():
        assert field.description, name
        variable = str(field.validation_alias or f"PULLBACK_{name.upper()}")
        default = field.default if field.default is not None else ""
        shown = (
            f"{default // 2**20} MiB"
            if name.endswith("_bytes")
            else f"{default:g}"
            if isinstance(default, float)
            else default
        )
        rows.append(f"| `{variable}` | {shown} | {' '.join(field.description.split())} |")
    page = (Path(__file__).parents[2] / "docs" / "operating.md").read_text()
    assert "\n".join(rows) in page, "the table of docs/operating.md should be:\n" + "\n".join(rows)


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("smtp://mail.example", ("mail.example", 587, False, None, None)),
        ("smtps://me%40x:p%3Ass@mail.example", ("mail.example", 465, True, "me@x", "p:ss")),
        ("smtp://127.0.0.1:2525", ("127.0.0.1", 2525, False, None, None)),
    ],
)
def test_a_mail_server_is_read_from_its_address(url, server):
    found = Settings(smtp_url=url, public_url="https://pullback.example/").mail_server()
    assert (found.host, found.port, found.is_encrypted, found.user, found.password) == server
    assert found.sender == "pullback@pullback.example"


@pytest.mark.parametrize("url", ["https://mail.example", "mail.example:25", "smtp://", "smtp://h:port"])
def test_what_is_no_mail_server_is_refused_without_showing_it(url, tmp_path):
    (tmp_path / "url").write_text(url.replace("//", "//me:hunter2@"))
    with pytest.raises(SetupError, match="is not an address like smtps://") as refused:
        Settings(smtp_url_file=tmp_path / "url", mail_from="a@b.co").mail_server()
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("sender", [None, "nobody", "a@b.co\nBcc: c@d.co", "a@b.co, c@d.co"])
def test_a_sender_is_one_address(sender):
    with pytest.raises(SetupError, match="PULLBACK_MAIL_FROM must be the sender"):
        Settings(smtp_url="smtp://mail.example", mail_from=sender).mail_server()


def test_networks_that_are_none_are_refused():
    assert len(Settings(allow_networks="10.0.0.0/8,fd00::/8").networks()) == 2
    with pytest.raises(SetupError, match="PULLBACK_ALLOW_NETWORKS is not valid"):
        Settings(allow_networks="10.0.0.1/8").networks()
