from datetime import UTC, datetime, timedelta

from pullback_dashboards.settings.view import audit_row, project_view, reader_of, rules_of, token_row
from pullback_service import caller as callers
from pullback_service.caller import Caller
from pullback_service.models.audit import Audit
from pullback_service.models.projects import Project
from pullback_service.models.tokens import Token
from pullback_service.settings import Settings
from pullback_service.tokens.queries import StoredToken

NOW = datetime(2026, 5, 1, tzinfo=UTC)


def test_rules_tell_limits_and_no_secret():
    settings = Settings(DATABASE_URL="postgresql://user:secret@host/name", token_work=12.5)
    rules = {rule.name: rule for rule in rules_of(settings)}
    assert (rules["token work"].value, rules["token work"].set_by) == ("12.5", "PULLBACK_TOKEN_WORK")
    assert (rules["max report"].value, rules["lease"].value, rules["least claim"].value) == ("64 MiB", "90 s", "0.5 %")
    assert (rules["auth"].value, rules["allow networks"].value) == ("not set", "none")
    assert all("secret" not in str(rule) and "DATABASE" not in rule.set_by for rule in rules.values())


def test_where_a_clone_lies_is_told_to_administrators_alone():
    project = Project(name="demo", public_read=False, mirror="/srv/demo", reports=1, commits=1, points=2)
    project.backfill = {"suite": "quick", "branch": "main", "requires": {"device": "cpu"}}
    reader = Caller("token 'a'", frozenset({"read"}))
    assert (project_view(project, [], reader).mirror, project_view(project, [], callers.LOCAL).mirror) == (
        None,
        "/srv/demo",
    )
    view = project_view(project, [], reader)
    assert (view.project.mirror, view.project.backfill, view.repository) == (True, "quick on main", None)
    assert (view.backfill.requires, view.backfill.order) == ('{"device":"cpu"}', "newest")


def test_who_is_of_one_project_makes_none():
    admin = Caller("token 'a'", frozenset({"admin"}), frozenset({1}))
    reader = reader_of(admin)
    assert (reader.may_change, reader.may_make_projects, reader.of_all_projects) == (True, False, False)


def test_a_token_is_valid_expired_or_revoked():
    def state(**more):
        token = Token(id=1, name="ci", prefix="plb_x", scopes=["read"], created_at=NOW, created_by="local", **more)
        return token_row(StoredToken(token, None), NOW).state

    day = timedelta(days=1)
    assert [state(), state(expires_at=NOW + day), state(expires_at=NOW - day)] == ["valid", "valid", "expired"]
    assert state(expires_at=NOW - day, revoked_at=NOW - day) == "revoked"


def test_what_was_written_is_told_in_words():
    line = Audit(id=1, at=NOW, actor="local", action="change_project", subject="project demo", project="demo")
    line.details = {"public_read": True, "note": "x" * 500}
    said = audit_row(line).details
    assert said.startswith("public_read: true, note: xxx")
    assert len(said) < 160
