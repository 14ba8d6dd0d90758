"""Who is let in: with which token, to which endpoint, into which project, and what a refusal says."""

import asyncio
from uuid import uuid4

import orjson
import psycopg
import pytest
from psycopg import sql
from sqlalchemy import select, text, update

from pullback_service.access import budgets
from pullback_service.access.authentication import Authenticator
from pullback_service.caller import anonymous
from pullback_service.jobs.job_listener import JobListener
from pullback_service.logins.cookies import COOKIE, csrf_of, masked_csrf_of
from pullback_service.logins.queries import open_login
from pullback_service.metrics import Metrics
from pullback_service.models import Audit, Project, Token
from pullback_service.request_turns import RequestTurns
from pullback_service.runtime import runtime_of
from pullback_service.tokens.secrets import digest_of

pytestmark = pytest.mark.anyio

API = "/api/v1"


def problem_of(response, status):
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    return response.json()["detail"]


def refusals_of(client):
    """The number of refusals, by kind."""
    samples = runtime_of(client.app).get(Metrics).refusals.collect()[0].samples
    return {sample.labels["kind"]: sample.value for sample in samples if sample.name.endswith("_total")}


async def test_without_a_token_the_answer_says_how_to_get_one(guarded):
    response = await guarded.get(f"{API}/projects")
    detail = problem_of(response, 401)
    assert "Authorization: Bearer TOKEN" in detail
    assert "pullback token create" in detail
    assert response.headers["www-authenticate"].startswith("Bearer")
    problem_of(await guarded.get("/metrics"), 401)
    assert (await guarded.get("/healthz")).status_code == 200


async def test_the_bootstrap_token_may_do_everything(admin):
    assert (await admin.get(f"{API}/projects")).status_code == 200
    assert (await admin.get(f"{API}/whoami")).json() == {
        "name": "bootstrap token",
        "scopes": ["admin", "agent", "read", "upload"],
        "projects": None,
    }


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("Bearer open", "tokens begin with plb_"),
        ("Bearer open sesamé".encode(), "tokens begin with plb_"),
        ("Bearer", "tokens begin with plb_"),
        ("Bearer plb_nobodyknowsthisone", "Unknown token"),
        ("Bearer plb_enroll_nobodyknowsthisone", "pullback token enroll"),
        ("Digest x", "Authorization: Bearer TOKEN"),
        ("Basic !", "Authorization: Bearer TOKEN"),
    ],
)
async def test_a_wrong_token_is_told_from_a_missing_one(guarded, header, said):
    assert said in problem_of(await guarded.get(f"{API}/projects", headers={"authorization": header}), 401)


async def test_a_token_does_what_its_scopes_say_and_nothing_else(guarded, admin, make_token, report):
    read, upload = await make_token("read"), await make_token("upload")
    await admin.post(f"{API}/projects", json={"name": report["project"]})
    detail = problem_of(await guarded.post(f"{API}/reports", json=report, headers=read), 403)
    assert "has scope read" in detail
    assert "needs upload" in detail
    assert (await guarded.post(f"{API}/reports", json=report, headers=upload)).status_code == 201
    assert (await guarded.get(f"{API}/reports", headers=read)).status_code == 200
    problem_of(await guarded.get(f"{API}/reports", headers=upload), 403)
    problem_of(await guarded.get(f"{API}/tokens", headers=read), 403)


async def test_only_a_digest_is_stored_and_the_token_is_shown_once(admin, looking):
    made = (await admin.post(f"{API}/tokens", json={"name": "ci", "scopes": ["upload"]})).json()
    assert made["token"].startswith("plb_")
    listed = (await admin.get(f"{API}/tokens")).json()["items"]
    assert [(token["name"], token["prefix"]) for token in listed] == [("ci", made["token"][:10])]
    assert made["token"] not in str(listed)
    row = (await looking.execute(text("SELECT * FROM token"))).one()
    assert made["token"] not in str(tuple(row))
    assert made["token"].encode() not in bytes(row.digest)


async def test_a_revoked_token_is_refused_at_once_and_its_name_is_free_again(guarded, admin):
    wanted = {"name": "ci", "scopes": ["read"]}
    made = (await admin.post(f"{API}/tokens", json=wanted)).json()
    assert "valid token 'ci' exists already" in problem_of(await admin.post(f"{API}/tokens", json=wanted), 409)
    headers = {"authorization": f"Bearer {made['token']}"}
    assert (await guarded.get(f"{API}/projects", headers=headers)).status_code == 200
    assert (await admin.post(f"{API}/tokens/{made['id']}/revoke")).json()["revoked_at"]
    detail = problem_of(await guarded.get(f"{API}/projects", headers=headers), 401)
    assert "'ci' was revoked at" in detail
    assert "pullback token create" in detail
    assert (await admin.post(f"{API}/tokens", json=wanted)).status_code == 201


async def test_an_expired_token_says_when_it_ended(guarded, make_token, looking):
    headers = await make_token("read", expires_in_days=1)
    assert (await guarded.get(f"{API}/projects", headers=headers)).status_code == 200
    await looking.execute(update(Token).values(expires_at=text("now() - interval '1 hour'")))
    await looking.commit()
    assert "'token 1' expired at" in problem_of(await guarded.get(f"{API}/projects", headers=headers), 401)


async def test_last_use_is_written_at_most_once_a_minute(guarded, make_token, looking):
    headers = await make_token("read")
    used = select(Token.last_used_at)
    assert await looking.scalar(used) is None
    await looking.commit()
    await guarded.get(f"{API}/projects", headers=headers)
    first = await looking.scalar(used)
    await looking.commit()
    assert first is not None
    await guarded.get(f"{API}/projects", headers=headers)
    assert await looking.scalar(used) == first
    await looking.execute(update(Token).values(last_used_at=text("now() - interval '61 seconds'")))
    await looking.commit()
    await guarded.get(f"{API}/projects", headers=headers)
    assert await looking.scalar(used) > first


@pytest.fixture
async def two_projects(admin, reports):
    """Projects `mine` and `yours` with a report, a series and a job each; the addresses of what belongs to each."""
    places = {}
    for place, name in enumerate(("mine", "yours")):
        document = reports.report(place + 1, project=name)
        receipt = (await admin.post(f"{API}/reports", json=document)).json()
        job = {"project": name, "commit": {"sha": document["commit"]["sha"]}, "suite": "quick", "timeout_s": 60}
        job_url = (await admin.post(f"{API}/jobs", json=job)).json()["url"]
        series = (await admin.get(f"{API}/series?project={name}")).json()["items"]
        places[name] = [receipt["url"], f"{receipt['url']}/body", job_url, f"{job_url}/log"]
        places[name] += [f"{API}/series/{one['id']}/points" for one in series]
        places[name].append(f"{API}/projects/{name}")
        places[name].append(f"{API}/commits?project={name}")
    return places


async def test_a_token_of_one_project_finds_nothing_of_another(guarded, make_token, two_projects):
    headers = await make_token("read", "upload", project="mine")
    for address in two_projects["mine"]:
        assert (await guarded.get(address, headers=headers)).status_code == 200, address
    for address in two_projects["yours"]:
        answer = await guarded.get(address, headers=headers)
        assert answer.status_code in {403, 404}, address
        assert "yours" not in answer.text.replace("'yours'", "").replace(f"{API}/projects/yours", ""), address
    for resource in ("projects", "reports", "series", "jobs"):
        found = (await guarded.get(f"{API}/{resource}", headers=headers)).json()["items"]
        assert {item.get("project", item.get("name")) for item in found} == {"mine"}, resource


async def test_a_token_of_one_project_cannot_write_into_another(guarded, make_token, two_projects, reports):
    headers = await make_token("upload", project="mine")
    upload = reports.report(7, project="yours")
    detail = problem_of(await guarded.post(f"{API}/reports", json=upload, headers=headers), 403)
    assert "is limited to another project than 'yours'" in detail
    job = next(place for place in two_projects["yours"] if "/jobs/" in place)
    problem_of(await guarded.post(f"{job}/cancel", headers=headers), 404)
    upload = reports.report(7, project="mine")
    assert (await guarded.post(f"{API}/reports", json=upload, headers=headers)).status_code == 201


async def test_a_misspelt_project_is_not_made_by_an_upload(guarded, make_token, report):
    headers = await make_token("upload")
    detail = problem_of(await guarded.post(f"{API}/reports", json=report, headers=headers), 404)
    assert f"no project '{report['project']}'" in detail
    assert "pullback project create" in detail


async def test_anybody_reads_public_projects_and_nothing_else(guarded, admin, two_projects):
    await admin.patch(f"{API}/projects/mine", json={"public_read": True})
    for address in two_projects["mine"]:
        assert (await guarded.get(address)).status_code == 200, address
    for address in two_projects["yours"]:
        assert "send a token" in problem_of(await guarded.get(address), 401), address
    listed = (await guarded.get(f"{API}/projects")).json()["items"]
    assert [project["name"] for project in listed] == ["mine"]
    for inside in ("/metrics", f"{API}/machines", f"{API}/agents", f"{API}/tokens", f"{API}/audit"):
        problem_of(await guarded.get(inside), 401)
    problem_of(await guarded.post(f"{API}/jobs", json={}), 401)
    await admin.patch(f"{API}/projects/mine", json={"public_read": False})
    problem_of(await guarded.get(two_projects["mine"][0]), 401)


async def test_an_agents_token_claims_jobs_of_its_project_only(guarded, admin, two_projects):
    code = (await admin.post(f"{API}/enrolments", json={"project": "yours"})).json()["code"]
    me = {"name": "a", "machine": {"fingerprint": "f", "name": "n"}}
    enrolled = await guarded.post(f"{API}/agents/enroll", json=me, headers={"authorization": f"Bearer {code}"})
    assert enrolled.status_code == 201, enrolled.text
    headers = {"authorization": f"Bearer {enrolled.json()['secret']}"}
    place = f"{API}/agents/{enrolled.json()['agent_id']}/claim"
    claim = (await guarded.post(place, json={}, headers=headers)).json()
    assert claim["job"]["project"] == "yours"
    end = {"lease_token": claim["lease_token"], "kind": "workload", "message": "no", "retryable": False}
    ended = await guarded.post(f"{API}/jobs/{claim['job']['id']}/attempts/1/fail", json=end, headers=headers)
    assert ended.status_code == 200, ended.text
    assert (await guarded.post(place, json={}, headers=headers)).status_code == 204


async def test_a_machine_at_work_for_another_project_takes_no_job(guarded, admin, two_projects):
    me = {"name": "a", "machine": {"fingerprint": "f", "name": "n"}}
    claims = []
    for project in ("mine", None):
        agent, own = await enrolled(guarded, admin, me | {"name": str(project)}, project)
        claims.append(await guarded.post(f"{API}/agents/{agent}/claim", json={}, headers=own))
    assert [claim.status_code for claim in claims] == [200, 204]


async def enrolled(guarded, admin, me, project):
    """The agent that a new code of a project enrols, and its token."""
    code = (await admin.post(f"{API}/enrolments", json={"project": project})).json()["code"]
    answer = await guarded.post(f"{API}/agents/enroll", json=me, headers={"authorization": f"Bearer {code}"})
    assert answer.status_code == 201, answer.text
    return answer.json()["agent_id"], {"authorization": f"Bearer {answer.json()['secret']}"}


async def test_an_agent_of_one_project_comes_to_no_machine_of_another(guarded, admin, make_token, two_projects):
    """A job of its own, of up to a week, would keep the machine from those that it belongs to."""
    me = {"name": "a", "machine": {"fingerprint": "f", "name": "n", "host": "h"}}
    await enrolled(guarded, admin, me, "mine")
    agent, own = await enrolled(guarded, admin, me, "mine")  # with a token that has ended, and one that has not
    stranger = await make_token("agent", project="yours")
    for name in ("a", "b"):  # neither in its place nor beside it
        refused = await guarded.post(f"{API}/agents/enroll", json=me | {"name": name}, headers=stranger)
        assert "This machine has agents of other projects" in problem_of(refused, 403)
    elsewhere = me | {"name": "b", "machine": {**me["machine"], "host": "elsewhere"}}
    _, moving = await enrolled(guarded, admin, elsewhere, "yours")  # nor as that of an equal machine, moved
    problem_of(await guarded.post(f"{API}/agents/enroll", json=me | {"name": "b"}, headers=moving), 403)
    assert (await guarded.post(f"{API}/agents/{agent}/claim", json={}, headers=own)).status_code == 200
    # Where the agent's token is revoked the machine is enrolled anew, for another project as well, and then belongs to that.
    (token,) = [
        each
        for each in (await admin.get(f"{API}/tokens?limit=50")).json()["items"]
        if each["name"] == f"agent {agent} (a)" and each["revoked_at"] is None
    ]
    assert (await admin.post(f"{API}/tokens/{token['id']}/revoke")).status_code == 200
    problem_of(await guarded.get(f"{API}/whoami", headers=own), 401)
    assert (await guarded.post(f"{API}/agents/enroll", json=me | {"name": "b"}, headers=stranger)).status_code == 201
    code = (await admin.post(f"{API}/enrolments", json={"project": "mine"})).json()["code"]
    back = await guarded.post(f"{API}/agents/enroll", json=me, headers={"authorization": f"Bearer {code}"})
    assert "This machine has agents of other projects" in problem_of(back, 403)


async def test_a_token_claims_for_the_agents_that_it_enrolled(guarded, admin, make_token, two_projects):
    me = {"name": "a", "machine": {"fingerprint": "f", "name": "n"}}
    with_own, _ = await enrolled(guarded, admin, me | {"name": "own"}, "mine")
    first, second = [await make_token("agent", project="mine") for _ in range(2)]
    agent = (await guarded.post(f"{API}/agents/enroll", json=me, headers=first)).json()["agent_id"]
    for of_others in (with_own, agent):
        claim = await guarded.post(f"{API}/agents/{of_others}/claim", json={"refuses": "no"}, headers=second)
        problem_of(claim, 404)
    for name in ("own", "a"):
        taken = await guarded.post(f"{API}/agents/enroll", json=me | {"name": name}, headers=second)
        assert f"agent {name!r} here has another token that is valid" in problem_of(taken, 403)
    assert {each["refuses"] for each in (await admin.get(f"{API}/agents")).json()["items"]} == {None}
    (token,) = [each for each in (await admin.get(f"{API}/tokens")).json()["items"] if each["name"] == "token 1"]
    assert (await guarded.post(f"{API}/agents/{agent}/claim", json={}, headers=first)).status_code == 200
    await admin.post(f"{API}/tokens/{token['id']}/revoke")
    again = await guarded.post(f"{API}/agents/enroll", json=me, headers=second)
    assert (again.status_code, again.json()["agent_id"]) == (201, agent)


async def test_an_enrolment_code_enrols_one_agent_once(guarded, admin):
    code = (await admin.post(f"{API}/enrolments", json={})).json()["code"]
    shown = {"authorization": f"Bearer {code}"}
    me = {"name": "a", "machine": {"fingerprint": "f", "name": "n"}}
    assert "can only enrol an agent" in problem_of(await guarded.get(f"{API}/projects", headers=shown), 403)
    enrolled = (await guarded.post(f"{API}/agents/enroll", json=me, headers=shown)).json()
    again = await guarded.post(f"{API}/agents/enroll", json=me, headers=shown)
    assert "was used at" in problem_of(again, 401)
    own = {"authorization": f"Bearer {enrolled['secret']}"}
    assert (await guarded.post(f"{API}/agents/enroll", json=me, headers=own)).json()["secret"] is None
    other = await guarded.post(f"{API}/agents/enroll", json=me | {"name": "b"}, headers=own)
    assert "enrol that one with its own code" in problem_of(other, 403)
    stranger = await guarded.post(f"{API}/agents/{enrolled['agent_id'] + 7}/claim", json={}, headers=own)
    assert "cannot claim jobs for agent" in problem_of(stranger, 403)


async def test_an_agent_whose_token_is_revoked_while_it_waits_gets_nothing(guarded, admin):
    code = (await admin.post(f"{API}/enrolments", json={})).json()["code"]
    me = {"name": "a", "machine": {"fingerprint": "f", "name": "n"}}
    enrolled = await guarded.post(f"{API}/agents/enroll", json=me, headers={"authorization": f"Bearer {code}"})
    own = {"authorization": f"Bearer {enrolled.json()['secret']}"}
    claim = f"{API}/agents/{enrolled.json()['agent_id']}/claim"
    waiting = asyncio.create_task(guarded.post(claim, json={"wait_s": 20}, headers=own))
    listener = runtime_of(guarded._transport.app).get(JobListener)
    async with asyncio.timeout(10):
        while not any(waiter.abilities for waiter in listener._waiters):  # noqa: ASYNC110 - a look from outside
            await asyncio.sleep(0.01)
    (token,) = (await admin.get(f"{API}/tokens")).json()["items"]
    assert (token["name"], token["scopes"]) == ("agent 1 (a)", ["agent"])
    assert (await admin.post(f"{API}/tokens/{token['id']}/revoke")).status_code == 200
    wanted = {"project": "demo", "commit": {"sha": "a" * 40}, "suite": "quick"}
    job = (await admin.post(f"{API}/jobs", json=wanted)).json()
    assert "was revoked or expired while the request waited" in problem_of(await waiting, 401)
    assert (await admin.get(job["url"])).json()["state"] == "queued"
    told = problem_of(await guarded.post(claim, json={}, headers=own), 401)
    assert "was revoked at" in told
    assert "to enrol the agent again, create a code with `pullback token enroll`" in told


async def test_an_expired_code_enrols_nobody(guarded, admin, looking):
    code = (await admin.post(f"{API}/enrolments", json={})).json()["code"]
    await looking.execute(text("UPDATE enrolment_code SET expires_at = now()"))
    await looking.commit()
    me = {"name": "a", "machine": {"fingerprint": "f", "name": "n"}}
    answer = await guarded.post(f"{API}/agents/enroll", json=me, headers={"authorization": f"Bearer {code}"})
    assert "expired at" in problem_of(answer, 401)


async def test_in_local_mode_a_token_that_is_sent_must_be_valid(client):
    assert (await client.get(f"{API}/projects")).status_code == 200
    problem_of(await client.get(f"{API}/projects", headers={"authorization": "Bearer x"}), 401)
    made = (await client.post(f"{API}/tokens", json={"name": "t", "scopes": ["read"]})).json()
    headers = {"authorization": f"Bearer {made['token']}"}
    assert (await client.get(f"{API}/projects", headers=headers)).status_code == 200
    problem_of(await client.get(f"{API}/tokens", headers=headers), 403)


async def test_every_write_leaves_one_line_that_names_who_and_what(guarded, admin, make_token, report, looking):
    await admin.post(f"{API}/projects", json={"name": report["project"]})
    headers = await make_token("upload", project=report["project"])
    assert (await guarded.post(f"{API}/reports", json=report, headers=headers)).status_code == 201
    assert (await guarded.post(f"{API}/reports", json=report, headers=headers)).status_code == 200  # changes nothing
    refused = await guarded.post(f"{API}/reports", json=report | {"project": "other"}, headers=headers)
    assert refused.status_code == 403
    rows = (await looking.scalars(select(Audit).order_by(Audit.id))).all()
    assert [(row.actor, row.action, row.subject, row.project) for row in rows] == [
        ("bootstrap token", "create_project", f"project {report['project']}", report["project"]),
        ("bootstrap token", "create_token", "token 1", report["project"]),
        ("token 'token 1'", "upload_report", f"report {report['id']}", report["project"]),
        ("token 'token 1'", "upload_report", "/api/v1/reports", None),
    ]
    assert rows[2].token_id == 1
    assert rows[3].details == {"refused": refused.json()["detail"]}
    assert rows[2].request_id
    told = (await admin.get(f"{API}/audit?project={report['project']}&limit=2")).json()
    assert [line["action"] for line in told["items"]] == ["upload_report", "create_token"]
    older = (await admin.get(f"{API}/audit", params={"cursor": told["next"]})).json()["items"]
    assert [line["action"] for line in older] == ["create_project"]
    assert "plb_" not in str(told)


async def test_what_a_token_may_not_do_is_in_the_audit_log_once_a_minute_and_counted_each_time(
    guarded, make_token, looking
):
    headers = await make_token("read")
    for _ in range(3):
        problem_of(await guarded.get(f"{API}/tokens", headers=headers), 403)
    problem_of(await guarded.post(f"{API}/projects", json={"name": "p"}, headers=headers), 403)
    problem_of(await guarded.get(f"{API}/tokens"), 401)  # of nobody, who could fill the log
    rows = (await looking.scalars(select(Audit).where(Audit.details.has_key("refused")).order_by(Audit.id))).all()
    assert [(row.actor, row.action, row.subject) for row in rows] == [
        ("token 'token 1'", "list_tokens", "/api/v1/tokens"),
        ("token 'token 1'", "create_project", "/api/v1/projects"),
    ]
    assert "needs admin" in rows[0].details["refused"]
    assert refusals_of(guarded) == {"forbidden": 4, "not-authenticated": 1}


@pytest.fixture
async def costly(start_service, tmp_path, monkeypatch):
    """A service where each request costs ten seconds, a token may spend twenty at once, and an address thirty."""
    (tmp_path / "token").write_text("open sesame\n")
    monkeypatch.setattr(budgets, "REQUEST_S", 10)
    monkeypatch.setattr(budgets, "BURST_S", 1000)
    settings = {"auth": "token", "token_file": tmp_path / "token", "token_work": 0.02, "address_work": 0.03}
    async with start_service(**settings) as client:
        yield client


async def test_who_asks_for_too_much_work_is_told_when_to_come_back(costly):
    headers = {"authorization": "Bearer open sesame"}
    # What the requests of this test take beside that is less than ten seconds.
    assert [(await costly.get(f"{API}/projects", headers=headers)).status_code for _ in range(3)] == [200, 200, 429]
    answer = await costly.get(f"{API}/projects", headers=headers)
    assert "took more than 0.02 s of work a second: wait" in problem_of(answer, 429)
    assert 400 < int(answer.headers["retry-after"]) <= 1000
    wrong = {"authorization": "Bearer plb_guess"}
    statuses = [(await costly.get(f"{API}/projects", headers=wrong)).status_code for _ in range(5)]
    assert statuses == [401, 401, 401, 429, 429]
    assert (await costly.get("/healthz")).status_code == 200
    figures = refusals_of(costly)
    assert (figures["work-of-token"], figures["work-of-address"], figures["not-authenticated"]) == (2, 2, 3)


async def test_an_address_that_has_spent_its_budget_has_no_token_looked_up_but_those_that_are_known(
    costly, count_statements
):
    bootstrap = {"authorization": "Bearer open sesame"}
    made = (await costly.post(f"{API}/tokens", json={"name": "t", "scopes": ["read"]}, headers=bootstrap)).json()
    own = {"authorization": f"Bearer {made['token']}"}
    assert (await costly.get(f"{API}/projects", headers=own)).status_code == 200
    for number in range(3):
        guess = {"authorization": f"Bearer plb_guess{number}"}
        problem_of(await costly.get(f"{API}/projects", headers=guess), 401)
    async with count_statements() as statements:
        for shown in ({"authorization": "Bearer plb_more"}, {"cookie": f"{COOKIE}=more"}):
            answer = await costly.get(f"{API}/projects", headers=shown)
            assert "of this address" in problem_of(answer, 429)
        assert statements == []
    assert (await costly.get(f"{API}/projects", headers=own)).status_code == 200


async def test_turns_are_of_the_address_until_what_is_shown_named_a_caller(guarded, make_token, monkeypatch):
    headers, turns, turn = await make_token("read"), [], RequestTurns.turn

    async def noted(self, caller):
        turns.append(caller)
        await turn(self, caller)

    monkeypatch.setattr(RequestTurns, "turn", noted)
    for shown in ({}, {"authorization": "Bearer plb_a"}, {"cookie": "a=b"}, headers, headers):
        await guarded.get(f"{API}/projects", headers=shown)
    assert turns[:4] == [turns[0]] * 4
    assert turns[4] != turns[0]


async def test_what_an_answer_took_is_what_is_charged(start_service, tmp_path):
    """Nothing but its cost tells one request from the other: the second one waits half a second for the database."""
    (tmp_path / "token").write_text("open sesame\n")
    settings = {"auth": "token", "token_file": tmp_path / "token", "address_work": 0.02}
    async with start_service(**settings) as client:
        gate = runtime_of(client.app).get(Authenticator)
        assert [(await client.get(f"{API}/whoami")).status_code for _ in range(3)] == [200] * 3
        slow = text("SELECT pg_sleep(1.5)")

        async def sleepy(request, session):
            await session.execute(slow)
            return anonymous(frozenset())

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(gate, "_whoever", sleepy)
            assert (await client.get(f"{API}/whoami")).status_code == 200
        assert (await client.get(f"{API}/whoami")).status_code == 429


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("path", ["/readyz", f"{API}/openapi.json", f"{API}/whoami", f"{API}/projects"])
async def test_what_everybody_is_served_is_limited_by_address(costly, path):
    expected = 401 if path.endswith("projects") else 200
    assert [(await costly.get(path)).status_code for _ in range(4)] == [expected] * 3 + [429]
    assert (await costly.get("/healthz")).status_code == 200


async def test_a_token_that_is_not_valid_is_looked_up_once_in_a_while(guarded, count_statements):
    wrong = {"authorization": "Bearer plb_guess"}
    problem_of(await guarded.get(f"{API}/projects", headers=wrong), 401)
    async with count_statements() as statements:
        for _ in range(5):
            problem_of(await guarded.get(f"{API}/projects", headers=wrong), 401)
        assert statements == []
        problem_of(await guarded.get(f"{API}/projects", headers={"authorization": "Bearer plb_other"}), 401)
        assert len(statements) == 1


async def test_the_description_is_written_once(guarded, monkeypatch):
    first = await guarded.get(f"{API}/openapi.json")
    written = []
    monkeypatch.setattr(orjson, "dumps", lambda *given, **options: written.append(given) or b"{}")
    again = await guarded.get(f"{API}/openapi.json")
    assert (again.content, again.headers["etag"], written) == (first.content, first.headers["etag"], [])
    known = {"if-none-match": first.headers["etag"]}
    assert (await guarded.get(f"{API}/openapi.json", headers=known)).status_code == 304


async def test_a_database_that_only_reads_still_answers_what_is_read(guarded, admin, make_token, report, database_url):
    headers = await make_token("read", "upload")
    assert (await admin.post(f"{API}/reports", json=report)).status_code == 201
    report["id"] = str(uuid4())
    with psycopg.connect(database_url, autocommit=True) as connection:
        name = sql.Identifier(connection.info.dbname)
        connection.execute(sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = on").format(name))
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    assert (await guarded.get("/readyz")).status_code == 200
    assert (await guarded.get(f"{API}/projects", headers=headers)).status_code == 200
    refused = await guarded.post(f"{API}/reports", headers=headers, json=report)
    assert "Nothing was stored, and reads still work" in problem_of(refused, 503)
    assert refused.headers["retry-after"]


async def test_projects_are_changed_one_setting_at_a_time(admin, looking):
    await admin.post(f"{API}/projects", json={"name": "group/name", "public_read": True})
    changed = await admin.patch(f"{API}/projects/group/name", json={})
    assert changed.json()["public_read"] is True
    assert await looking.scalar(select(Project.public_read)) is True
    problem_of(await admin.post(f"{API}/projects", json={"name": "group/name"}), 409)


@pytest.fixture
def sign_in(looking):
    """The cookie of a login with a token, by the token's id."""

    async def sign_in(token_id):
        secret = await open_login(looking, token_id=token_id, bootstrap_digest=None)
        await looking.commit()
        return secret

    return sign_in


async def test_a_login_has_the_rights_of_its_token_and_ends_with_it(guarded, admin, make_token, sign_in):
    await make_token("read")
    cookie = {"cookie": f"{COOKIE}={await sign_in(1)}"}
    assert (await guarded.get(f"{API}/projects", headers=cookie)).status_code == 200
    problem_of(await guarded.get(f"{API}/tokens", headers=cookie), 403)
    await admin.post(f"{API}/tokens/1/revoke")
    problem_of(await guarded.get(f"{API}/projects", headers=cookie), 401)


async def test_a_write_that_leans_on_a_login_needs_the_pages_proof(guarded, make_token, sign_in):
    await make_token("admin")
    secret = await sign_in(1)
    cookie, wanted = {"cookie": f"{COOKIE}={secret}"}, {"name": "demo"}
    assert "X-CSRF-Token" in problem_of(await guarded.post(f"{API}/projects", json=wanted, headers=cookie), 403)
    wrong = cookie | {"x-csrf-token": csrf_of("another")}
    problem_of(await guarded.post(f"{API}/projects", json=wanted, headers=wrong), 403)
    wrong = cookie | {"x-csrf-token": masked_csrf_of("another")}
    problem_of(await guarded.post(f"{API}/projects", json=wanted, headers=wrong), 403)
    right = cookie | {"x-csrf-token": csrf_of(secret)}
    assert (await guarded.post(f"{API}/projects", json=wanted, headers=right)).status_code == 201
    masked, again = masked_csrf_of(secret), masked_csrf_of(secret)
    assert csrf_of(secret) not in masked
    assert masked != again
    for number, proof in enumerate((masked, again)):
        named = {"name": f"demo {number}"}
        answer = await guarded.post(f"{API}/projects", json=named, headers=cookie | {"x-csrf-token": proof})
        assert answer.status_code == 201


async def test_a_login_ends_in_time_and_another_bootstrap_token_ends_its_logins(guarded, make_token, sign_in, looking):
    await make_token("read")
    cookie = {"cookie": f"{COOKIE}={await sign_in(1)}"}
    await looking.execute(text("UPDATE login SET expires_at = now()"))
    await looking.commit()
    problem_of(await guarded.get(f"{API}/projects", headers=cookie), 401)
    secret = await open_login(looking, token_id=None, bootstrap_digest=digest_of("an older secret"))
    await looking.commit()
    problem_of(await guarded.get(f"{API}/projects", headers={"cookie": f"{COOKIE}={secret}"}), 401)
