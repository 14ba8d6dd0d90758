"""Names of projects that look the same are the same, and nothing unseen tells two apart."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import insert, select

from pullback_service.errors import InvalidInputError
from pullback_service.models import Job, Project
from pullback_service.projects.project_names import refuse_unseen

# ruff: noqa: RUF001 - letters that could be taken for others are the point

URL = "/api/v1/projects"
COMPOSED, DECOMPOSED = "d\u00e9mo", "de\u0301mo"


@pytest.mark.parametrize(
    "name",
    [
        "demo",
        "group/my demo",
        "naïve Ünïcode",
        "проект demo",
        "計算 プロジェクト",
        "مشروع القياس",
        "می\u200cخواهم",  # Persian: the non-joiner keeps two letters of one word apart
        "क्\u200dष",  # Devanagari: the joiner asks for the half form
        "пр\u0301оба",
        "שָׁלוֹם",
        "👩\u200d🔬 lab",
        "👨🏽\u200d💻",
        "🏳\ufe0f\u200d🌈",
        "👩\u200d❤\ufe0f\u200d👩",
        "❤\ufe0f",
        "1\ufe0f\u20e3",
    ],
)
def test_names_of_people_of_the_world_are_taken(name):
    refuse_unseen(name)


@pytest.mark.parametrize(
    ("name", "called"),
    [
        ("de\u200bmo", "U+200B (ZERO WIDTH SPACE)"),
        ("demo\u2060", "U+2060 (WORD JOINER)"),
        ("de\u00admo", "U+00AD (SOFT HYPHEN)"),
        ("\ufeffdemo", "U+FEFF (ZERO WIDTH NO-BREAK SPACE)"),
        ("\u202eomed", "U+202E (RIGHT-TO-LEFT OVERRIDE)"),
        ("demo\u200f", "U+200F (RIGHT-TO-LEFT MARK)"),
        ("de\u200dmo", "U+200D (ZERO WIDTH JOINER)"),
        ("de\u200cmo", "U+200C (ZERO WIDTH NON-JOINER)"),
        ("🔬\u200d", "U+200D (ZERO WIDTH JOINER)"),
        ("👩\u200d\u200d🔬", "U+200D (ZERO WIDTH JOINER)"),
        ("demo\ufe0f", "U+FE0F (VARIATION SELECTOR-16)"),
        ("❤\ufe0f\ufe0f", "U+FE0F (VARIATION SELECTOR-16)"),
        ("my\u00a0demo", "U+00A0 (NO-BREAK SPACE)"),
        ("my\u3000demo", "U+3000 (IDEOGRAPHIC SPACE)"),
        ("demo\u3164", "U+3164 (HANGUL FILLER)"),
        ("demo\u2800", "U+2800 (BRAILLE PATTERN BLANK)"),
        ("demo\U000e0041", "U+E0041 (TAG LATIN CAPITAL LETTER A)"),
        ("de\x85mo", "U+0085 (a control character)"),
    ],
)
def test_what_is_not_seen_is_refused_by_its_name(name, called):
    with pytest.raises(InvalidInputError) as refused:
        refuse_unseen(name)
    assert f"has {called} " in refused.value.detail
    assert name not in refused.value.detail


@given(st.text(st.characters(categories=["L", "N", "P"], exclude_characters="\u115f\u1160\u3164\uffa0")))
def test_letters_digits_and_punctuation_are_seen(name):
    refuse_unseen(name)


@given(st.text("ab❤👩🏽\u0639\u094d\u0915\u200c\u200d\ufe0f", max_size=6), st.sampled_from("ab"), st.sampled_from("ab"))
def test_between_plain_letters_nothing_is_hidden(middle, before, after):
    """Whatever else stands in a name: what joins two plain letters, or none, is refused."""
    name = f"{before}\u200d{after}{middle}"
    with pytest.raises(InvalidInputError):
        refuse_unseen(name)


@pytest.mark.anyio
async def test_a_name_is_stored_composed_and_found_however_it_is_typed(client, reports):
    made = await client.post(URL, json={"name": DECOMPOSED})
    assert (made.status_code, made.json()["name"]) == (201, COMPOSED)
    assert (await client.post(URL, json={"name": COMPOSED})).status_code == 409
    for commit, name in enumerate((COMPOSED, DECOMPOSED), start=1):
        sent = await client.post("/api/v1/reports", json=reports.report(commit, project=name))
        assert sent.status_code == 201
        job = {"project": name, "suite": "quick", "commit": {"sha": reports.sha(commit)}}
        assert (await client.post("/api/v1/jobs", json=job)).status_code == 201
    assert [one["name"] for one in (await client.get(URL)).json()["items"]] == [COMPOSED]
    for name in (COMPOSED, DECOMPOSED):
        assert (await client.get(f"{URL}/{name}")).json()["name"] == COMPOSED
        for address in ("reports", "jobs", "series", "commits", "branches", "audit"):
            listed = (await client.get(f"/api/v1/{address}", params={"project": name})).json()["items"]
            assert listed, (address, name)
        assert len((await client.get("/api/v1/jobs", params={"project": name})).json()["items"]) == 2


@pytest.mark.anyio
async def test_a_report_or_job_makes_no_project_with_an_unseen_character(client, reports, looking):
    name = "de\u200bmo"
    for address, content in (
        (URL, {"name": name}),
        ("/api/v1/reports", reports.report(project=name)),
        ("/api/v1/jobs", {"project": name, "suite": "quick", "commit": {"sha": reports.sha(1)}}),
        ("/api/v1/commits", {"project": name, "branch": "main", "commits": [{"sha": reports.sha(1), "parents": []}]}),
    ):
        refused = await client.post(address, json=content)
        assert refused.status_code == 422, address
        assert "U+200B (ZERO WIDTH SPACE) after 'de', which is not visible: remove it" in refused.json()["detail"]
    assert (await looking.scalars(select(Project.name))).all() == []


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["de\u200bmo", DECOMPOSED])
async def test_projects_that_were_named_before_keep_working(client, reports, looking, name):
    await looking.execute(insert(Project).values(name=name))
    await looking.commit()
    assert (await client.post("/api/v1/reports", json=reports.report(project=name))).status_code == 201
    job = {"project": name, "suite": "quick", "commit": {"sha": reports.sha(1)}}
    assert (await client.post("/api/v1/jobs", json=job)).status_code == 201
    changed = await client.patch(f"{URL}/{name}", json={"public_read": True})
    assert (changed.json()["name"], changed.json()["public_read"]) == (name, True)
    for address in ("reports", "jobs", "series"):
        assert (await client.get(f"/api/v1/{address}", params={"project": name})).json()["items"], address
    assert (await client.post(URL, json={"name": unicodedata.normalize("NFC", name)})).status_code in {409, 422}
    assert (await looking.scalars(select(Project.name))).all() == [name]
    assert (await looking.scalars(select(Job.id))).all() != []
